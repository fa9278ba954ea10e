"""Showing how a replay gets on: a bar on a terminal, a line every few seconds elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from infra.replay.sender import Snapshot
from schemas.times import rfc3339

LINE_SECONDS = 5.0


@contextmanager
def shown_progress(console: Console) -> Iterator[Callable[[Snapshot], None]]:
    """Give the callback that shows snapshots on `console`, and take the bar away in the end."""
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("replay"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("replay", total=None, state="")

        def show(snapshot: Snapshot) -> None:
            bar.update(task, total=snapshot.total, completed=snapshot.requests, state=state_of(snapshot))

        yield show


def state_of(snapshot: Snapshot) -> str:
    """Return a snapshot in a line.

    >>> state_of(Snapshot(1000, 2000, 1_700_000_000_000, 2.0, 0.0))
    '1,000 requests, event time 2023-11-14 22:13:20Z, 500 requests/s'
    """
    rate = snapshot.requests / snapshot.seconds if snapshot.seconds > 0 else 0.0
    instant = rfc3339(snapshot.event_ms)[:19].replace("T", " ") + "Z"
    behind = f", {snapshot.behind_seconds:.1f} s behind" if snapshot.behind_seconds > 1 else ""
    return f"{snapshot.requests:,} requests, event time {instant}, {rate:,.0f} requests/s{behind}"


def _lines() -> Callable[[Snapshot], None]:
    shown = 0.0

    def show(snapshot: Snapshot) -> None:
        nonlocal shown
        if snapshot.seconds - shown >= LINE_SECONDS:
            shown = snapshot.seconds
            share = min(1.0, snapshot.requests / max(snapshot.total, 1))
            click.echo(f"replay {share:.0%}: {state_of(snapshot)}", err=True)

    return show
