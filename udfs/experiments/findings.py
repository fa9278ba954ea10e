"""What a split test can't say: traffic in arms that no plan has, arms without traffic, users in two arms."""

import math
from collections.abc import Mapping
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.experiments.arm_sketch import UNASSIGNED
from udfs.experiments.plan import SplitPlan
from udfs.experiments.sticky import UserArms
from udfs.judging.frame import Frame, Policy
from udfs.judging.measured import Measured, measured_verdict
from udfs.statistics.result import TestResult

MOST_ARMS_NAMED = 10


def unknown_arm_verdict(
    frame: Frame, plan: SplitPlan, window_end_ms: int, epoch: str, counts: Mapping[str, int]
) -> Verdict:
    """Say which share of the window's assigned requests is in arms that the plan doesn't have. O(arms log arms).

    A misspelt arm, a forgotten one, or one of a plan that was never declared. Without any such request: `no_data`.
    """
    assigned = {arm: n for arm, n in counts.items() if arm != UNASSIGNED and n}
    unknown = {arm: n for arm, n in assigned.items() if arm not in plan.shares_of(epoch)}
    most = sorted(unknown.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST_ARMS_NAMED]
    evidence = {"epoch": epoch, "n_arms": len(unknown), "arms": [{"arm": arm, "n": n} for arm, n in most]}
    share = _share(
        sum(unknown.values()),
        sum(assigned.values()),
        threshold=plan.max_unplanned_share,
        n_null=counts.get(UNASSIGNED, 0),
        evidence=evidence,
    )
    return measured_verdict(frame, [plan.experiment], window_end_ms, share, test="unknown_arm", method="counted")


def sticky_verdict(
    frame: Frame, plan: SplitPlan, window_end_ms: int, *, epoch: str, users: UserArms, n_new: int, n_without_user: int
) -> Verdict:
    """Say which share of the epoch's users was in two arms or more. O(users).

    `users` are those of the whole epoch (or a sample by hash: `evidence.sampled_share` says so), `n_new` how many of
    them came into a second arm in this window, `n_without_user` the window's requests that name no user. No user ever:
    `no_data`.
    """
    evidence = {
        "epoch": epoch,
        "users": users.n,
        "users_in_two_arms": users.n_switched,
        "users_in_two_arms_new": n_new,
        "sampled_share": users.sampled_share,
    }
    share = _share(
        users.n_switched, users.n, threshold=plan.max_switched_share, n_null=n_without_user, evidence=evidence
    )
    method = "exact" if users.sampled_share == 1.0 else "sampled"
    return measured_verdict(frame, [plan.experiment], window_end_ms, share, test="sticky_assignment", method=method)


def silent_arm_verdict(
    frame: Frame, plan: SplitPlan, window_end_ms: int, *, epoch: str, n: int, n_since: Mapping[str, int]
) -> Verdict:
    """Say whether some arm has stayed without traffic for longer than chance explains.

    `n` are the window's requests in planned arms, `n_since` those of the epoch since the last window in which an arm
    had one. Under the plan an arm of share w stays without traffic through m requests with probability (1 - w)^m; p is
    the least of these times the number of arms. `tolerance` can't show it: an arm of 2 % that stops is off by only two
    points. `statistic` is m, `effect` w. No request in a planned arm: `no_data`.
    """
    shares = plan.shares_of(epoch)
    policy = Policy(alpha=plan.silent_probability)
    evidence: dict[str, Any] = {"epoch": epoch}
    result = TestResult.without_figures(Status.NO_DATA, method="geometric", n_reference=0, n_window=0)
    silent = None
    if n:
        logs = {arm: n_since[arm] * math.log1p(-share) / math.log(10) for arm, share in shares.items()}
        arm = min(shares, key=lambda name: (logs[name], name))
        log10_p_value = min(0.0, logs[arm] + math.log10(len(shares)))
        silent = log10_p_value < math.log10(plan.silent_probability)
        result = _geometric(n, n_since[arm], shares[arm], log10_p_value)
        evidence |= {"arm": arm, "arms_without_traffic": sorted(name for name in shares if n_since[name])}
    return frame.verdict(
        [plan.experiment], window_end_ms, result, test="silent_arm", drifted=silent, policy=policy, evidence=evidence
    )


def _geometric(n: int, n_since: int, share: float, log10_p_value: float) -> TestResult:
    return TestResult(
        statistic=float(n_since),
        p_value=10.0**log10_p_value,
        log10_p_value=log10_p_value,
        effect=share,
        degrees_of_freedom=None,
        n_reference=0,
        n_window=n,
        n_reference_null=0,
        n_window_null=0,
        n_infinite=0,
        method="geometric",
        status=Status.OK,
    )


def _share(part: int, n: int, *, threshold: float, n_null: int, evidence: dict[str, Any]) -> Measured:
    """Return the figure `part` of `n`: unknown where there is nothing to take a share of."""
    share = part / n if n else None
    return Measured(
        statistic=share,
        threshold=threshold,
        wrong_side="above",
        status=Status.OK if n else Status.NO_DATA,
        n_window=n,
        n_window_null=n_null,
        effect=share,
        evidence=evidence,
    )
