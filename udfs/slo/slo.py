"""One service level objective, checked and ready: what is counted, against which target, and who is told."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from schemas.judge_report import QUALIFYING_F1
from schemas.verdicts import VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Side
from udfs.slo.budgeting import Budgeting, Method
from udfs.slo.burn_rules import BurnRule, refuse_unreachable
from udfs.slo.counts import MOST_ROLLING_MS
from udfs.slo.identity import identity
from udfs.slo.indicators import SAMPLED_UNIT, Indicator, Quantile, Ratio, Throughput
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.periods import MINUTE_MS, Calendar, Period


@dataclass(frozen=True, slots=True)
class WindowRule:
    """What a window of `window_ms`, every `slide_ms`, must keep to: a figure beyond `limit` is a breach.

    The figure of a `Ratio` is the share of bad events, of a `Quantile` the quantile, of a `Throughput` events a second.
    `is_point`: the window, kept or breached, is one event of the budget (OpenSLO's thresholdMetric). With fewer than
    `min_events` events there is no figure. `equal_breaches`: where the figure must be strictly within the limit.
    """

    limit: float
    wrong_side: Side
    window_ms: int
    slide_ms: int
    min_events: int = 1
    is_point: bool = False
    equal_breaches: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """What the judge of a score has shown on a validation set; None where nobody said."""

    f1: float | None

    @property
    def is_qualified(self) -> bool:
        """Whether its scores count."""
        return self.f1 is not None and self.f1 >= QUALIFYING_F1


@dataclass(frozen=True)
class AlertText:
    """What the SLO file says about alerts, for the alert job to lay over its rule. `severity` is the window's."""

    owner: str = ""
    runbook_url: str = ""
    severity: str = "page"
    firing_after_windows: int = 1
    resolved_after_windows: int = 3

    def evidence(self, alertname: str, severity: str, firing_after_windows: int) -> dict[str, Any]:
        """Return `evidence.alert` of a verdict, as `udfs.alerts.rule_overrides` reads it: null leaves the rule's own.

        An alert on a service level is never suppressed (spec A4).
        """
        return {
            "alertname": alertname,
            "severity": severity,
            "owner": self.owner or None,
            "runbook_url": self.runbook_url or None,
            "firing_after_windows": firing_after_windows,
            "resolved_after_windows": self.resolved_after_windows,
            "never_suppress": True,
        }


@dataclass(frozen=True)
class Slo:
    """An SLO of one objective. Raises ValueError for a target outside [0, 1), an unreachable factor, a period too long.

    `min_events` is in what the budget counts: events, or time slices. `frame` names its verdicts; its feature is filled
    in. Every `evaluate_ms` budget and burn rates are told. `source` is the topic of its events.
    """

    name: str
    service: str
    indicator: Indicator
    target: float
    period: Period
    frame: Frame
    budgeting: Budgeting = field(default_factory=Budgeting)
    burn_rules: tuple[BurnRule, ...] = ()
    window: WindowRule | None = None
    min_events: int = 1
    evaluate_ms: int = MINUTE_MS
    judge: Judge | None = None
    alert: AlertText = field(default_factory=AlertText)
    source: str = "requests"
    quiet_ms: int = 60 * MINUTE_MS

    def __post_init__(self) -> None:
        refuse_unreachable(self.burn_rules, self.target)
        if self.period.length_ms > MOST_ROLLING_MS:
            raise ValueError(f"a period of {self.period.name} is longer than a year")
        if self.window is None and isinstance(self.indicator, Quantile | MetricQuantile | Throughput):
            raise ValueError("a quantile or a throughput needs a window")

    @cached_property
    def counted_by(self) -> bytes:
        """8 bytes that name what its counts are of: another indicator, method, time zone or point counts anew.

        Target, rules and texts may change and the counts go on.
        """
        point = self.window if self.window is not None and self.window.is_point else None
        what = (self.source, self.indicator, self.budgeting, self.period.zone, self.start_of_day, point)
        return hashlib.blake2b(identity(what), digest_size=8).digest()

    @property
    def is_sampled(self) -> bool:
        """Whether its events are a sample, each counting for several."""
        return isinstance(self.indicator, Ratio) and self.indicator.chance is not None

    @property
    def event_unit(self) -> int:
        """What one event counts for in a tally."""
        return SAMPLED_UNIT if self.is_sampled else 1

    @property
    def estimates_budget(self) -> bool:
        """Whether its budget is in events that were estimated from a sample."""
        return self.is_sampled and self.budgeting.method is Method.OCCURRENCES

    @property
    def budget_unit(self) -> int:
        """What one event, or one slice, counts for in its budget."""
        return self.event_unit if self.estimates_budget else self.budgeting.unit

    @property
    def group_by(self) -> tuple[str, ...]:
        """The labels that tell its series apart."""
        return self.frame.group_by

    @property
    def figure(self) -> str:
        """What a window's figure is: `p95`, `bad_ratio` or `per_second`."""
        if isinstance(self.indicator, Quantile | MetricQuantile):
            return self.indicator.name
        return "per_second" if isinstance(self.indicator, Throughput) else "bad_ratio"

    def about(self, what: str, window_ms: int, slide_ms: int) -> Frame:
        """Return the frame of verdicts on `what(NAME)`."""
        frame = self.frame.about(f"{what}({self.name})", VerdictKind.SLO)
        return replace(frame, window_ms=window_ms, slide_ms=slide_ms)

    @property
    def start_of_day(self) -> tuple[int, int]:
        """(minute, hour) at which its hours and days begin."""
        return (self.period.start.minute, self.period.start.hour) if isinstance(self.period, Calendar) else (0, 0)
