"""`slacktide slo`: where service levels stand, and what is wrong with a file of them."""

import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from infra.alert_line import printable
from infra.commands.alerts import Since
from infra.commands.kafka_options import kafka_options
from infra.commands.whole_table import print_whole
from infra.errors import StackError

EXAMPLES = """
\b
Examples:
  slacktide slo                              budgets, burn rates and projections, from topic verdicts
  slacktide slo --name availability --json | jq .budget_remaining
  slacktide slo --since 2h                   only what was published in the last two hours
  slacktide slo check slos.yaml              refuses what is wrong, explains what is there
  slacktide plot slo availability            the budget over time
"""
CHECK_EXAMPLE = (
    "\b\nExamples:\n  slacktide slo check infra/conf/slos.yaml\n  slacktide slo check s.yaml --model-card c.json"
)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(name="slo", epilog=EXAMPLES, invoke_without_command=True)
@click.option("--name", help="Only the SLO called so.")
@click.option("--from", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Parquet, or a JSON record a line, instead of the topic.")  # fmt: skip
@click.option("--since", type=Since(), help="Only what was published since: 2h, 90s or 2026-01-31T12:00:00Z.")
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object a line.")
@kafka_options
@click.pass_context
def command(ctx: click.Context, /, *, name: str | None, as_json: bool, **where: Any) -> None:
    """Show where service levels stand: budget left, burn rates, and when the budget will be gone."""
    if ctx.invoked_subcommand is not None:
        return
    from infra.plots.record_sources import none_in_file
    from infra.service_levels.standings import SloBook

    book = SloBook.of(_records(**where), name)
    if book.n_skipped:
        click.echo(f"skipped {book.n_skipped} records that are no verdicts", err=True)
    histories = sorted(book.histories.values(), key=lambda history: history.label)
    if as_json:
        for history in histories:
            click.echo(json_line(history))
    elif histories:
        print_whole(table_of(histories))
    elif where["source"] is not None:
        raise none_in_file(where["source"], f"verdict on a service level{f' called {name}' if name else ''}")
    elif name:
        raise StackError(f"there is no verdict on a service level called {name}", "`slacktide slo` lists them")
    else:
        click.echo("There is no verdict on a service level yet. `slacktide submit slo --slos FILE` starts the job.")


def _records(
    *, source: Path | None, since: int | None, topic_prefix: str, bootstrap_servers: str, kafka_config: str | None
) -> Any:
    from infra.plots.record_sources import records_of_file, records_of_verdicts
    from jobs.kafka_client import load_kafka_client

    if source is None:
        return records_of_verdicts(load_kafka_client(bootstrap_servers, kafka_config), topic_prefix, since)
    if since is not None:
        raise click.UsageError("--since is about a topic; a file is taken whole")
    return records_of_file(source)


def table_of(histories: list[Any]) -> Table:
    """Return the table: a row an SLO and series, the newest standing of each."""
    table = Table("SLO", "series", "period", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("target", "SLI", "events", "budget left"):
        table.add_column(heading, justify="right")
    for heading in ("burn rates", "budget gone", "told at", "state"):
        table.add_column(heading)
    for history in histories:
        now = history.standings[-1]
        labels = ", ".join(f"{label}={value}" for label, value in sorted(history.series.items()))
        cells = (history.name, labels, history.period, f"{now.target:.3%}", _percent(now.sli, 3), f"{now.total:,}")
        left = _percent(now.remaining, 1)
        if now.remaining is not None and now.remaining < 0:
            left = f"[red]{left}[/]"
        burns = _shown(" ".join(f"{burn.rule.partition('&')[0]} {_rate(burn.long)}" for burn in now.burns))
        table.add_row(*map(_shown, cells), left, burns, _gone(now), _instant(now.at_ms), _state(now))
    return table


def _shown(text: str) -> str:
    """Labels come from telemetry: whatever they hold, it is neither markup nor a terminal's command."""
    return escape(printable(text))


def _percent(share: float | None, decimals: int) -> str:
    return "-" if share is None else f"{share:.{decimals}%}"


def _rate(burn: float | None) -> str:
    return "-" if burn is None else f"{burn:.2f}"


def _gone(now: Any) -> str:
    if now.exhausted_ms is None:
        return "not in sight" if now.remaining is not None else "-"
    return "is gone" if now.exhausted_ms <= now.at_ms else _instant(now.exhausted_ms)


def _instant(epoch_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(epoch_ms / 1000))


def _state(now: Any) -> str:
    if now.firing:
        return f"[bold red]{_shown(', '.join(now.firing))}[/]"
    return "[green]ok[/]" if now.status == "ok" else f"[yellow]{_shown(now.status)}[/]"


def json_line(history: Any) -> str:
    """Return the newest standing as JSON."""
    import orjson

    from schemas.times import rfc3339

    now = history.standings[-1]
    body = {
        "slo": history.name,
        "series": history.series,
        "service": history.service,
        "period": history.period,
        "told_at": rfc3339(now.at_ms),
        "status": now.status,
        "target": now.target,
        "sli": now.sli,
        "total": now.total,
        "budget_remaining": now.remaining,
        "projected_exhaustion": None if now.exhausted_ms is None else rfc3339(now.exhausted_ms),
        "burn_rates": {burn.rule: burn.long for burn in now.burns},
        "firing": now.firing,
    }
    return orjson.dumps(body).decode()


@command.command(name="check", epilog=CHECK_EXAMPLE)
@click.argument("file", type=FILE)
@click.option("--model-card", type=FILE, help="Card of SLOs that name none.")
def check(file: Path, model_card: Path | None) -> None:
    """Read FILE (OpenSLO v1) as `slacktide submit slo` does, and say what is wrong or what it has."""
    from jobs.slos import load_slos

    slos = load_slos(file, model_card)
    for slo in slos.slos:
        series = ", ".join(slo.group_by) or "nothing"
        click.echo(f"{slo.name}: {slo.target:.6g} over {slo.period.name}, {slo.budgeting.method}, by {series}")
        if slo.window is not None:
            side, windows = slo.window.wrong_side, slo.alert.firing_after_windows
            in_a_row = "in a single window" if windows == 1 else f"in {windows} windows in a row"
            click.echo(
                f"  {slo.figure} over {slo.window.window_ms / 1000:g} s every {slo.window.slide_ms / 1000:g} s, "
                f"{side} {slo.window.limit:g} {in_a_row}: {slo.alert.severity}"
            )
        for rule in slo.burn_rules:
            click.echo(f"  {rule.severity} at burn rate {rule.factor:.4g} over {rule.name}")
    click.echo(f"{file}: all is well")
