"""The exact p-value of the two-sample Kolmogorov-Smirnov test, and its logarithm where it underflows.

Under the null hypothesis every lattice path from (0, 0) to (m, n) is equally likely: a step right for a reference
value, a step up for a window value. p is the share of paths that somewhere reach |x / m - y / n| >= D. Ties are taken
as if there were none, as scipy does, which makes p conservative (too large) on tied data.

Source: Hodges, "The significance probability of the Smirnov two-sample test", Arkiv for Matematik 3, 1958.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from udfs.statistics.kolmogorov import LN_10, SMALLEST_SAFE_P

LARGEST_AUTO_SIZE = 10_000
"""Up to this many values on both sides `auto` is exact (scipy's MAX_AUTO_N)."""


def steps_of(statistic: float, n_reference: int, n_window: int) -> int:
    """Return h where D = h / lcm(m, n): every D that can occur is such a fraction.

    >>> steps_of(0.2, 5, 5)
    1
    """
    return round(statistic * math.lcm(n_reference, n_window))


def is_exact_possible(n_reference: int, n_window: int) -> bool:
    """Say whether scipy would count paths: lcm(m, n) must stay below 2**31 - 1.

    >>> is_exact_possible(10_000, 9_999), is_exact_possible(100_003, 99_991)
    (True, False)
    """
    return math.lcm(n_reference, n_window) < np.iinfo(np.int32).max


def exact_p_value(steps: int, n_reference: int, n_window: int) -> tuple[float, float] | None:
    """Return (p, log10 p) of D = `steps` / lcm(m, n), or None where scipy's own count fails.

    p is scipy's, so bit-equal, and may be 0.0; log10 p is finite. Raises ValueError where no two samples of these
    sizes have this D. O(m n) time at most, O(band) where D is small: 0.03 s for 10,000 against 9,999 at D = 0.02,
    about a second at D = 0.9.

    >>> p, log10_p = exact_p_value(4, 5, 5)
    >>> round(p, 12), round(log10_p, 12)
    (0.079365079365, -1.100370545118)
    """
    from scipy.stats import ks_2samp  # at first use: slow to import, and few need it

    gcd = math.gcd(n_reference, n_window)
    if 2 * steps < (n_reference + n_window) // gcd - 1:  # every path goes this far: only ties can give so small a D
        return 1.0, 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        test = ks_2samp(*_samples_with(steps, n_reference, n_window), method="exact")
    if any(issubclass(w.category, RuntimeWarning) for w in caught):
        return None
    if steps_of(float(test.statistic), n_reference, n_window) != steps:
        raise ValueError(f"no samples of {n_reference} and {n_window} values have D = {steps} / lcm")
    p = float(test.pvalue)
    if p > SMALLEST_SAFE_P:
        return p, math.log10(p)
    return p, log10_exact_tail(n_reference, n_window, steps)


def _samples_with(steps: int, n_reference: int, n_window: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two samples without ties whose D is `steps` / lcm: scipy counts paths only for samples.

    They are the path that goes right wherever that keeps it at or under the upper bound. Any lattice point on the bound
    lies on it. It never touches the lower bound, because along (m + n) / gcd steps the height above the diagonal takes
    as many different values, all of them within (h - (m + n) / gcd, h].
    """
    gcd = math.gcd(n_reference, n_window)
    up = np.arange(n_window)
    right = np.minimum((steps + up * (n_reference // gcd)) // (n_window // gcd), n_reference)
    return np.arange(n_reference, dtype=np.float64), right - 0.5


def log10_exact_tail(n_reference: int, n_window: int, steps: int) -> float:
    """Return log10 of twice the one-sided exact tail P(D+ >= steps / lcm), for p below 10**-100 or so.

    There the paths that touch both bounds are a share below p**2 and are left out. Every path that touches the upper
    bound first does so at one of the points (x_y, y); the share of paths through each is the count of paths to it that
    stay inside, by one linear filter a row, times the closed count of paths onward. The counts of a row span thousands
    of decades, so they are held as probabilities of a random walk that drifts towards the likeliest first touch: what
    underflows then is negligible. O(m n) time, O(max(m, n)) memory.

    >>> round(log10_exact_tail(1000, 1000, 1000), 10)
    -600.0103321091
    """
    n, m = sorted((n_reference, n_window))
    gcd = math.gcd(m, n)
    first_x = -(-(steps + np.arange(n + 1) * (m // gcd)) // (n // gcd))
    x = first_x[first_x <= m]
    y = np.arange(x.size)
    onward = _log_paths(m - x, n - y)
    likeliest = int(np.argmax(_log_paths(x, y) + onward))
    right = (x[likeliest] + 1.0) / (x[likeliest] + likeliest + 2.0)
    log_inside = _log_inside(x - 1, right) - (x - 1) * math.log(right) - y * math.log1p(-right)
    log_share = logsumexp(log_inside + onward) - _log_paths(np.array(m), np.array(n))
    return float((math.log(2.0) + log_share) / LN_10)


def _log_inside(x: NDArray[np.int64], right: float) -> NDArray[np.float64]:
    """Return, for each row y, the log of the walk's probability of passing (x[y], y) without having touched.

    The walk steps right with probability `right`, else up; a row's cells end at x[y].
    """
    from scipy.signal import lfilter  # at first use: slow to import, and few need it

    row = np.zeros(x[-1] + 1)
    row[: x[0] + 1] = right ** np.arange(x[0] + 1)
    last = np.empty(x.size)
    last[0] = row[x[0]]
    for y in range(1, x.size):
        end = x[y] + 1
        row[:end] = lfilter([1.0 - right], [1.0, -right], row[:end])
        last[y] = row[x[y]]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(last))


def _log_paths(right: NDArray[np.int64], up: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(right + up + 1.0) - gammaln(right + 1.0) - gammaln(up + 1.0))
