"""How far two distributions over the same bins are apart: relative entropy (KL), PSI and Jensen-Shannon.

All take counts or shares over the same bins, or mappings from category; a null category is left out (its count is the
caller's to report, `CategoryCounts.n_null`). A pseudo-count is in the units of the arguments, goes into every bin of
the union, and both sides are renormalised after it: half a record a bin by default, the Jeffreys prior, where an empty
bin would make the figure infinite. Give `pseudo_count=0` with shares, or it swamps them.

None where a side has nothing in any bin: unknown, never 0. Figures are never NaN; KL and PSI are infinite only where
they mathematically are, with `pseudo_count=0` and a bin that one side lacks. These are distances, not tests: on small
samples they are above 0 by chance (about (bins - 1) (1/m + 1/n) for PSI, half that for KL), so compare like with like.

Sources: Kullback & Leibler, "On information and sufficiency", Ann. Math. Stat. 22, 1951; Lin, "Divergence measures
based on the Shannon entropy", IEEE Trans. Inf. Theory 37(1), 1991; Siddiqi, "Credit Risk Scorecards", 2006 (PSI, which
is Jeffreys' divergence); for the size by chance, Yurdakul & Naranjo, "Statistical properties of the population
stability index", J. Risk Model Validation 14(4), 2020.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div, xlog1py

from udfs.statistics.aligned import Histogram, aligned

_NEAR = 0.01
_SERIES = [(-1.0) ** k / (k * (k - 1)) for k in range(11, 1, -1)] + [0.0, 0.0]
"""Coefficients of (1 + t) log(1 + t) - t, highest power first: below t = 0.01 the rest is under 1e-20 of it."""


def kl_divergence(reference: Histogram, window: Histogram, pseudo_count: float = 0.5) -> float | None:
    """Return the relative entropy of the reference to the window, in nats, at least 0.

    Sum over bins of r log(r / w). Infinite where `pseudo_count` is 0 and the window lacks a bin of the reference.
    Raises ValueError naming the argument, as `udfs.statistics.aligned.aligned` does, and where `pseudo_count` is below
    0 or no number. O(bins).

    >>> round(kl_divergence({"a": 99999, "b": 1}, {"a": 99999, "c": 1}), 14)
    1.09859581e-05
    """
    both = _distributions(reference, window, pseudo_count, ("reference", "window"))
    return None if both is None else relative_entropy(*both)


def population_stability_index(reference: Histogram, window: Histogram, pseudo_count: float = 0.5) -> float | None:
    """Return the PSI: the sum over bins of (r - w) log(r / w), symmetric and at least 0.

    Infinite where `pseudo_count` is 0 and a bin is empty on one side only. Raises as `kl_divergence` does. O(bins). The
    usual reading, below 0.1 stable and above 0.25 shifted, is for some 10 to 20 bins and large samples.

    >>> round(population_stability_index([50, 50], [100, 0]), 12)
    2.625398469336
    """
    both = _distributions(reference, window, pseudo_count, ("reference", "window"))
    return None if both is None else relative_entropy(*both) + relative_entropy(*reversed(both))


def js_divergence(p: Histogram, q: Histogram, pseudo_count: float = 0) -> float | None:
    """Return the Jensen-Shannon divergence in bits: from 0 (equal) to 1 (no bin in common), symmetric.

    The mean relative entropy of either side to their average. Accurate where both nearly agree (never below 0), and
    always finite, so it needs no pseudo-count. Raises as `kl_divergence` does. O(bins).

    >>> round(js_divergence([0.3, 0.3, 0.4], [0.5, 0.5, 0]), 12)
    0.23645279766
    """
    both = _distributions(p, q, pseudo_count, ("p", "q"))
    return None if both is None else min(1.0, _js_nats(*both) / math.log(2))


def js_distance(p: Histogram, q: Histogram) -> float | None:
    """Return the square root of the Jensen-Shannon divergence in nats, a metric; scipy's `jensenshannon(p, q)`.

    From 0 to sqrt(log 2), 0.8326. Never NaN, also for nearly equal float32 shares. Raises as `kl_divergence` does.

    >>> near = np.array([0.027501475, 0.055202297], np.float32), np.array([0.027537677, 0.055334348], np.float32)
    >>> round(js_distance(*near), 12)
    0.00017883362
    """
    both = _distributions(p, q, 0, ("p", "q"))
    return None if both is None else math.sqrt(min(math.log(2), _js_nats(*both)))


def relative_entropy(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """Return the relative entropy of p to q in nats; both float64, of one shape, and each adding up to 1.

    Summed from terms that are none below 0 and keep their digits where p nearly equals q. At least 0; infinite where
    q lacks what p has. The same in whatever order the bins come. O(bins).

    >>> relative_entropy(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    0.0
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        t = (p - q) / q
        terms = np.where(np.abs(t) < _NEAR, q * np.polyval(_SERIES, t), np.maximum(kl_div(p, q), 0.0))
    return math.inf if np.isinf(terms).any() else math.fsum(terms)


def _js_nats(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    middle = p + q
    t = np.divide(p - q, middle, out=np.zeros_like(p), where=middle > 0)
    even = np.polyval(_SERIES, t) + np.polyval(_SERIES, -t)
    excess = np.where(np.abs(t) < _NEAR, even, np.maximum(xlog1py(1.0 + t, t) + xlog1py(1.0 - t, -t), 0.0))
    return math.fsum(0.25 * middle * excess)


def _distributions(
    first: Histogram, second: Histogram, pseudo_count: float, names: tuple[str, str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    if not (math.isfinite(pseudo_count) and pseudo_count >= 0):
        raise ValueError(f"pseudo_count must be a finite number of at least 0, not {pseudo_count}")
    both = aligned(first, second, names=names)
    if not both.reference.any() or not both.window.any():
        return None
    return _shares(both.reference, pseudo_count), _shares(both.window, pseudo_count)


def _shares(amounts: NDArray[np.float64], pseudo_count: float) -> NDArray[np.float64]:
    largest = max(float(amounts.max()), pseudo_count)
    scaled = amounts / largest + pseudo_count / largest
    return scaled / math.fsum(scaled)
