"""Rank sketch: counts on and between the sorted points of a fixed reference, from which D is exact.

Guarantee: `statistic()` is bit-equal to `scipy.stats.ks_2samp` of the reference and all values ever added, ties and
infinities included. Between two reference points the reference's distribution function is flat and the window's rises,
so their distance is largest at an end of the interval: counts on and between the points are all that D needs.

Memory: 2k + 1 counts for k distinct reference points; as bytes O(min(n, 2k + 1)). Time: O(log k) a value to add (after
the sort of a batch), O(k) to merge and for D. Merging is exact, commutative and associative; an empty sketch is
neutral.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.sketches.rank_bytes import BIN_NUMBERS, COUNTS, add, encode, read_reference
from udfs.sketches.reference import RankReference
from udfs.sketches.unsigned import width_of
from udfs.statistics.ks import Method, ks_from_statistic, largest_gap
from udfs.statistics.result import TestResult
from udfs.statistics.samples import sample


class Gap(NamedTuple):
    """Where a window and its reference are furthest apart: D, the bin, and the window's values up to its upper end."""

    statistic: float
    bin_number: int
    reached: int


class RankSketch:
    """A window's values as counts over the bins of `reference`; made by the class methods below.

    Nulls and NaN are in `n_null` only; infinities are in their bins and counted in `n_infinite` too. Never changed:
    `merge` returns a new sketch. It holds the bin of each value (ascending or `unordered`), or the count of each
    bin, or both; and gap and p-value where they are known already.
    """

    __slots__ = ("_bins", "_counts", "_gap", "_p_value", "_unordered", "n", "n_infinite", "n_null", "reference")

    def __init__(
        self,
        reference: RankReference,
        n: int,
        n_null: int,
        n_infinite: int,
        *,
        bins: NDArray[np.int64] | None = None,
        counts: NDArray[np.int64] | None = None,
        unordered: NDArray[np.integer[Any]] | None = None,
        gap: Gap | None = None,
    ) -> None:
        self.reference = reference
        self.n = n
        self.n_null = n_null
        self.n_infinite = n_infinite
        self._bins = bins
        self._counts = counts
        self._unordered = unordered
        self._gap = gap
        self._p_value: tuple[float, float] | None = None

    @classmethod
    def from_values(
        cls, values: ArrayLike | pd.Series, reference: RankReference | ArrayLike | pd.Series
    ) -> "RankSketch":
        """Sketch `values` against `reference`; prepare a `RankReference` once where there are many sketches.

        Takes what `udfs.statistics.samples.sample` takes, fastest a float64 array, and raises as it does.
        O(n log n) and, in the first call with a reference, O(k).

        >>> sketch = RankSketch.from_values([0.5, 2.0, None], [1.0, 2.0, 2.0])
        >>> sketch.counts.tolist(), sketch.n, sketch.n_null
        ([1, 0, 0, 1, 0], 2, 1)
        """
        prepared = reference if isinstance(reference, RankReference) else RankReference.from_values(reference)
        taken = sample(values)
        return cls(prepared, taken.n, taken.n_null, taken.n_infinite, bins=prepared.bins_of(taken.values))

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many values are in each bin; int64 of shape (reference.n_bins,)."""
        if self._counts is None:
            numbers = self.bins if self._unordered is None else self._unordered
            self._counts = np.bincount(numbers, minlength=self.reference.n_bins)
        return self._counts

    @property
    def bins(self) -> NDArray[np.int64]:
        """The bin of each value, ascending; int64 of shape (n,)."""
        if self._bins is None:
            self._bins = np.repeat(np.arange(self.counts.size), self.counts)
        return self._bins

    def merge(self, other: "RankSketch") -> "RankSketch":
        """Return the sketch of both samples pooled. Raises ValueError where the references differ. O(k)."""
        if self.reference is not other.reference and self.reference != other.reference:
            raise ValueError("sketches against different references can't be merged")
        return RankSketch(
            self.reference if self.reference.points is not None else other.reference,
            self.n + other.n,
            self.n_null + other.n_null,
            self.n_infinite + other.n_infinite,
            counts=self.counts + other.counts,
        )

    def without(self, other: "RankSketch") -> "RankSketch":
        """Return the sketch less what `other` holds: a slice that slides out of a window. O(k).

        Raises ValueError where the references differ, and where `other` holds what was never added.
        """
        if self.reference is not other.reference and self.reference != other.reference:
            raise ValueError("a sketch against another reference can't be taken out")
        counts = self.counts - other.counts
        n_null, n_infinite = self.n_null - other.n_null, self.n_infinite - other.n_infinite
        if min(int(counts.min()), n_null, n_infinite) < 0:
            raise ValueError("values that were never added can't be taken out")
        return RankSketch(self.reference, self.n - other.n, n_null, n_infinite, counts=counts)

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes], reference: RankReference) -> "RankSketch":
        """Return the sketch of all samples pooled, straight from their bytes; of none, the empty sketch.

        Raises ValueError on bytes that are no sketch, and where one has another reference. O(total bytes + k).

        >>> reference = RankReference.from_values([1.0, 2.0])
        >>> slices = [RankSketch.from_values(v, reference).to_bytes() for v in ([0.0], [1.0, 3.0])]
        >>> RankSketch.merge_all(slices, reference).counts.tolist()
        [1, 1, 0, 0, 1]
        """
        total = add(sketches, reference)
        return cls(reference, total.n, total.n_null, total.n_infinite, counts=total.counts)

    @property
    def gap(self) -> Gap | None:
        """The largest gap to the reference, at the first bin that has it; None where one of both is empty. O(k)."""
        if self._gap is None and self.n and self.reference.n:
            self._gap = Gap(*largest_gap(self.reference.ecdf, self.counts))
        return self._gap

    def know_p_value(self, p_value: tuple[float, float] | None) -> None:
        """Take the asymptotic (p, log10 p) of the gap, computed for many sketches together (`rank_windows.py`)."""
        self._p_value = p_value

    def statistic(self) -> float | None:
        """Return D, bit-equal to scipy's; None where the sketch or the reference holds no value. O(k).

        >>> RankSketch.from_values([0, 0, 1, 1, 1], [0, 0, 0, 1, 1]).statistic()
        0.19999999999999996
        """
        return None if self.gap is None else self.gap.statistic

    def result(self, method: Method = "asymptotic") -> TestResult:
        """Return D, its p-value and the counts. O(k), plus the p-value's cost (`udfs.statistics.ks`).

        Raises ValueError on an unknown method.

        >>> result = RankSketch.from_values([0, 0, 1, 1, 1], [0, 0, 0, 1, 1]).result("exact")
        >>> result.statistic, result.p_value, result.n_window
        (0.2, 1.0, 5)
        """
        return ks_from_statistic(
            self.statistic(),
            self.reference.n,
            self.n,
            method=method,
            p_value=self._p_value,
            n_reference_null=self.reference.n_null,
            n_window_null=self.n_null,
            n_infinite=self.n_infinite,
        )

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes of `udfs.sketches.rank_bytes`, O(min(n, 2k + 1)) of them."""
        reference = self.reference
        n_bins = reference.n_bins
        bins_size = self.n * width_of(n_bins - 1)
        if bins_size < n_bins or bins_size < n_bins * width_of(int(self.counts.max())):
            return encode(BIN_NUMBERS, self.bins, self.n_null, self.n_infinite, reference)
        return encode(COUNTS, self.counts, self.n_null, self.n_infinite, reference)

    @classmethod
    def from_bytes(cls, data: bytes, reference: RankReference | None = None) -> "RankSketch":
        """Read a sketch back. Raises ValueError on bytes that are no sketch or have another reference. O(k).

        Without `reference` it still merges, and tells D and p: the bytes carry the reference's digest, size and ties,
        though not its points, so new values can't be sketched against it.

        >>> sketch = RankSketch.from_values([3.0], [1.0, 1.0])
        >>> RankSketch.from_bytes(sketch.to_bytes()).statistic()
        1.0
        """
        return cls.merge_all([data], read_reference(data) if reference is None else reference)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RankSketch)
            and self.reference == other.reference
            and (self.n_null, self.n_infinite) == (other.n_null, other.n_infinite)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]  # equal sketches have no cheap common hash
