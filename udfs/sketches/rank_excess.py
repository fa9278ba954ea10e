"""A rank sketch, and how far its values reach beyond the reference: the Wasserstein-1 distance is made of both.

Beyond the reference's ends its distribution function is flat, so what the window adds to the distance there is just the
sum of how far its values lie outside. 16 bytes more than the rank sketch.
"""

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.sketches.rank import RankSketch
from udfs.sketches.rank_bytes import read_reference
from udfs.sketches.reference import RankReference
from udfs.statistics.gap_norms import area_between, root_mean_square_gap
from udfs.statistics.samples import sample
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"EXC", 1
_BODY = struct.Struct("<d")


@dataclass(frozen=True)
class RankExcess:
    """A window's `rank` sketch, and the sum of its values' distances to the reference's range, infinite where one is.

    Merging is commutative; another grouping may move the excess' last digits, as sums of floats do.
    """

    rank: RankSketch
    excess: float

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series, reference: RankReference) -> "RankExcess":
        """Sketch values against a reference that has its points. O(n log n).

        >>> sketch = RankExcess.from_values([0.5, 2.0, 5.0, None], RankReference.from_values([1.0, 3.0]))
        >>> sketch.excess, sketch.rank.n
        (2.5, 3)
        """
        rank, ordered = RankSketch.from_values(values, reference), sample(values).values
        points = reference.points
        if points is None or not points.size:
            return cls(rank, 0.0)
        below, above = ordered[ordered < points[0]], ordered[ordered > points[-1]]
        with np.errstate(over="ignore"):
            return cls(rank, float(np.sum(points[0] - below) + np.sum(above - points[-1])))

    @classmethod
    def empty(cls, reference: RankReference) -> "RankExcess":
        """Return the sketch of no values, neutral under `merge`."""
        return cls.from_values([], reference)

    def merge(self, other: "RankExcess") -> "RankExcess":
        """Return the sketch of both samples pooled. Raises ValueError where the references differ. O(k)."""
        return RankExcess(self.rank.merge(other.rank), self.excess + other.excess)

    @classmethod
    def from_bytes(cls, data: bytes, reference: RankReference | None = None) -> "RankExcess":
        """Read a sketch back. Raises ValueError on bytes that are no sketch or have another reference. O(k).

        Without `reference`, whose points the bytes don't hold, it still merges, and tells `cramer_von_mises`.
        """
        return cls.merge_all([data], read_reference(_split(data)[1]) if reference is None else reference)

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes], reference: RankReference) -> "RankExcess":
        """Return the sketch of all samples pooled. Raises ValueError on other bytes or another reference."""
        parts = [_split(data) for data in sketches]
        try:
            total = math.fsum(excess for excess, _ in parts)
        except OverflowError:
            total = math.inf
        return cls(RankSketch.merge_all([rank for _, rank in parts], reference), total)

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, the same for equal sketches."""
        return seal(_TAG, _VERSION, _BODY.pack(self.excess) + self.rank.to_bytes())

    def cramer_von_mises(self) -> float:
        """Return the root mean square gap to the reference; both need a value. O(k)."""
        return float(root_mean_square_gap(*self._gaps(), self.rank.reference.multiplicity))

    def wasserstein_1(self) -> float:
        """Return the Wasserstein-1 distance to the reference, infinite where a value is; both need a value. O(k).

        Off by half the width of a gap between two reference points for each value that lies in one, on average less.
        """
        points = self.rank.reference.points
        assert points is not None  # else no value could have been sketched
        return float(area_between(*self._gaps(), points)) + self.excess / self.rank.n

    def _gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gaps = np.cumsum(self.rank.counts) / self.rank.n - self.rank.reference.ecdf
        return gaps[:-1:2], gaps[1::2]


def _split(data: bytes) -> tuple[float, bytes]:
    """The excess, and the bytes of the rank sketch."""
    body = unseal(data, _TAG)
    if len(body) < _BODY.size:
        refuse(_TAG, "the lengths do not add up")
    excess: float = _BODY.unpack_from(body)[0]
    return excess, body[_BODY.size :]
