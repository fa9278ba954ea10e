"""Burn rate: how many times faster than allowed the error budget is being spent.

    burn rate = (1 - good / total) / (1 - target)

1 spends exactly the whole budget in the budget's period; 0 spends nothing; the most there is, all events bad, is
1 / (1 - target). Source: Beyer, Murphy, Rensin, Kawahara & Thorne, "The Site Reliability Workbook", chapter 5; spec S3.
"""

import math
from decimal import Decimal
from functools import lru_cache
from numbers import Real

from schemas.status import Status

GOOD_GT_TOTAL = "good_gt_total"
NOT_A_COUNT = "not_a_count"


@lru_cache(maxsize=4096)
def allowed_error_ratio(target: float) -> float:
    """Return 1 - target, rounded once: 0.01 for 0.99, where float64 alone gives 0.010000000000000009.

    Raises ValueError where the target is not from 0, below 1: at 1 there is no budget to burn.

    >>> allowed_error_ratio(0.99)
    0.01
    >>> allowed_error_ratio(1.0)
    Traceback (most recent call last):
    ...
    ValueError: target must be in [0,1), not 1.0
    """
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 <= target < 1:
        raise ValueError(f"target must be in [0,1), not {target!r}")
    return float(1 - Decimal(repr(float(target))))


def highest_burn_rate(target: float) -> float:
    """Return the burn rate when every event is bad: no factor above it can ever be reached.

    >>> highest_burn_rate(0.9)
    10.0
    """
    return 1.0 / allowed_error_ratio(target)


def counts_status(good: float, total: float) -> tuple[Status, tuple[str, ...]]:
    """Return what can be said of counts, and the flags of what is wrong with them.

    `ok`; `no_data` where nothing was counted; `invalid` where a count is negative, NaN or infinite, or where more good
    ones than ones at all were counted (counters that reset, or are read at different instants).

    >>> counts_status(120, 100)
    (<Status.INVALID: 'invalid'>, ('good_gt_total',))
    """
    for count in (good, total):
        is_number = isinstance(count, Real) and not isinstance(count, bool)
        if not is_number or not math.isfinite(count) or count < 0:
            return Status.INVALID, (NOT_A_COUNT,)
    if good > total:
        return Status.INVALID, (GOOD_GT_TOTAL,)
    return (Status.OK if total else Status.NO_DATA), ()


def error_ratio(good: float, total: float) -> float | None:
    """Return the share of bad events, 0..1; None where `counts_status` is not `ok`.

    >>> error_ratio(199, 200), error_ratio(0, 0), error_ratio(120, 100)
    (0.005, None, None)
    """
    return (total - good) / total if counts_status(good, total)[0] is Status.OK else None


def burn_rate(good: float, total: float, target: float) -> float | None:
    """Return the burn rate of `good` events among `total` under `target`; None where there is none. O(1).

    None without traffic and where the counts can't be; never NaN, never infinite, never negative. Raises ValueError
    where the target is not from 0, below 1.

    >>> burn_rate(199, 200, 0.99), burn_rate(0, 0, 0.99), burn_rate(120, 100, 0.99)
    (0.5, None, None)
    """
    allowed = allowed_error_ratio(target)
    ratio = error_ratio(good, total)
    return None if ratio is None else ratio / allowed
