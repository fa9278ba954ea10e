"""The fixed side of a rank sketch: the distinct reference points, how often each occurs, and the ECDF made of them."""

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.sketches.unsigned import UNSIGNED, width_of
from udfs.statistics.samples import sample

DIGEST_BYTES = 8
MOST_POINTS = 1 << 24
_HEADER = struct.Struct(f"<B{DIGEST_BYTES}sQQ")


@dataclass(frozen=True, eq=False)
class RankReference:
    """A reference sample, prepared once and shared by every sketch taken against it.

    `points` are its distinct values in ascending order (float64; infinities allowed), `multiplicity` how often each
    occurs (int64), `n_null` its nulls. They cut the line into `n_bins` = 2k + 1 bins: bin 2i + 1 is point i, bin 2i the
    open interval below it, bin 2k the one above all. `points` is None where the reference was rebuilt from a sketch's
    bytes: enough for D, not for binning new values. Two references are equal where their digests are. Picklable; what
    is derived is computed once, when first asked for. Memory: O(k).
    """

    points: NDArray[np.float64] | None
    multiplicity: NDArray[np.int64]
    n_null: int
    digest: bytes

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series, *, n_null: int = 0) -> "RankReference":
        """Prepare a reference from its raw values; nulls among them are counted on top of `n_null`.

        Takes what `udfs.statistics.samples.sample` takes, and raises as it does, and for more than `MOST_POINTS`
        distinct values. O(m log m).

        >>> reference = RankReference.from_values([2.0, 1.0, 2.0, None])
        >>> reference.points.tolist(), reference.multiplicity.tolist(), reference.n, reference.n_null
        ([1.0, 2.0], [1, 2], 3, 1)
        """
        taken = sample(values)
        points, multiplicity = np.unique(taken.values + 0.0, return_counts=True)  # -0.0 + 0.0 is 0.0: one digest
        if points.size > MOST_POINTS:
            raise ValueError(f"a reference may have {MOST_POINTS} distinct values, not {points.size}")
        nulls = n_null + taken.n_null
        return cls(points, multiplicity.astype(np.int64), nulls, _digest(points, multiplicity, nulls))

    @cached_property
    def header(self) -> bytes:
        """What a sketch's bytes say of its reference (`rank_bytes.py`): all but the points."""
        ties = self.multiplicity
        width = 0 if self.is_distinct else width_of(int(ties.max()))
        start = _HEADER.pack(width, self.digest, ties.size, self.n_null)
        return start + (ties.astype(UNSIGNED[width]).tobytes() if width else b"")

    @classmethod
    def from_header(cls, data: bytes) -> "RankReference":
        """Read the header that `data` starts with; the points are not in it. Raises ValueError on no header. O(k)."""
        if len(data) < _HEADER.size:
            raise ValueError(f"not a rank sketch: {len(data)} bytes are too few")
        width, digest, k, n_null = _HEADER.unpack_from(data)
        if k > MOST_POINTS:
            raise ValueError(f"not a rank sketch: {k} distinct points are too many")
        if width and width not in UNSIGNED:
            raise ValueError(f"not a rank sketch: a multiplicity of {width} bytes is unknown")
        if not width:
            return cls(None, np.ones(k, dtype=np.int64), n_null, digest)
        if _HEADER.size + k * width > len(data):
            raise ValueError("not a rank sketch: the lengths do not add up")
        return cls(None, np.frombuffer(data, UNSIGNED[width], k, _HEADER.size).astype(np.int64), n_null, digest)

    @cached_property
    def n(self) -> int:
        """How many reference values there are, m."""
        return int(self.multiplicity.sum())

    @cached_property
    def n_bins(self) -> int:
        """2k + 1, where k is the count of distinct points."""
        return 2 * int(self.multiplicity.size) + 1

    @cached_property
    def is_distinct(self) -> bool:
        """Whether the reference has no ties."""
        return self.n == self.multiplicity.size

    @cached_property
    def reached(self) -> NDArray[np.int64]:
        """How many reference values lie at or below the upper end of each bin."""
        steps = np.zeros(self.n_bins, dtype=np.int64)
        steps[1::2] = self.multiplicity
        return np.cumsum(steps)

    @cached_property
    def ecdf(self) -> NDArray[np.float64]:
        """The reference's distribution function at the upper end of each bin; empty where there is no value."""
        if not self.n:
            return np.empty(0)
        return self.reached / self.n

    @cached_property
    def _fences(self) -> NDArray[np.float64]:
        """Each point, then the next float above it: how many fences are at or below a value is the value's bin."""
        if self.points is None:
            raise ValueError(
                "this reference was rebuilt from bytes and has no points: take new values against the whole"
            )
        with np.errstate(over="ignore"):  # above the largest float is infinity, as it must be
            above = np.nextafter(self.points, np.inf)
        above[np.isposinf(self.points)] = np.nan  # which numpy sorts behind infinity
        return np.column_stack([self.points, above]).ravel()

    @cached_property
    def _fence_bits(self) -> NDArray[np.int64]:
        """The fences' bits as whole numbers, 0 for those that lie at or below zero."""
        return np.where(self._fences <= 0.0, 0, self._fences.view(np.int64))

    def bins_of(self, ordered: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the bin of each value; `ordered` is ascending (which makes it fast) and has no NaN. O(n log k)."""
        if ordered.size and ordered.item(0) > 0.0 and ordered.dtype == np.float64:
            # Positive floats are ordered as their bits are, and whole numbers are searched in four fifths of the time.
            return self._fence_bits.searchsorted(ordered.view(np.int64), side="right")
        return self._fences.searchsorted(ordered, side="right")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankReference) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _digest(points: NDArray[np.float64], multiplicity: NDArray[Any], n_null: int) -> bytes:
    digest = hashlib.sha256(f"rank reference {points.size} {n_null}".encode())
    digest.update(points.astype("<f8").tobytes())
    digest.update(multiplicity.astype("<u8").tobytes())
    return digest.digest()[:DIGEST_BYTES]
