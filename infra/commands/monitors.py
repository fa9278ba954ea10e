"""`slacktide monitors`: check a monitors file, explain what it will do, and try it on the past.

Each subcommand imports what only it needs, so that `check`, which people call again and again, is there at once.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from infra.commands.kafka_options import kafka_options
from jobs.kafka_client import ConfigurationError
from schemas.times import rfc3339

if TYPE_CHECKING:
    from jobs.monitors import Monitor, Monitors
    from schemas.alerts import Alert
    from schemas.verdicts import Verdict
    from udfs.backtest import Backtest, BacktestMonitor

TABLE_WIDTH = 160  # where there is no terminal to ask
FILE = click.Path(dir_okay=False, path_type=Path)
GROUP_EXAMPLES = """
\b
Examples:
  slacktide monitors check monitors.yaml
  slacktide monitors explain monitors.yaml --samples 3000 --series 20
  slacktide monitors backtest monitors.yaml --from-parquet requests.parquet
"""
CHECK_EXAMPLE = "\b\nExamples:\n  slacktide monitors check infra/conf/monitors.yaml"
EXPLAIN_EXAMPLE = "\b\nExamples:\n  slacktide monitors explain infra/conf/monitors.yaml --samples 1500 --series 4"
BACKTEST_EXAMPLES = """
\b
Examples:
  slacktide monitors backtest monitors.yaml --from-topic requests
  slacktide monitors backtest monitors.yaml --from-parquet requests/ --rules my_rules.yaml
  slacktide monitors backtest monitors.yaml --from-parquet delta/requests --write verdicts.jsonl
  slacktide plot drift --from verdicts.jsonl
