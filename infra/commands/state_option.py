"""The option that says where the stack's state is, shared by the commands that need it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from infra.paths import state_folder

Command = TypeVar("Command", bound=Callable[..., Any])


def state_option(command: Command) -> Command:
    """Add `--state-folder`, given to the command as the path `state`."""
    option = click.option(
        "--state-folder",
        "state",
        callback=lambda _context, _parameter, value: state_folder(value),
        type=click.Path(file_okay=False, path_type=Path),
        help="Where jars, topics, checkpoints, tables and logs are. [env: SLACKTIDE_STATE; default: .slacktide]",
    )
    return option(command)
