"""What `make run` ends with: a page that a person reads at a glance."""

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table

from infra.demo.checks import Check
from infra.demo.facts import Facts
from infra.demo.steps import Demo
from infra.replay import ReplayReport
from schemas.books import ingest_balance
from schemas.times import epoch_ms, rfc3339

Answer = tuple[str, list[str], list[tuple[Any, ...]]]


def print_summary(console: Console, facts: Facts, report: ReplayReport, answers: list[Answer]) -> None:
    """Print requests, books, dead letters, drift and alert, and the answers of Spark SQL."""
    console.rule("slacktide: what happened")
    _print_books(console, facts, report)
    _print_drift(console, facts, report)
    for question, columns, rows in answers:
        console.print(_table(f"Spark SQL: {question}", columns, rows))


def print_where_next(console: Console, demo: Demo) -> None:
    """Print where the web UI and the tables are, and how to stop."""
    console.print(f"[bold]Web UI[/]   {demo.stack.flink.rest_url}")
    console.print(f"[bold]Tables[/]   {demo.stack.warehouse}")
    console.print(
        "[bold]Look on[/]  slacktide status · slacktide slo · slacktide alerts · slacktide sql   (in .venv/bin)"
    )
    console.print("[bold]Stop[/]     slacktide down   (--purge deletes the data too)")


def _table(title: str, columns: list[str], rows: list[tuple[Any, ...]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    return table


def _print_books(console: Console, facts: Facts, report: ReplayReport) -> None:
    counts = facts.books.get("ingest", {})
    out = [(kind, counts.get(kind, 0)) for kind in ("requests", "child", "duplicate", "late", "dead", "waiting")]
    spans = counts.get("spans", 0)
    parts = " + ".join(f"{count:,} {kind}" for kind, count in out)
    console.print(f"[bold]Requests in[/]   {counts.get('requests', 0):,} of {report.requests:,} generated")
    console.print(f"[bold]The books[/]     {spans:,} spans = {parts}   (difference {ingest_balance(counts)})")
    reasons = Counter(letter["reason"] for letter in facts.dead_letters)
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items()))
    console.print(f"[bold]Dead letters[/]  {sum(reasons.values()):,}: {listed}")


def _print_drift(console: Console, facts: Facts, report: ReplayReport) -> None:
    drifted = sum(bool(verdict["drifted"]) for verdict in facts.verdicts)
    console.print(f"[bold]Windows[/]       {len(facts.verdicts):,} judged, {drifted:,} drifted")
    for drift in report.drifts:
        at = rfc3339(drift.event_time_ms)
        console.print(f"[bold]Drift[/]         {drift.feature} x {drift.amount:g} injected at {at}")
    caused = {drift.feature: drift.event_time_ms for drift in report.drifts}
    for alert in facts.alerts:
        since = f"{alert['state']} since {alert['startsAt']}"
        begun = caused.get(alert["feature"])
        why = "the drift injected" if begun is not None and epoch_ms(alert["startsAt"]) >= begun else "not injected"
        console.print(f"[bold]Alert[/]         {alert['feature']} {since}: {why} ({alert['fingerprint']})")


def print_checks(console: Console, found: list[Check]) -> None:
    """Print each promise and whether it held."""
    table = Table(title="Checks", title_justify="left", title_style="bold", show_header=False)
    for check in found:
        table.add_row("[green]ok[/]" if check.holds else "[bold red]FAILED[/]", check.name, check.detail)
    console.print(table)
