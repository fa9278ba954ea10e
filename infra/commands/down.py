"""`slacktide down`: end what was started."""

from pathlib import Path

import click
from rich.console import Console

from infra.commands.state_option import state_option
from infra.stack import Stack

EXAMPLES = """
\b
Examples:
  slacktide down
  slacktide down --purge
"""


@click.command(name="down", epilog=EXAMPLES)
@state_option
@click.option("--purge", is_flag=True, help="Also delete topics, checkpoints, tables and logs. The jars stay.")
def command(state: Path, purge: bool) -> None:
    """End what `up` and `submit` started under this state folder, and nothing else.

    Data stays: after the next `up` the topics are there, and `submit JOB --resume` goes on where a job stood.
    """
    console = Console(highlight=False)
    stack = Stack.of(state)
    if stack is None:
        console.print(f"Nothing was started under {state}.")
        return
    ended = stack.down(say=lambda line: console.print(f"  {line}"), purge=purge)
    console.print(f"{ended} processes ended." if ended else "Nothing was running.")
    console.print(f"{stack.run} is deleted." if purge else f"Data and logs stay in {stack.run}.")
