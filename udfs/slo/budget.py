"""Error budget: what share of the bad events that a period may have is still left.

    remaining = 1 - (bad / total) / (1 - target) * elapsed

`elapsed` is the share of a calendar period that has passed; its budget is for the traffic of the whole period, which is
taken to go on as so far. A rolling period has always passed whole. Below 0 the budget is overspent. Spec S3.
"""

from dataclasses import dataclass

from schemas.status import Status
from udfs.slo.burn_rate import allowed_error_ratio, burn_rate, counts_status, error_ratio


@dataclass(frozen=True, slots=True)
class Budget:
    """An error budget. The figures are None where `status` is not `ok`; none is ever NaN or infinite.

    `error_ratio` and `sli` are shares, 0..1. `burn_rate` is the whole period's. `remaining` is a share of the budget: 1
    untouched, 0 spent, below 0 overspent. `allowed_bad` and `bad` are counts so far. `flags` say what is wrong with the
    counts; such counts give no credit.
    """

    status: Status
    target: float
    good: float
    total: float
    bad: float | None = None
    allowed_bad: float | None = None
    error_ratio: float | None = None
    burn_rate: float | None = None
    remaining: float | None = None
    flags: tuple[str, ...] = ()

    @property
    def sli(self) -> float | None:
        """The share of good events, None where unknown."""
        return None if self.error_ratio is None else self.good / self.total

    @property
    def consumed(self) -> float | None:
        """The share of the budget that is spent, None where unknown."""
        return None if self.remaining is None else 1.0 - self.remaining

    @property
    def budget_remaining(self) -> float | None:
        """The same as `remaining`, by the name that verdicts have for it."""
        return self.remaining


def error_budget(
    good: float,
    total: float,
    target: float,
    *,
    elapsed: float = 1.0,
    min_events: float = 1,
    n_events: float | None = None,
) -> Budget:
    """Return the budget after `good` events among `total` under `target`. O(1).

    `no_data` without traffic, `low_traffic` below `min_events`, `invalid` where the counts can't be: then a budget has
    no figures, and so no credit. `n_events` is how many there really were where `total` is estimated from a sample.
    Raises ValueError where the target is not from 0, below 1, or `elapsed` not above 0, up to 1.

    >>> budget = error_budget(198, 200, 0.99)
    >>> budget.burn_rate, budget.remaining
    (1.0, 0.0)
    >>> bad = error_budget(120, 100, 0.99)
    >>> bad.status.value, bad.flags, bad.remaining
    ('invalid', ('good_gt_total',), None)
    """
    allowed = allowed_error_ratio(target)
    if not 0.0 < elapsed <= 1.0:
        raise ValueError(f"elapsed must be above 0, up to 1, not {elapsed}")
    status, flags = counts_status(good, total)
    if status is Status.OK and (total if n_events is None else n_events) < min_events:
        status = Status.LOW_TRAFFIC
    ratio, burn = error_ratio(good, total), burn_rate(good, total, target)
    if status is not Status.OK or ratio is None or burn is None:
        return Budget(status, target, good, total, flags=flags)
    return Budget(
        status,
        target,
        good,
        total,
        bad=total - good,
        allowed_bad=allowed * total,
        error_ratio=ratio,
        burn_rate=burn,
        remaining=1.0 - burn * elapsed,
    )
