"""Log sketch: counts in logarithmic bins, so that every quantile is within the share a of the true one.

Guarantee: for every q, |quantile(q) - x| <= a |x|, where x is the value of rank floor(q (n - 1)), counted from 0, in
the sorted sample (the q-quantile of the paper, and numpy's method "lower"). It holds for negative, subnormal and
huge values too, and whatever was merged in whatever order. A zero is exact; an infinite value is ordered, has a bin of
its own and is exact.

Memory: O(min(n, bins spanned)), 16 bytes a bin. A bin is 2 a wide: 1 ms to 1,000 s are 691 bins at a = 0.01. Nothing
collapses, so the guarantee is never lost; the bound is float64 itself, 72,700 bins a sign at a = 0.01 and inversely
proportional to a. As bytes usually 2 or 3 a bin.

Source: Masson, Rim & Lee, "DDSketch: A fast and fully-mergeable quantile sketch with relative-error guarantees", PVLDB
12(12), 2019.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.sketches.log_bins import LogBins, log_bins
from udfs.sketches.log_bytes import LogBytes, decode, encode
from udfs.statistics.samples import sample


@dataclass(frozen=True, eq=False)
class LogSketch:
    """A sample as counts over logarithmic bins.

    `keys` names the bins that are not empty, ascending (int64, see `udfs.sketches.log_bins`), `counts` is int64 beside
    it. Nulls and NaN are in `n_null` only. Unchangeable: `merge` returns a new sketch.
    """

    relative_accuracy: float
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_null: int = 0

    @classmethod
    def empty(cls, relative_accuracy: float = 0.01) -> "LogSketch":
        """Return the sketch of no values, neutral under `merge`. Raises ValueError outside 0.0001 to 0.5."""
        return cls(log_bins(relative_accuracy).relative_accuracy, np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series, relative_accuracy: float = 0.01) -> "LogSketch":
        """Sketch `values`: what `udfs.statistics.samples.sample` takes, fastest a float64 array; raises as it does.

        Raises ValueError where `relative_accuracy` is outside 0.0001 to 0.5. O(n log n + bins spanned).

        >>> sketch = LogSketch.from_values([120.0, 80.0, None, float("inf")])
        >>> sketch.n, sketch.n_null, sketch.n_infinite
        (3, 1, 1)
        """
        taken = sample(values)
        keys, counts = log_bins(relative_accuracy).count(taken.values)
        return cls(relative_accuracy, keys, counts, taken.n_null)

    @cached_property
    def n(self) -> int:
        """How many values are in the bins; infinities are, nulls are not."""
        return int(self.counts.sum())

    @property
    def n_infinite(self) -> int:
        """How many of the values are infinite."""
        return int(self.counts[np.abs(self.keys) == self.bins.infinity].sum())

    @property
    def bins(self) -> LogBins:
        """The bins that `keys` are of."""
        return log_bins(self.relative_accuracy)

    def representatives(self) -> NDArray[np.float64]:
        """Return the value that stands for each bin of `keys`, within the share a of every value in it. O(bins)."""
        return self.bins.representatives(self.keys)

    def quantile(self, q: float) -> float | None:
        """Return the value of rank floor(q (n - 1)), within the share a of it; None where there is no value.

        Infinite where that value is. Raises ValueError unless 0 <= q <= 1. O(bins).

        >>> sketch = LogSketch.from_values(range(1, 101))
        >>> abs(sketch.quantile(0.95) - 95) <= 0.95
        True
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"q must be from 0 to 1, not {q}")
        n = self.n
        if n == 0:
            return None
        at = int(np.searchsorted(np.cumsum(self.counts), math.floor(q * (n - 1)), side="right"))
        return float(self.bins.representatives(self.keys[at : at + 1])[0])

    def cdf(self, x: float) -> float | None:
        """Return the share of values at or below `x`; None where there is no value.

        Guarantee for x > 0: at least the true share at x / (1 + a), at most the true share at x / (1 - a); for x < 0
        the two change places, and at 0 it is exact. So only values within about the share a of `x` can count wrongly.
        Raises ValueError where `x` is NaN. O(bins).

        >>> LogSketch.from_values([100.0, 200.0, 790.0, 900.0]).cdf(800.0)
        0.75
        """
        if math.isnan(x):
            raise ValueError("x must be a number, not NaN")
        n = self.n
        if n == 0:
            return None
        return float(self.counts[self.representatives() <= x].sum() / n)

    def merge(self, other: "LogSketch") -> "LogSketch":
        """Return the sketch of both samples pooled. Raises ValueError where the accuracies differ. O(bins)."""
        return _merged([LogBytes(s.relative_accuracy, s.keys, s.counts, s.n_null) for s in (self, other)], self.bins)

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes], relative_accuracy: float = 0.01) -> "LogSketch":
        """Return the sketch of all samples pooled, straight from their bytes; of none, the empty sketch.

        Raises ValueError on bytes that are no log sketch, and where one has another accuracy. O(bins of all).

        >>> slices = [LogSketch.from_values(v).to_bytes() for v in ([1.0], [1.0, 3.0], [])]
        >>> LogSketch.merge_all(slices).counts.tolist()
        [2, 1]
        """
        return _merged([decode(data) for data in sketches], log_bins(relative_accuracy))

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes of `udfs.sketches.log_bytes`, the same for equal sketches. O(bins)."""
        return encode(LogBytes(self.relative_accuracy, self.keys, self.counts, self.n_null))

    @classmethod
    def from_bytes(cls, data: bytes) -> "LogSketch":
        """Read a sketch back. Raises ValueError on bytes that are no log sketch. O(bins).

        >>> sketch = LogSketch.from_values([3.0, -1.0])
        >>> LogSketch.from_bytes(sketch.to_bytes()) == sketch
        True
        """
        part = decode(data)
        return _merged([part], log_bins(part.relative_accuracy))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LogSketch)
            and (self.relative_accuracy, self.n_null) == (other.relative_accuracy, other.n_null)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal sketches could not share a cheap hash


class KsInterval(NamedTuple):
    """Where the exact D of two samples lies: from `low` to `high`."""

    low: float
    high: float


def ks_interval(a: LogSketch, b: LogSketch) -> KsInterval | None:
    """Return the interval that holds the two-sample Kolmogorov-Smirnov D of the samples behind two log sketches.

    `low` is D at the edges of the bins. `high` adds what can hide inside a bin: at most, all of one sample's share of
    the bin lies below all of the other's. Both ends can occur, so no narrower interval is right, and `high` is never
    above `low` plus the largest share of either sample in one bin. Zero and the infinities hide nothing. None where a
    sample has no value. Raises ValueError where the accuracies differ. O(bins).

    Use it between two live streams; against a fixed reference the rank sketch has D exactly.

    >>> interval = ks_interval(LogSketch.from_values([1.0, 2.0, 3.0]), LogSketch.from_values([2.0, 3.0, 4.0]))
    >>> [round(end, 6) for end in interval]
    [0.333333, 0.666667]
    """
    _check_accuracy([b.relative_accuracy], a.relative_accuracy)
    if not a.counts.size or not b.counts.size:
        return None
    keys = np.union1d(a.keys, b.keys)
    counts_a, counts_b = _counts_at(a, keys), _counts_at(b, keys)
    above = np.cumsum(counts_a) / a.n - np.cumsum(counts_b) / b.n
    before = np.concatenate([[0.0], above[:-1]])
    low = float(np.abs(above).max())
    wide = ~a.bins.is_point(keys)
    inside = np.maximum(before + counts_a / a.n, counts_b / b.n - before)[wide]
    return KsInterval(low, float(max(low, inside.max(initial=0.0))))


def _counts_at(sketch: LogSketch, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.zeros(keys.size, dtype=np.int64)
    counts[np.searchsorted(keys, sketch.keys)] = sketch.counts
    return counts


def _merged(parts: list[LogBytes], bins: LogBins) -> LogSketch:
    """Add the counts of all parts, key by key."""
    _check_accuracy([part.relative_accuracy for part in parts], bins.relative_accuracy)
    if not parts:
        return LogSketch.empty(bins.relative_accuracy)
    keys, places = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    if keys.size and not -bins.infinity <= keys[0] <= keys[-1] <= bins.infinity:
        raise ValueError("not LOG bytes: a bin is beyond the last bin")
    counts = np.zeros(keys.size, dtype=np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return LogSketch(bins.relative_accuracy, keys, counts, sum(part.n_null for part in parts))


def _check_accuracy(found: list[float], expected: float) -> None:
    other = next((accuracy for accuracy in found if accuracy != expected), None)
    if other is not None:
        raise ValueError(f"log sketches of accuracy {expected} and {other} can't be brought together")
