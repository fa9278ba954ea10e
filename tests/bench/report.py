"""The table every benchmark prints: ours beside its peer and its limit, from one run, with the target it must reach."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

_BEGAN = time.monotonic()


@dataclass(frozen=True, slots=True)
class Row:
    """One measured claim. `us`, `peer` and `limit` are in `unit`; None where the claim has no such figure.

    `ratio` is what the target is about, printed as it is; `target` is a sentence such as `>= 20`; `reached` is None for
    a figure that is printed but promises nothing.
    """

    name: str
    unit: str
    us: float | None
    peer: float | None = None
    limit: float | None = None
    ratio: float | None = None
    target: str = ""
    reached: bool | None = None


def elapsed_seconds() -> float:
    """How long the bench has run."""
    return time.monotonic() - _BEGAN


def progress(text: str) -> None:
    """Say on stderr what a bench is about, with the seconds since its start."""
    print(f"{elapsed_seconds():6.1f} s  {text}", file=sys.stderr, flush=True)


def at_least(ratio: float, bound: float) -> tuple[str, bool]:
    """Return the words and the truth of the target `ratio >= bound`.

    >>> at_least(25.0, 20)
    ('>= 20', True)
    """
    return f">= {bound:g}", ratio >= bound


def at_most(ratio: float, bound: float) -> tuple[str, bool]:
    """Return the words and the truth of the target `ratio <= bound`.

    >>> at_most(9.0, 8)
    ('<= 8', False)
    """
    return f"<= {bound:g}", ratio <= bound


def print_table(title: str, rows: Sequence[Row], *, notes: Sequence[str] = ()) -> bool:
    """Print the rows and the notes under them; return whether every promised target was reached."""
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    table.add_column("unit")
    for column in ("us", "peer", "limit", "ratio", "target"):
        table.add_column(column, justify="right")
    table.add_column("reached")
    for row in rows:
        reached = "" if row.reached is None else ("yes" if row.reached else "NO")
        figures = (_figure(row.us), _figure(row.peer), _figure(row.limit), _figure(row.ratio))
        table.add_row(row.name, row.unit, *figures, row.target, reached)
    console = Console(width=120)
    console.print(table)
    for note in notes:
        console.print(f"  {note}", highlight=False)
    return all(row.reached is not False for row in rows)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
