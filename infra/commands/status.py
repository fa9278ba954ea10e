"""`slacktide status`: show what runs and how it does."""

import sys
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from infra.commands.state_option import state_option
from infra.lag import GROUP_PREFIX
from infra.stack import Stack
from infra.status import StackStatus, stack_status
from schemas.books import IngestKind

NOT_UP = 1
EXAMPLES = """
\b
Examples:
  slacktide status
  slacktide status --json
  watch -n 5 slacktide status
"""


@click.command(name="status", epilog=EXAMPLES)
@state_option
@click.option("--json", "as_json", is_flag=True, help="For machines: one JSON object.")
def command(state: Path, as_json: bool) -> None:
    """Show processes and memory, each job's state, lag and watermark age, and the balance of the books.

    Exits with 1 when the stack is not up, or not all of it is.
    """
    stack = Stack.of(state)
    if stack is None or not any(stack.processes().values()):
        click.echo(orjson.dumps({"up": False}) if as_json else "The stack is not up. Start it with `slacktide up`.")
        sys.exit(NOT_UP)
    status = stack_status(stack)
    if as_json:
        click.echo(orjson.dumps({"up": stack.is_up} | status.to_json(), option=orjson.OPT_INDENT_2))
    else:
        _show(stack, status, Console(highlight=False, soft_wrap=True))
    if not stack.is_up:
        sys.exit(NOT_UP)


def _show(stack: Stack, status: StackStatus, console: Console) -> None:
    console.print(_process_table(status))
    if status.jobs:
        console.print(_job_table(status))
    if status.audit:
        console.print(_audit_table(status.audit))
    if status.books:
        console.print(_books_table(status))
    if status.ingest_balance is not None:
        equation = "spans = requests + child + duplicate + late + dead + waiting"
        console.print(_balance_line(status.ingest_balance, equation))
    if status.metric_balance is not None:
        equation = "points = measurements + baseline + empty + duplicate + late + dead"
        console.print(_balance_line(status.metric_balance, equation))
    for problem in status.problems:
        console.print(f"[red]{problem}[/red]")
    console.print(f"Kafka {stack.broker.bootstrap_servers} · Flink web UI {stack.flink.rest_url} · state {stack.run}")


def _process_table(status: StackStatus) -> Table:
    own_mb = status.memory_mb - status.worker_memory_mb
    over = own_mb > status.memory_limit_mb
    total = f"{own_mb} of at most {status.memory_limit_mb} MB"
    if over:
        total += ", too much"
    if status.worker_memory_mb:
        total += f"; {status.worker_memory_mb} MB more for the Python workers of jobs"
    table = Table(
        "process", "id", "with workers", "memory", "came back", title=f"Memory: {total}", title_justify="left"
    )
    table.title_style = "bold red" if over else "bold"
    for process in status.processes:
        shown_id = str(process.pid) if process.pid else "[red]down[/red]"
        memory = f"{process.memory_mb} MB" if process.pid else "-"
        table.add_row(process.name, shown_id, str(process.processes), memory, str(process.restarts))
    return table


def _job_table(status: StackStatus) -> Table:
    table = Table("job", "state", "restarts", "checkpoint", "lag", "watermark", title="Jobs", title_justify="left")
    for job in status.jobs:
        lags = [f"{lag.topic} {lag.records:,}" for lag in status.lags if lag.group == job.name]
        state = job.state if job.state == "RUNNING" else f"[red]{job.state}[/red]"
        checkpoint = _age(status.at_ms, job.last_checkpoint_ms)
        watermark = _age(status.at_ms, job.watermark_ms)
        table.add_row(
            job.name.removeprefix(GROUP_PREFIX), state, str(job.restarts), checkpoint, "\n".join(lags) or "-", watermark
        )
    return table


def _age(now_ms: int, then_ms: int | None) -> str:
    """Return a readable age; what lies ahead of our clock says so.

    >>> _age(100_000, 95_000), _age(0, 3_600_000), _age(0, None)
    ('5 s ago', 'in 60 min', '-')
    """
    if then_ms is None:
        return "-"
    seconds = abs(now_ms - then_ms) / 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (unit == "min" and seconds >= 120):
            shown = f"{seconds / size:.0f} {unit}"
            break
    else:
        shown = f"{seconds:.0f} s"
    return f"{shown} ago" if then_ms <= now_ms else f"in {shown}"


def _audit_table(audit: dict[str, Any]) -> Table:
    title = f"Audit: {audit['state']}, tables in {audit['warehouse']}"
    table = Table("topic", "read", "new", "already there", "quarantined", "lag", title=title, title_justify="left")
    for topic, totals in audit["topics"].items():
        figures = [totals.get(name) for name in ("read", "inserted", "already_there", "quarantined", "lag")]
        table.add_row(topic, *("-" if figure is None else f"{figure:,}" for figure in figures))
    return table


def _books_table(status: StackStatus) -> Table:
    table = Table("job", "counted", title="Books (committed)", title_justify="left")
    order = [str(kind) for kind in IngestKind]
    for job, kinds in sorted(status.books.items()):
        known_first = sorted(kinds, key=lambda kind: (order.index(kind) if kind in order else len(order), kind))
        table.add_row(job, "  ".join(f"{kind} {kinds[kind]:,}" for kind in known_first))
    return table


def _balance_line(balance: int, equation: str) -> str:
    """Say whether an equation of the books holds.

    >>> _balance_line(3, "spans = requests")
    '[red]The books are out of balance by 3 spans: spans = requests does not hold.[/red]'
    """
    if balance == 0:
        return f"[green]The books balance: {equation}.[/green]"
    counted = equation.split(" = ", maxsplit=1)[0]
    return f"[red]The books are out of balance by {balance:,} {counted}: {equation} does not hold.[/red]"
