"""The asymptotic p-value of the two-sample Kolmogorov-Smirnov test, and the D at which it crosses an alpha.

The p-value is scipy's `ks_2samp(..., method="asymp")`: the upper tail of Kolmogorov's one-sample distribution at the
effective size N = round(m n / (m + n)), computed faster (`kolmogorov_tail.py`). It is not Kolmogorov's limit
distribution, and it is not exact: near p = 0.01 it may be a third too small at m = n = 30 (docs/statistics.md).
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import kolmogi, logsumexp

from udfs.statistics.kolmogorov_tail import one_sided_log_terms, two_sided_tail, two_sided_tails

LN_10 = math.log(10)
SMALLEST_SAFE_P = 1e-280
"""Below this a p-value's float64 is about to lose digits, and its logarithm is computed afresh."""


def effective_size(n_reference: int, n_window: int) -> int:
    """Return round(m n / (m + n)), half to even as scipy rounds; 0 for one value against one.

    >>> effective_size(1000, 1000), effective_size(1, 1)
    (500, 0)
    """
    larger, smaller = float(max(n_reference, n_window)), float(min(n_reference, n_window))
    return round(larger * smaller / (larger + smaller))


def asymptotic_p_value(statistic: float, n_reference: int, n_window: int) -> tuple[float, float]:
    """Return (p, log10 p) of `statistic`; p is scipy's within 1e-10 and may be 0.0, log10 p is finite.

    The distribution has no mass at D = 1, so there log10 p is taken half a step of D lower, at 1 - 1 / (2 lcm(m, n)):
    finite, and below that of every smaller D. Needs an effective size of 1 or more (ValueError). Time and memory are
    those of `kolmogorov_tail.two_sided_tail`: 3 microseconds where nothing drifted.

    >>> p, log10_p = asymptotic_p_value(0.061, 1000, 1000)
    >>> round(p, 12), round(log10_p, 9)
    (0.046421401496, -1.333281752)
    """
    size = effective_size(n_reference, n_window)
    if size < 1:
        raise ValueError("the asymptotic p-value needs m n / (m + n) to round to 1 or more")
    p = two_sided_tail(size, statistic)
    if p > SMALLEST_SAFE_P:
        return p, math.log10(p)
    # Where it is this small, the two-sided tail is twice the one-sided.
    below_one = min(statistic, 1.0 - 0.5 / math.lcm(n_reference, n_window))
    return p, float((math.log(2.0) + logsumexp(one_sided_log_terms(size, below_one))) / LN_10)


def asymptotic_p_values(
    statistics: Sequence[float], n_reference: int, n_windows: Sequence[int]
) -> list[tuple[float, float] | None]:
    """Return (p, log10 p) of many windows against one reference; None where there is no asymptotic p-value.

    Where nothing drifted, about 1 microsecond each.

    >>> asymptotic_p_values([0.061, 1.0], 1000, [1000, 1])[0] == asymptotic_p_value(0.061, 1000, 1000)
    True
    """
    n = np.array(n_windows, dtype=np.float64)
    sizes = np.rint(n_reference * n / np.maximum(n_reference + n, 1.0)).astype(np.int64).tolist()
    tails = two_sided_tails(sizes, statistics)
    return [
        (p, math.log10(p)) if p > SMALLEST_SAFE_P else asymptotic_p_value(d, n_reference, n) if size else None
        for p, d, n, size in zip(tails, statistics, n_windows, sizes, strict=True)
    ]


def critical_statistic(alpha: float, n_reference: int, n_window: int) -> float:
    """Return the D above which the asymptotic p-value is below `alpha`: the threshold shown beside a D.

    Raises ValueError unless 0 < alpha < 1 and the effective size is 1 or more. About 1 ms.

    >>> round(critical_statistic(0.01, 1000, 1000), 5)
    0.07243
    """
    size = effective_size(n_reference, n_window)
    if size < 1:
        raise ValueError("the critical D needs m n / (m + n) to round to 1 or more")
    from scipy.stats import kstwo  # at first use: slow to import, and few need it

    return float(kstwo.isf(_checked(alpha), size))


def critical_constant(alpha: float) -> float:
    """Return the two-sided c(alpha): for large m and n, p < alpha where D > c sqrt((m + n) / (m n)).

    The often quoted sqrt(-ln(alpha) / 2) is the one-sided constant; used for a two-sided test it raises 8 % of false
    alarms at a nominal 5 %. Raises ValueError unless 0 < alpha < 1.

    >>> round(critical_constant(0.05), 7)
    1.3580986
    """
    return float(kolmogi(_checked(alpha)))


def _checked(alpha: float) -> float:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be above 0 and below 1, not {alpha}")
    return alpha
