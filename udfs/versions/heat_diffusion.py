"""Heat diffusion on a graph: what a random walker who sets off at each node finds after a while.

    heat(t) = exp(-t L) x,    L = I - P,    P the walk's transition matrix

which is the mean of x over where the walker is at time t, if steps come at a mean rate of one a unit of time. Computed
as the sum over k of Poisson(k; t) P^k x (uniformisation): all terms are averages of x, so nothing cancels, no
result leaves the range of x, and a constant stays that constant. The tail left out weighs less than 1e-16.

Sources: spec D7; Kondor & Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002; Jensen,
"Markoff chains as an aid in the study of Markoff processes", Skand. Aktuarietidskr. 36, 1953 (uniformisation).
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

_TAIL = 1e-16


def diffuse(walk: sparse.csr_array, signal: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """Return `signal`, float64 of shape (n, c), after heat has diffused along `walk` for `time`.

    `walk` is (n, n) with non-negative rows that add up to 1. Raises ValueError on a negative or infinite time.
    O((t + 9 sqrt(t) + 20) e c) of e entries in `walk`.

    >>> walk = sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> diffuse(walk, np.array([[1.0], [0.0]]), 50.0).round(12).tolist()
    [[0.5], [0.5]]
    """
    if not (math.isfinite(time) and time >= 0.0):
        raise ValueError(f"time must be a finite number of at least 0, not {time}")
    shares = _poisson(time)
    moved = signal
    mean = shares[0] * signal
    for share in shares[1:]:
        moved = walk @ moved
        mean += share * moved
    return np.asarray(mean)


def _poisson(mean: float) -> list[float]:
    """Return the chances of 0, 1, 2... events, but for a tail below `_TAIL`, adding up to 1."""
    if mean == 0.0:
        return [1.0]
    k = np.arange(math.ceil(mean + 12.0 * math.sqrt(mean) + 30.0))
    shares = np.exp(k * math.log(mean) - mean - gammaln(k + 1.0))
    kept = shares[: int(np.searchsorted(-np.cumsum(shares[::-1])[::-1], -_TAIL))]
    total = math.fsum(kept)
    return [float(share) / total for share in kept]
