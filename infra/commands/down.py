"""`slacktide down`: end what was started."""

from pathlib import Path

import click
from rich.console import Console

from infra.commands.state_option import state_option
from infra.stack import Stack, required_stack
from infra.submit import stop_job

EXAMPLES = """
\b
Examples:
  slacktide down
  slacktide down --purge
  slacktide down drift
"""


@click.command(name="down", epilog=EXAMPLES)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@state_option
@click.option("--purge", is_flag=True, help="Also delete topics, checkpoints, tables and logs. The jars stay.")
def command(jobs: tuple[str, ...], state: Path, purge: bool) -> None:
    """End what `up` and `submit` started under this state folder, and nothing else.

    With JOB, end only that job: a Flink job with a savepoint, the audit's driver in good order. Data stays: after the
    next `up` the topics are there, and `submit JOB --resume` goes on where a job stood.
    """
    console = Console(highlight=False, soft_wrap=True)
    if jobs:
        stack = required_stack(state)
        for job in jobs:
            console.print(stop_job(stack, job))
        return
    present = Stack.of(state)
    if present is None:
        console.print(f"Nothing was started under {state}.")
        return
    ended = present.down(say=lambda line: console.print(f"  {line}"), purge=purge)
    console.print(f"{ended} processes ended." if ended else "Nothing was running.")
    console.print(f"{present.run} is deleted." if purge else f"Data and logs stay in {present.run}.")
