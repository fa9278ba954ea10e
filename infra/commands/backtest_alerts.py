"""`slacktide backtest-alerts`: static thresholds and ours over labelled data, counted."""

from pathlib import Path

import click
from rich.console import Console

from infra.quiet.measured import PARTS, Goals, measure_nab, measure_replay
from infra.quiet.report import print_goals, print_kinds, print_measured

TABLE_WIDTH = 120  # where there is no terminal to ask
EXAMPLES = """
\b
Examples:
  slacktide backtest-alerts
  slacktide backtest-alerts --part tuning --streams 1
  slacktide backtest-alerts --no-replay --nab NAB
"""


@click.command(name="backtest-alerts", epilog=EXAMPLES)
@click.option("--part", type=click.Choice(list(PARTS)), default="scoring", show_default=True, help="Of the replay.")
@click.option("--streams", type=click.IntRange(1), help="Take so many streams of the part. [default: all]")
@click.option("--replay/--no-replay", default=True, help="Whether to measure the replay.", show_default=True)
@click.option(
    "--nab",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Measure a folder of CSV series, timestamp,value, with combined_windows.json, as well.",
)
def command(part: str, streams: int | None, replay: bool, nab: Path | None) -> None:
    """Count false alarms, missed incidents and delay of static thresholds and of ours (docs/quiet.md).

    The replay is the real trace with injected incidents of eight kinds, judged in memory by the code of the jobs. Exits
    with 1 when the replay misses a goal.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH, soft_wrap=False)
    reached = True
    if replay:
        measured = measure_replay(part, streams, lambda what: click.echo(what, err=True))
        print_measured(console, measured)
        print_kinds(console, measured)
        reached = print_goals(console, measured, Goals())
    if nab is not None:
        print_measured(console, measure_nab(nab))
    if not reached:
        raise SystemExit(1)
