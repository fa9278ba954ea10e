"""The bins of a log sketch: one ordered integer key for every float64, so that every value is within a of its bin's.

Bin i of the positive values is (e(i-1), e(i)] with e(i) = gamma**i and gamma = (1 + a) / (1 - a). Its representative,
2 e(i) e(i-1) / (e(i) + e(i-1)) = (1 + a) e(i-1), is off by at most the share a of any value in it. Negative values
mirror the positive ones; zero and both infinities have a bin each. Keys ascend as the values do.

Source: Masson, Rim & Lee, "DDSketch: A fast and fully-mergeable quantile sketch with relative-error guarantees", PVLDB
12(12), 2019, section 2. Two things differ from the paper. A value belongs to the bin whose *computed* edges enclose it,
and these are spaced for an accuracy 1e-12 better than asked, so the guarantee survives the rounding of logarithms. And
nothing collapses: float64 spans 72,700 bins a sign at a = 0.01, and that is the bound.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

SMALLEST_ACCURACY, LARGEST_ACCURACY = 1e-4, 0.5
_ROUNDING_RESERVE = 1e-12
_SMALLEST, _LARGEST = 5e-324, float(np.finfo(np.float64).max)
_LIFT = 512
"""Values up to 1 are binned as multiples of 2**-512: exact, and clear of the subnormals, which have too few digits."""


@dataclass(frozen=True)
class LogBins:
    """The bins of relative accuracy `relative_accuracy`; a value object, cheap to make, see `log_bins`."""

    relative_accuracy: float

    def __post_init__(self) -> None:
        if not SMALLEST_ACCURACY <= self.relative_accuracy <= LARGEST_ACCURACY:
            raise ValueError(
                f"relative_accuracy must be from {SMALLEST_ACCURACY} to {LARGEST_ACCURACY}, "
                f"not {self.relative_accuracy}"
            )

    @property
    def _accuracy(self) -> float:
        return self.relative_accuracy - _ROUNDING_RESERVE

    @cached_property
    def _log_gamma(self) -> float:
        return 2.0 * math.atanh(self._accuracy)

    @cached_property
    def _first(self) -> int:
        """An index no positive float64 is below."""
        return math.floor(math.log(_SMALLEST) / self._log_gamma)

    @cached_property
    def infinity(self) -> int:
        """The key of positive infinity, the largest; its negative is the smallest."""
        return math.ceil(math.log(_LARGEST) / self._log_gamma) - self._first + 3

    def count(self, ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the keys that occur, ascending, and how many values each has.

        `ordered` is ascending, without NaN, with 0.0 for -0.0. O(n log n + bins spanned): no logarithm is taken of a
        value, the few edges are sought among the values instead.

        >>> keys, counts = LogBins(0.01).count(np.array([-np.inf, -2.0, 0.0, 2.0, 2.001]))
        >>> counts.tolist(), (keys[1] + keys[3]).item()
        ([1, 1, 1, 2], 0)
        """
        if ordered.size and ordered[0] > 0.0 and ordered[-1] < np.inf:
            keys, counts = self._count_magnitudes(ordered)
        else:
            keys, counts = self._count_signed(ordered)
        present = counts.nonzero()[0]
        return keys[present], counts[present]

    def representatives(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the value that stands for each bin; ascending where `keys` are. O(keys).

        >>> bins = LogBins(0.01)
        >>> keys, _ = bins.count(np.array([0.0, 100.0]))
        >>> zero, hundred = bins.representatives(keys)
        >>> zero.item(), bool(abs(hundred - 100.0) <= 1.0)
        (0.0, True)
        """
        indices = np.abs(keys) + self._first - 1
        small = indices <= 0
        values = np.empty(keys.size)
        values[small] = np.ldexp((1.0 - self._accuracy) * self._lifted_edges(indices[small]), -_LIFT)
        below = self._edges(np.maximum(indices[~small] - 1, 0))
        values[~small] = (1.0 + self._accuracy) * np.minimum(below, _LARGEST / (1.0 + self._accuracy))
        values[keys == 0] = 0.0
        values[np.abs(keys) == self.infinity] = np.inf
        return np.copysign(values, keys)

    def is_point(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which bins hold one single value: zero and the infinities."""
        return np.asarray((keys == 0) | (np.abs(keys) == self.infinity))

    def _count_signed(self, ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return keys and counts, zeros among them, of any values in ascending order."""
        finite, positive = np.searchsorted(ordered, [-np.inf, 0.0], side="right")
        zeros, end = np.searchsorted(ordered, [0.0, np.inf], side="left")
        down, n_down = self._count_magnitudes(-ordered[finite:zeros][::-1])
        up, n_up = self._count_magnitudes(ordered[positive:end])
        keys = np.concatenate([[-self.infinity], -down[::-1], [0], up, [self.infinity]])
        counts = np.concatenate([[finite], n_down[::-1], [positive - zeros], n_up, [ordered.size - end]])
        return keys.astype(np.int64), counts.astype(np.int64)

    def _count_magnitudes(self, ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return keys and counts, zeros among them, of positive finite values in ascending order."""
        ones = int(np.searchsorted(ordered, 1.0, side="right"))
        if ones == 0:
            return self._count_above_one(ordered)
        if ones == ordered.size:
            return self._count_up_to_one(ordered)
        small, n_small = self._count_up_to_one(ordered[:ones])
        large, n_large = self._count_above_one(ordered[ones:])
        return np.concatenate([small, large]), np.concatenate([n_small, n_large])

    def _count_up_to_one(self, ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        indices = self._indices(ordered[0], ordered[-1])
        indices = indices[indices <= 0]
        lifted = np.ldexp(ordered, _LIFT)
        return indices - (self._first - 1), _between(lifted, self._lifted_edges(indices))

    def _count_above_one(self, ordered: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not ordered.size:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        indices = self._indices(ordered[0], ordered[-1])
        indices = indices[indices >= 0]
        return indices - (self._first - 1), _between(ordered, self._edges(indices))

    def _indices(self, smallest: float, largest: float) -> NDArray[np.int64]:
        """Return the indices of all bins from one value to another, and one to spare at either end."""
        first = math.floor(math.log(smallest) / self._log_gamma) - 1
        return np.arange(max(first, self._first), math.ceil(math.log(largest) / self._log_gamma) + 2)

    def _edges(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the upper edges of bins of index 0 or more; beyond float64, infinity."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(indices * self._log_gamma))

    def _lifted_edges(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return 2**512 times the upper edges of bins of index 0 or less, by way of their square roots."""
        roots = np.exp(indices * (0.5 * self._log_gamma))
        return np.asarray(np.square(np.ldexp(roots, _LIFT // 2)))


def _between(ordered: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many values are above the edge before and not above each edge."""
    up_to = np.searchsorted(ordered, edges, side="right")
    up_to[1:] -= up_to[:-1].copy()
    return up_to


@lru_cache(maxsize=64)
def log_bins(relative_accuracy: float) -> LogBins:
    """Return the bins of this accuracy, made once. Raises ValueError outside 0.0001 to 0.5."""
    return LogBins(relative_accuracy)
