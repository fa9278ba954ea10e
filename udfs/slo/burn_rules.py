"""Multi-window, multi-burn-rate alerting: the workbook's rules as data, scaled to other periods, and judged.

A rule fires while the burn rate over its long window *and* over its short one is at least its factor: the long window
says that it matters, the short one that it still goes on. A factor is the burn rate at which `budget_share` of the
period's budget goes in the long window:

    factor = budget_share * period / long window

Source: "The Site Reliability Workbook", chapter 5, table 5-8; spec S3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from schemas.status import Status
from udfs.slo.burn_rate import burn_rate, counts_status, highest_burn_rate
from udfs.slo.periods import DAY_MS, HOUR_MS, MINUTE_MS, duration_text
from udfs.slo.ring import Counts

PAGE, TICKET = "page", "ticket"


@dataclass(frozen=True, slots=True)
class BurnRule:
    """Fires at `factor` over both windows (milliseconds, whole minutes)."""

    severity: str
    factor: float
    long_ms: int
    short_ms: int

    @property
    def name(self) -> str:
        """Such as `1h&5m`."""
        return f"{duration_text(self.long_ms)}&{duration_text(self.short_ms)}"


@dataclass(frozen=True, slots=True)
class _Row:
    severity: str
    budget_share: float
    long_ms: int
    short_ms: int


# Table 5-8, for a period of 30 days: 14.4, 6, 3 and 1.
_WORKBOOK = (
    _Row(PAGE, 0.02, HOUR_MS, 5 * MINUTE_MS),
    _Row(PAGE, 0.05, 6 * HOUR_MS, 30 * MINUTE_MS),
    _Row(TICKET, 0.10, DAY_MS, 2 * HOUR_MS),
    _Row(TICKET, 0.10, 3 * DAY_MS, 6 * HOUR_MS),
)
_WORKBOOK_PERIOD_MS = 30 * DAY_MS
# Below it the workbook's three days are too much of the period: 0.1 of 7 days in 3 would be a burn rate of 0.23.
_SHORTEST_FOR_ITS_WINDOWS_MS = 28 * DAY_MS
_LONGEST_FOR_ITS_WINDOWS_MS = 31 * DAY_MS


def burn_factor(budget_share: float, period_ms: int, window_ms: int) -> float:
    """Return the burn rate that spends `budget_share` of the budget of `period_ms` in `window_ms`.

    >>> [round(burn_factor(0.02, days * DAY_MS, HOUR_MS), 4) for days in (30, 28)]
    [14.4, 13.44]
    """
    return budget_share * period_ms / window_ms


def workbook_rules(period_ms: int, scaling: str | None = None) -> tuple[BurnRule, ...]:
    """Return the workbook's four rules for a period.

    `scaling` "factors" keeps the windows (1 h, 6 h, 1 d, 3 d) and scales the factors; "windows" keeps the factors
    (14.4, 6, 3, 1) and scales the windows, to whole minutes. Both spend the same shares of the budget. Without it:
    factors for 28 to 31 days, whose windows everybody knows, else windows. Raises ValueError on another word.

    >>> [round(rule.factor, 4) for rule in workbook_rules(28 * DAY_MS)]
    [13.44, 5.6, 2.8, 0.9333]
    >>> [(rule.factor, rule.name) for rule in workbook_rules(7 * DAY_MS)]
    [(14.4, '14m&1m'), (6.0, '84m&7m'), (3.0, '336m&28m'), (1.0, '1008m&84m')]
    """
    if scaling is None:
        keeps = _SHORTEST_FOR_ITS_WINDOWS_MS <= period_ms <= _LONGEST_FOR_ITS_WINDOWS_MS
        scaling = "factors" if keeps else "windows"
    if scaling == "factors":
        return tuple(
            BurnRule(row.severity, burn_factor(row.budget_share, period_ms, row.long_ms), row.long_ms, row.short_ms)
            for row in _WORKBOOK
        )
    if scaling != "windows":
        raise ValueError(f"burn rates scale by factors or windows, not {scaling!r}")
    return tuple(
        BurnRule(
            row.severity,
            burn_factor(row.budget_share, _WORKBOOK_PERIOD_MS, row.long_ms),
            _scaled(row.long_ms, period_ms),
            _scaled(row.short_ms, period_ms),
        )
        for row in _WORKBOOK
    )


def _scaled(window_ms: int, period_ms: int) -> int:
    return max(1, round(window_ms * period_ms / _WORKBOOK_PERIOD_MS / MINUTE_MS)) * MINUTE_MS


def refuse_unreachable(rules: Iterable[BurnRule], target: float) -> None:
    """Raise ValueError for a factor that even all events bad can't reach: such an alert would never fire.

    >>> refuse_unreachable([BurnRule("page", 14.4, HOUR_MS, 300_000)], 0.9)
    Traceback (most recent call last):
    ...
    ValueError: factor 14.4 of 1h&5m can't be reached: with every event bad the burn rate is 10
    """
    most = highest_burn_rate(target)
    for rule in rules:
        if rule.factor > most:
            raise ValueError(
                f"factor {rule.factor:g} of {rule.name} can't be reached: "
                f"with every event bad the burn rate is {most:g}"
            )


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What a rule says now. Burn rates are None where their window has no usable counts.

    `firing` only where `status` is `ok`. `low_traffic` where the long window has fewer than the minimum of events: a
    failure among three requests wakes nobody.
    """

    rule: BurnRule
    status: Status
    firing: bool
    long: Counts
    short: Counts
    burn_long: float | None
    burn_short: float | None

    @property
    def burn_rate(self) -> float | None:
        """The lesser of both windows, which decides."""
        if self.burn_long is None:
            return None
        return min(self.burn_long, self.burn_short or 0.0)


def judge_rule(
    rule: BurnRule, counts_of: Callable[[int], Counts], target: float, *, min_events: float = 1
) -> RuleOutcome:
    """Return what `rule` says, `counts_of` giving the counts of the last so many milliseconds. O(1).

    >>> few = {3_600_000: Counts(good=2, total=3), 300_000: Counts(good=0, total=1)}
    >>> outcome = judge_rule(BurnRule("page", 14.4, 3_600_000, 300_000), few.__getitem__, 0.999, min_events=100)
    >>> outcome.firing, outcome.status.value, round(outcome.burn_long, 3)
    (False, 'low_traffic', 333.333)
    """
    long, short = counts_of(rule.long_ms), counts_of(rule.short_ms)
    burn_long, burn_short = (burn_rate(counts.good, counts.total, target) for counts in (long, short))
    status, _ = counts_status(long.good, long.total)
    if status is Status.NO_DATA and long.invalid:
        status = Status.INVALID
    if status is Status.OK and long.n < min_events:
        status = Status.LOW_TRAFFIC
    firing = (
        status is Status.OK
        and burn_long is not None
        and burn_short is not None
        and burn_long >= rule.factor
        and burn_short >= rule.factor
    )
    return RuleOutcome(rule, status, firing, long, short, burn_long, burn_short)


def worst(outcomes: Sequence[RuleOutcome]) -> RuleOutcome:
    """Return the outcome that speaks for all of one severity: one that fires, else the nearest to firing, else why not.

    Raises ValueError where there is none.
    """
    return max(outcomes, key=lambda o: (o.firing, o.status is Status.OK, (o.burn_rate or 0.0) / o.rule.factor))
