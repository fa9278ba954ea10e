"""Two live samples, each as a log sketch: whether they differ, with what the sketches leave open said.

The exact D lies in an interval (`udfs.sketches.log.ks_interval`). They differ if even its lower end says so; if only
its upper end does, the verdict is `inconclusive`, never a pass.
"""

from dataclasses import dataclass
from typing import Any

from schemas.status import Status
from udfs.sketches.log import LogSketch, ks_interval
from udfs.statistics.judgement import is_drifted
from udfs.statistics.ks import Method, ks_from_statistic
from udfs.statistics.result import TestResult


@dataclass(frozen=True, slots=True)
class PairPolicy:
    """They differ when p < `alpha` and D >= `min_effect`; each side needs `min_samples` values."""

    alpha: float = 0.01
    min_effect: float = 0.05
    min_samples: int = 100
    method: Method = "asymptotic"


DEFAULT_PAIR_POLICY = PairPolicy()


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome: statistic and p are those of the interval's lower end, so that they never say too much."""

    result: TestResult
    drifted: bool | None
    evidence: dict[str, Any]


def compare_streams(reference: LogSketch, window: LogSketch, policy: PairPolicy) -> Compared:
    """Compare two sketches of one accuracy; raises ValueError on two accuracies. O(bins), plus two p-values.

    >>> a, b = LogSketch.from_values(range(1, 201)), LogSketch.from_values(range(101, 301))
    >>> compared = compare_streams(a, b, PairPolicy())
    >>> compared.drifted, compared.evidence["ks_interval"][0] <= 0.5 <= compared.evidence["ks_interval"][1]
    (True, True)
    """
    interval = ks_interval(reference, window)
    if interval is None or min(reference.n, window.n) < policy.min_samples:
        return Compared(_without_figures(Status.INSUFFICIENT_DATA, reference, window, policy), None, {})
    low, high = (_result(end, reference, window, policy) for end in interval)
    at_low, at_high = (is_drifted(end, alpha=policy.alpha, min_effect=policy.min_effect) for end in (low, high))
    evidence = {"ks_interval": list(interval), "p_value_interval": [high.p_value, low.p_value]}
    if at_high and not at_low:
        return Compared(_without_figures(Status.INCONCLUSIVE, reference, window, policy), None, evidence)
    return Compared(low, at_low, evidence)


def _result(statistic: float, reference: LogSketch, window: LogSketch, policy: PairPolicy) -> TestResult:
    return ks_from_statistic(
        statistic,
        reference.n,
        window.n,
        method=policy.method,
        n_reference_null=reference.n_null,
        n_window_null=window.n_null,
        n_infinite=window.n_infinite,
    )


def _without_figures(status: Status, reference: LogSketch, window: LogSketch, policy: PairPolicy) -> TestResult:
    return TestResult.without_figures(
        status,
        method=policy.method,
        n_reference=reference.n,
        n_window=window.n,
        n_reference_null=reference.n_null,
        n_window_null=window.n_null,
        n_infinite=window.n_infinite,
    )
