"""Two live samples, each as a log sketch: whether they differ, with what the sketches leave open said.

The exact D lies in an interval (`udfs.sketches.log.ks_interval`). They differ if even its lower end says so; if only
its upper end does, the verdict is `inconclusive`, never a pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.status import Status
from udfs.budget.binned import BinnedThreshold
from udfs.budget.pairs import PairBudget
from udfs.judging.frame import Policy
from udfs.judging.promised import promised
from udfs.sketches.log import LogSketch, ks_interval
from udfs.statistics.judgement import is_drifted
from udfs.statistics.ks import Method, ks_from_statistic, ks_p_value
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
    policy: Policy


@dataclass(frozen=True, slots=True)
class PairPromise:
    """What a false-alarm budget makes of a pair: its thresholds, whose series it is, and why nothing is promised."""

    budget: PairBudget
    labels: Sequence[str]
    reason: str = ""


def compare_streams(
    reference: LogSketch, window: LogSketch, policy: PairPolicy, promise: PairPromise | None = None
) -> Compared:
    """Compare two sketches of one accuracy; raises ValueError on two accuracies. O(bins), plus two p-values.

    With a `promise` alpha is the one that keeps the budget for windows of these sizes, at the certain end of D.

    >>> a, b = LogSketch.from_values(range(1, 201)), LogSketch.from_values(range(101, 301))
    >>> compared = compare_streams(a, b, PairPolicy())
    >>> compared.drifted, compared.evidence["ks_interval"][0] <= 0.5 <= compared.evidence["ks_interval"][1]
    (True, True)
    """
    interval = ks_interval(reference, window)
    if interval is None or min(reference.n, window.n) < policy.min_samples:
        unknown = _without_figures(Status.INSUFFICIENT_DATA, reference, window, policy)
        return Compared(unknown, None, {}, Policy(policy.alpha, policy.min_effect))
    said, evidence = Policy(policy.alpha, policy.min_effect), {}
    if promise is not None:
        threshold = promise.budget.at(reference.n, window.n)
        policy, said = _promised_policy(policy, threshold, reference.n, window.n)
        threshold = replace(threshold, kept=False, reason=promise.reason) if promise.reason else threshold
        evidence = promised(threshold, promise.labels)
    low, high = (_result(end, reference, window, policy) for end in interval)
    at_low, at_high = (is_drifted(end, alpha=policy.alpha, min_effect=policy.min_effect) for end in (low, high))
    evidence = {"ks_interval": list(interval), "p_value_interval": [high.p_value, low.p_value]} | evidence
    if at_high and not at_low:
        return Compared(_without_figures(Status.INCONCLUSIVE, reference, window, policy), None, evidence, said)
    return Compared(low, at_low, evidence, said)


def _promised_policy(policy: PairPolicy, threshold: BinnedThreshold, m: int, n: int) -> tuple[PairPolicy, Policy]:
    """The policy with the budget's alpha, and what a verdict says of it: no alpha where no p is below it."""
    alpha = ks_p_value(min(threshold.level, 1.0), m, n, method=policy.method)[0]
    said = Policy(alpha or None, policy.min_effect, max(threshold.level, policy.min_effect))
    return replace(policy, alpha=alpha), said


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
