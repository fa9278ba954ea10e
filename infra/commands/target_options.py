"""Where alerts are delivered to: the options that `forward` and `deadman` share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

SECRET_VARIABLE = "SLACKTIDE_WEBHOOK_SECRET"
Command = TypeVar("Command", bound=Callable[..., Any])


def target_options(command: Command) -> Command:
    """Add --targets, --alertmanager, --webhook and --metrics-port."""
    options = [
        click.option(
            "--targets",
            type=click.Path(dir_okay=False, path_type=Path),
            help="YAML of targets. [default: infra/conf/delivery.yaml]",
        ),
        click.option(
            "--alertmanager", "alertmanagers", multiple=True, metavar="URL", help="Tell this instead; repeatable."
        ),
        click.option(
            "--webhook",
            "webhooks",
            multiple=True,
            metavar="URL",
            help=f"And this; repeatable. Signed where {SECRET_VARIABLE} is set.",
        ),
        click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve metrics on this port of loopback."),
    ]
    for option in reversed(options):
        command = option(command)
    return command
