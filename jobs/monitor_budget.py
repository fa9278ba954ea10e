"""Among what a monitor's false-alarm budget is divided (spec D2, D11), and what is said of it.

A budget is that of each series, so that nobody must know how many there will be. Its tests share it, over the series
itself and its slices. Where `expected_series` is given it is one budget of all series together, and no more than so
many are judged: those beyond are pooled (`udfs.slicing.series_cap`), whose verdicts say that nothing is promised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COMPARED = {"two_streams": ("expected_labels", 3)}
"""Tests with a verdict for each of several labels: the field that says of how many, and its default."""
UNBUDGETED = frozenset({"limit", "version_semantics"})
"""Tests whose limit the user sets and that no chance explains: docs/statistics.md has why."""


@dataclass(frozen=True)
class DividedBudget:
    """One monitor's part: `text` is the whole budget, and each test of one series has one of `shares` equal parts.

    `series` is how many series share the budget, None where each has its own. `most_series` is how many may be judged
    so that no more than was promised adds up; None where that needs no cap.
    """

    text: str
    shares: int
    series: int | None
    most_series: int | None

    def words(self, series: int) -> str:
        """Say what is promised, where `series` series live.

        >>> print(DividedBudget("1 per 30d", 3, None, None).words(20))
        1 per 30d for each series, divided by 3 (tests x series and slices); 20 series: 20 times that in all
        >>> print(DividedBudget("1 per 30d", 30, 10, 10).words(20))
        1 per 30d for all series together, divided by 30 (tests x series and slices); more than 10 series are pooled
        """
        whose = "each series" if self.series is None else "all series together"
        told = f"{self.text} for {whose}, divided by {self.shares:,} (tests x series and slices)"
        if self.most_series is not None:
            return f"{told}; more than {self.most_series:,} series are pooled"
        return told if series == 1 else f"{told}; {series:,} series: {series:,} times that in all"


def divided_budget(fields: Mapping[str, Any]) -> DividedBudget | None:
    """Return how the budget of a monitor is divided; None where it has none. `fields` are those of its YAML.

    `slice_of` names the label that a slice has beside its monitor's: each monitor's slices are monitors themselves. A
    monitor and its slices have equal parts; that of a slice holds `expected_slice_values` values a series.

    >>> common = {"false_alarms": "1 per 30d", "features": ["a", "b"], "tests": [], "slices": ["tenant"]}
    >>> whole = common | {"expected_series": 10, "expected_slice_values": 5}
    >>> divided_budget(whole).shares, divided_budget(whole | {"slice_of": "tenant"}).shares
    (40, 200)
    """
    if not fields["false_alarms"]:
        return None
    series, is_slice = fields["expected_series"], bool(fields.get("slice_of"))
    most = (series or 1) * (fields["expected_slice_values"] if is_slice else 1)
    tests = max(1, len(fields["features"]) + sum(map(_compared, fields["tests"])))
    has_cap = is_slice or series is not None
    shares = tests * most * (1 + len(fields["slices"]))
    return DividedBudget(fields["false_alarms"], shares, series, most if has_cap else None)


def budgeted_tests(fields: Mapping[str, Any]) -> list[Any]:
    """Those of `tests` whose threshold a false-alarm budget chooses."""
    return [body for body in fields["tests"] if _compared(body)]


def _compared(body: Any) -> int:
    """How many parts of a budget one of `tests` has: none where it isn't governed, or is no test at all."""
    name = body.get("test") if isinstance(body, dict) else None
    if name is None or name in UNBUDGETED:
        return 0
    field, default = COMPARED.get(str(name), ("", 1))
    found = body.get(field, default)
    return found if isinstance(found, int) and found > 0 else 1
