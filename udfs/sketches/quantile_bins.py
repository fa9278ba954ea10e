"""A rank sketch collapsed to a few bins of about equal reference mass: what PSI, KL and Jensen-Shannon are taken over.

On a rank sketch's own 2k + 1 bins these are meaningless: a continuous window hits no reference point, so a quiet one
scores Jensen-Shannon 1.0. Here neighbouring bins are joined at the reference's quantiles. One bin below the lowest
reference point and one above the highest stand beside them: they hold no reference mass, so that values outside the
reference's range, and any change of a constant, are seen.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

MOST_BINS = 20
"""What a figure is by chance grows with the number of bins; PSI's usual reading is for 10 to 20."""


@dataclass(frozen=True, eq=False)
class QuantileBins:
    """At most `most_bins` bins over the line; picklable.

    `starts` are the rank sketch's bins that each begins with, ascending from 0: int64 of shape (bins,). Bin 0 is what
    lies below the lowest reference point, the last what lies above the highest; bin i between them reaches from above
    point `edges[i - 1]` (or from the lowest itself) up to and with point `edges[i]`. A tie is never cut in two, so
    there are fewer bins where there are many.
    """

    reference: RankReference
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, reference: RankReference, most_bins: int = MOST_BINS) -> "QuantileBins":
        """Make the bins. Raises ValueError on less than 3 bins, or a reference without values or points. O(k).

        >>> bins = QuantileBins.of(RankReference.from_values(range(100)), most_bins=6)
        >>> bins.reference_counts.tolist()
        [0, 25, 25, 25, 25, 0]
        """
        if most_bins < 3:
            raise ValueError(f"most_bins must be at least 3, not {most_bins}")
        if not reference.n or reference.points is None:
            raise ValueError("a reference without points has no quantiles")
        reached = np.cumsum(reference.multiplicity)
        n_inner = most_bins - 2
        wanted = reference.n * np.arange(1, n_inner + 1) / n_inner
        ends = np.unique(np.searchsorted(reached, wanted))  # the last is the highest point: it reaches all of n
        return cls(reference, np.concatenate([[0, 1], 2 * ends + 2]).astype(np.int64))

    @cached_property
    def reference_counts(self) -> NDArray[np.int64]:
        """How many reference values each bin has: int64 of shape (bins,)."""
        whole = np.zeros(self.reference.n_bins, dtype=np.int64)
        whole[1::2] = self.reference.multiplicity
        return self._collapsed(whole)

    def counts(self, sketch: RankSketch) -> NDArray[np.int64]:
        """Return how many of a sketch's values each bin has: int64 of shape (bins,). Raises ValueError on a sketch
        against another reference. O(k).

        >>> reference = RankReference.from_values([1.0, 2.0, 3.0, 4.0])
        >>> QuantileBins.of(reference, 4).counts(RankSketch.from_values([0.0, 1.5, 2.0, 2.5, 4.0, 9.0], reference))
        array([1, 2, 2, 1])
        """
        if sketch.reference != self.reference:
            raise ValueError("a sketch against another reference has other bins")
        return self._collapsed(sketch.counts)

    def interval(self, number: int) -> tuple[float, float]:
        """Return the bin's lower end (not in it) and its upper (in it).

        The bin below all points holds what is below its upper end, and bin 1 holds the lowest point too.
        """
        ends = [-np.inf, *(self._point(start) for start in self.starts[1:].tolist()), np.inf]
        return list(pairwise(ends))[number]

    def _point(self, start: int) -> float:
        assert self.reference.points is not None
        return float(self.reference.points[max(0, start // 2 - 1)])

    def _collapsed(self, whole: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.add.reduceat(whole, self.starts)