"""


@click.group(name="monitors", epilog=GROUP_EXAMPLES)
def command() -> None:
    """Check, explain and backtest a file of monitors (docs/monitors.md)."""


@command.command(name="check", epilog=CHECK_EXAMPLE)
@click.argument("file", type=FILE)
def check(file: Path) -> None:
    """Read FILE and all that it points to, as `slacktide submit drift` does, and say what is wrong or what it has."""
    from jobs.monitors import load_monitors

    monitors = load_monitors(file)
    for monitor in monitors.monitors:
        signals = f"; {_counted(len(monitor.followers), 'signal')}" if monitor.followers else ""
        cut = f"windows of {monitor.window_ms / 1000:g} s every {monitor.slide_ms / 1000:g} s"
        series = ", ".join(monitor.group_by) or "nothing"
        click.echo(f"{monitor.name}: {_counted(len(monitor.judges), 'test')} on {cut}, by {series}{signals}")
    click.echo(f"{file}: all is well")


@command.command(name="explain", epilog=EXPLAIN_EXAMPLE, context_settings={"show_default": True})
@click.argument("file", type=FILE)
@click.option("--samples", type=click.IntRange(1), default=1000, help="Requests of one series in a window.")
@click.option("--series", type=click.IntRange(1), default=1, help="Series that live at once.")
def explain(file: Path, samples: int, series: int) -> None:
    """Tell what FILE computes, at what state size, with how many false alarms; nothing runs.

    A window of SAMPLES made-up requests is worked through the same code as in the job, so sizes are measured. Onsets of
    one series; the monitor's are that times its series.
    """
    from infra.monitor_history.explained import explained
    from infra.monitor_history.signal_words import signal_in_words
    from jobs.monitors import load_monitors

    for monitor in load_monitors(file).monitors:
        told = explained(monitor, samples)
        table = Table(title=f"{monitor.name}: every {monitor.slide_ms / 1000:g} s over {monitor.window_ms / 1000:g} s")
        for column in ("verdicts on", "collects", "bytes a closed slice", "false alarms of one series"):
            table.add_column(column, justify="right" if column.startswith("bytes") else "left", overflow="fold")
        for judge in told.judges:
            features = "\n".join(escape(feature) for feature in judge.features)
            table.add_row(features, escape(judge.collects), f"{judge.slice_bytes:,}", escape(judge.false_alarms))
        for follower in monitor.followers:
            table.add_row(escape(follower.uid), "verdicts of this monitor", "", escape(signal_in_words(follower)))
        _console().print(table)
        if monitor.budget is not None:
            click.echo(f"  false-alarm budget: {monitor.budget.words(series)}")
        total = (told.open_slice_bytes + told.closed_bytes) * series
        click.echo(
            f"  state: {told.open_slice_bytes:,} bytes in the open slice and {told.closed_bytes:,} in closed ones a "
            f"series; {total / 1e6:,.1f} MB for {_counted(series, 'series', 'series')} (about 3 times that on heap)\n"
        )


@command.command(name="backtest", epilog=BACKTEST_EXAMPLES)
@click.argument("file", type=FILE)
@click.option("--from-topic", help="Topic of requests, from its beginning to its end of now.")
@click.option(
    "--from-parquet", type=click.Path(exists=True, path_type=Path), help="Parquet file, folder or Delta table."
)
@click.option("--rules", help="Alert rules as for `submit alert`. [default: the shipped ones]")
@click.option(
    "--write", type=FILE, help="Write the verdicts there, a JSON line each, for `slacktide plot drift --from`."
)
@kafka_options
def backtest(file: Path, *, from_topic: str | None, from_parquet: Path | None, **options: Any) -> None:
    """Run FILE over past requests: what it would have alarmed on, and when.

    The same code as in the jobs, in memory. Nothing counts as late, and every window is judged.
    """
    from infra.monitor_history.alerts_of import alerts_of
    from infra.monitor_history.requests import requests_of
    from jobs.alert_rules import load_alert_rules
    from jobs.monitors import load_monitors

    if (from_topic is None) == (from_parquet is None):
        remedy = "Give --from-topic TOPIC or --from-parquet PATH"
        raise ConfigurationError("command line", "--from-...", "needs exactly one source", remedy)
    monitors, alert_rules = load_monitors(file), load_alert_rules(options["rules"])
    requests = requests_of(from_topic, from_parquet, options)
    history = backtest_of(monitors)
    with _console().status("reading requests"):
        history.take(requests)
    with _console().status(f"judging {history.n_requests:,} requests"):
        verdicts = list(history.verdicts())
    if options["write"] is not None:
        options["write"].write_bytes(b"".join(verdict.to_json() + b"\n" for verdict in verdicts))
    _print_verdicts(history, verdicts)
    _print_alerts(list(alerts_of(verdicts, alert_rules)))


def backtest_of(monitors: "Monitors") -> "Backtest":
    """Return a backtest of all monitors."""
    from udfs.backtest import Backtest

    return Backtest(tuple(map(_backtest_monitor, monitors.monitors)))


def _backtest_monitor(monitor: "Monitor") -> "BacktestMonitor":
    from jobs.drift_sql import plan_of
    from udfs.backtest import BacktestMonitor

    judges, window_ms = monitor.window_judges, monitor.window_ms
    return BacktestMonitor(plan_of(monitor), window_ms, judges, monitor.followers, monitor.machines)


def _print_verdicts(history: "Backtest", verdicts: "list[Verdict]") -> None:
    click.echo(f"{history.n_requests:,} requests, {history.n_unusable:,} of them could not be used")
    table = Table("monitor", "verdicts on", "windows", "not judged", "drifted", "first drift")
    counts: dict[tuple[str, str], Counter[str]] = {}
    first: dict[tuple[str, str], int] = {}
    for verdict in verdicts:
        name = verdict.monitor, verdict.feature
        kind = "not judged" if verdict.drifted is None else "drifted" if verdict.drifted else "quiet"
        counts.setdefault(name, Counter())[kind] += 1
        if verdict.drifted:
            first[name] = min(first.get(name, verdict.window_end_ms), verdict.window_end_ms)
    for name, count in sorted(counts.items()):
        figures = (count.total(), count["not judged"], count["drifted"])
        when = rfc3339(first[name]) if name in first else ""
        table.add_row(*map(escape, name), *(f"{figure:,}" for figure in figures), when)
    _console().print(table)


def _print_alerts(transitions: "list[Alert]") -> None:
    if not transitions:
        click.echo("no alert")
        return
    table = Table("alert", "monitor", "verdicts on", "series", "at", "evidence")
    for alert in transitions:
        series = ", ".join(f"{name}={value}" for name, value in sorted(alert.series.items()))
        row = (alert.state, alert.monitor, alert.feature, series, rfc3339(alert.updated_at_ms))
        table.add_row(*(escape(str(cell)) for cell in row), escape(alert.annotations["description"]))
    _console().print(table)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)
