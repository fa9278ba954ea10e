"""Fisher's exact test of a table of two rows and two columns, in log space.

Given the margins, the first cell is hypergeometric; p is the sum over all tables that are no more likely than the one
seen. It is exact where counts are small and Pearson's chi-square is not to be relied on. Equal to scipy's
`fisher_exact` (two-sided), with a logarithm that survives underflow.

Source: Fisher, "The logic of inductive inference", J. Royal Stat. Soc. 98, 1935.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

P_VALUES_KEPT = 4096
_AS_LIKELY = 1e-7  # tables this near to the one seen are as likely as it; scipy's rounding reserve
_SMALLEST_FLOAT_LOG = math.log(5e-324)


@lru_cache(maxsize=P_VALUES_KEPT)
def fisher_exact_p_value(k_reference: int, n_reference: int, k_window: int, n_window: int) -> tuple[float, float]:
    """Return (p, log10 p) for `k_reference` of `n_reference` against `k_window` of `n_window`, two-sided.

    p may underflow to 0.0, log10 p is finite. Raises ValueError unless 0 <= k <= n on both sides. O(smallest margin)
    time and memory, 0.1 ms for some hundred; good to about 8 digits up to a million values a side.

    >>> p, log10_p = fisher_exact_p_value(3, 1000, 5, 100)
    >>> round(p, 9), round(log10_p, 6)
    (0.000253196, -3.596543)
    >>> fisher_exact_p_value(0, 1000, 0, 10)
    (1.0, 0.0)
    """
    if not (0 <= k_reference <= n_reference and 0 <= k_window <= n_window):
        raise ValueError("a count must be from 0 to the number of values")
    n_all, k_all = n_reference + n_window, k_reference + k_window
    cells = np.arange(max(0, k_all - n_reference), min(k_all, n_window) + 1, dtype=np.float64)
    if cells.size < 2:
        return 1.0, 0.0
    likelihood = _log_choose(n_window, cells) + _log_choose(n_reference, k_all - cells)
    seen = likelihood[k_window - int(cells[0])]
    is_summed = likelihood <= seen + _AS_LIKELY
    if is_summed.all():
        return 1.0, 0.0
    log_p = float(logsumexp(likelihood[is_summed]) - _log_choose(n_all, np.float64(k_all)))
    log_p = min(log_p, 0.0)
    return (math.exp(log_p) if log_p > _SMALLEST_FLOAT_LOG else 0.0), log_p / math.log(10)


def _log_choose(n: int, k: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))
