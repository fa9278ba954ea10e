"""The measurement as people read it."""

from collections import Counter

from rich.console import Console
from rich.table import Table

from infra.quiet.measured import OURS, STATIC, Goals, Measured, share
from infra.quiet.score import Score

FORMULA = (
    "precision = true alerts / alerts; recall = incidents found / incidents; "
    "delay = (first true alert - begin of the incident) / window; reduction = 1 - our false alarms / the static rule's"
)


def print_measured(console: Console, measured: Measured) -> None:
    """Print the table of rules, then what was false and what was missed."""
    table = Table(title=measured.title, title_justify="left")
    table.add_column("rule")
    for column in ("alerts", "false alarms", "missed", "precision", "recall", "median delay"):
        table.add_column(column, justify="right")
    for name, found in measured.scores.items():
        table.add_row(name, *_figures(found))
    console.print(table)
    console.print(f"reduction of false alarms: {share(measured.reduction)}", highlight=False)
    console.print(FORMULA, highlight=False)
    for name in (OURS, STATIC):
        false = Counter(alarm.name for alarm in measured.scores[name].false_alarms)
        told = ", ".join(f"{feature} {count}" for feature, count in false.most_common()) or "none"
        console.print(f"false alarms, {name}: {told}", highlight=False, markup=False)
    for note in measured.notes:
        console.print(note, highlight=False, markup=False)


def print_kinds(console: Console, measured: Measured) -> None:
    """Print, for each kind of incident, how many each rule found, and how soon."""
    table = Table(title="by kind of incident", title_justify="left")
    table.add_column("kind")
    for column in ("incidents", "found by ours", "delay", "found by static", "delay"):
        table.add_column(column, justify="right")
    for kind in sorted({span.kind for span in measured.scores[OURS].incidents}):
        ours, static = (measured.of_kind(kind).scores[name] for name in (OURS, STATIC))
        row = (len(ours.incidents), len(ours.found), _delay(ours), len(static.found), _delay(static))
        table.add_row(kind, *map(str, row))
    console.print(table)


def print_goals(console: Console, measured: Measured, goals: Goals) -> bool:
    """Print each goal and whether it was reached; return whether all were."""
    reached = measured.goals(goals)
    for words, holds in reached:
        console.print(f"  {'yes' if holds else 'NO '}  {words}", highlight=False)
    return all(holds for _, holds in reached)


def _figures(found: Score) -> tuple[str, ...]:
    return (
        str(found.n_alerts),
        str(len(found.false_alarms)),
        f"{len(found.missed)} of {len(found.incidents)}",
        share(found.precision),
        share(found.recall),
        _delay(found),
    )


def _delay(found: Score) -> str:
    return "-" if found.median_delay_windows is None else f"{found.median_delay_windows:.2f}"
