"""Is traffic split as planned? The rule of spec E1, one window of one assignment epoch at a time.

A window is bad when the share of some arm is off its plan by more than the tolerance *and* the sequential p of the
epoch is below alpha. The share alone is useless: at 100 requests, split evenly by plan and in fact, it is off by more
than three points in 48 % of windows. p alone never forgets: it stays low after the split was mended. Together they say
"off now, and not by chance".

Shares and tests are among the plan's own arms: a request of another arm, or of none, is a finding of its own and must
not spoil the epoch's p for good.
"""

import math
from collections.abc import Mapping
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.experiments.arm_sketch import UNASSIGNED
from udfs.experiments.plan import SplitPlan
from udfs.judging.frame import Frame, Policy
from udfs.statistics.result import TestResult
from udfs.statistics.sample_ratio import SequentialSampleRatio, sample_ratio_chi_square

TEST, METHOD = "sequential_sample_ratio", "anytime_valid"


def split_verdict(
    frame: Frame,
    plan: SplitPlan,
    window_end_ms: int,
    *,
    epoch: str,
    counts: Mapping[str, int],
    test: SequentialSampleRatio,
) -> Verdict:
    """Return the verdict on one window: `counts` by arm of the epoch; `test` has seen them too.

    `statistic` and `effect` are the largest distance of an arm's share from its plan, `p_value` the epoch's sequential
    one. No requests: `no_data`; fewer in planned arms than the plan's `min_samples`: `low_traffic`. O(arms).
    """
    shares = plan.shares_of(epoch)
    planned = {arm: counts.get(arm, 0) for arm in shares}
    result = _result(plan, epoch, planned, counts, test)
    is_ok = result.status is Status.OK
    bad = result.effect > plan.tolerance and test.p_value < plan.alpha if result.effect is not None else None
    n = sum(planned.values())
    evidence: dict[str, Any] = {
        "epoch": epoch,
        "n_since_epoch": sum(int(total) for total in test.counts.values()),
        "arms": [_arm(arm, share, planned[arm], n if is_ok else 0, test) for arm, share in shares.items()],
        "n_other_arms": sum(count for arm, count in counts.items() if arm not in planned and arm != UNASSIGNED),
        "log_bayes_factor": test.log_bayes_factor if is_ok else None,
        "window_chi_square_p_value": sample_ratio_chi_square(planned, shares).p_value if is_ok else None,
    }
    policy = Policy(alpha=plan.alpha, threshold=plan.tolerance)
    return frame.verdict(
        [plan.experiment], window_end_ms, result, test=TEST, drifted=bad, policy=policy, evidence=evidence
    )


def largest_deviation(planned: Mapping[str, int], shares: Mapping[str, float]) -> float:
    """Return the largest distance of an arm's share from its planned share; there must be requests.

    Rounded to 12 decimals: 0.53 is not more than 0.03 off 0.5, though it is in float64.

    >>> largest_deviation({"a": 90, "b": 10}, {"a": 0.95, "b": 0.05})
    0.05
    """
    n = sum(planned.values())
    return max(round(math.fabs(planned[arm] / n - share), 12) for arm, share in shares.items())


def _result(
    plan: SplitPlan, epoch: str, planned: Mapping[str, int], counts: Mapping[str, int], test: SequentialSampleRatio
) -> TestResult:
    n, unassigned = sum(planned.values()), counts.get(UNASSIGNED, 0)
    if n < plan.min_samples:
        status = Status.LOW_TRAFFIC if sum(counts.values()) else Status.NO_DATA
        return TestResult.without_figures(status, method=METHOD, n_reference=0, n_window=n, n_window_null=unassigned)
    deviation = largest_deviation(planned, plan.shares_of(epoch))
    return TestResult(
        statistic=deviation,
        p_value=test.p_value,
        log10_p_value=test.log10_p_value,
        effect=deviation,
        degrees_of_freedom=len(planned) - 1,
        n_reference=0,
        n_window=n,
        n_reference_null=0,
        n_window_null=unassigned,
        n_infinite=0,
        method=METHOD,
        status=Status.OK,
    )


def _arm(arm: str, share: float, n: int, of: int, test: SequentialSampleRatio) -> dict[str, Any]:
    """One arm by plan, in the window, and since the epoch began; no share of a window that is not judged."""
    return {
        "arm": arm,
        "planned_share": share,
        "n": n,
        "share": n / of if of else None,
        "n_since_epoch": int(test.counts[arm]),
    }
