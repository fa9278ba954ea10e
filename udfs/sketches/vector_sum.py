"""Vector sum: the sum of unit embeddings, from which centroid, mean cosine and concentration follow.

Every embedding is scaled to length 1 first, so that long ones don't outvote short ones. Guarantee: merging is exact, in
whatever order and grouping, because entries are summed as whole multiples of 2**-32; each is off by at most 1.2e-10 for
it, far below what float32 embeddings hold themselves. Good for 2**31 embeddings. Memory: 8 bytes a dimension.

A zero vector has no direction; one of another dimension, or with NaN or an infinity in it, no meaning: they are counted
apart and take no part.

Source: Mardia & Jupp, "Directional Statistics", 2000, section 9.2 (mean direction and resultant length).
"""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"VEC", 1
_BODY = struct.Struct("<QQQQQ")
_UNIT = 2.0**32
_MOST = 2**31


@dataclass(frozen=True, eq=False)
class VectorSum:
    """A sample of embeddings as the sum of their directions.

    `total` is int64 of shape (dimension,), in multiples of 2**-32; `n` counts the embeddings in it. Zero vectors are in
    `n_zero` only, those of another dimension or with NaN or an infinity in `n_invalid`, missing ones in `n_null`.
    Unchangeable: `merge` returns a new sum.
    """

    total: NDArray[np.int64]
    n: int = 0
    n_zero: int = 0
    n_invalid: int = 0
    n_null: int = 0

    @classmethod
    def empty(cls, dimension: int) -> "VectorSum":
        """Return the sum of no embeddings, neutral under `merge`."""
        return cls(np.zeros(dimension, dtype=np.int64))

    @classmethod
    def from_vectors(cls, vectors: Sequence[Any] | NDArray[Any], dimension: int) -> "VectorSum":
        """Sum the directions of embeddings: an array of shape (n, dimension), or a list of vectors, some of them None.

        Raises ValueError where a vector holds what is no number. O(n dimension).

        >>> vectors = VectorSum.from_vectors([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0], [math.nan, 1.0], [1.0], None], 2)
        >>> vectors.n, vectors.n_zero, vectors.n_invalid, vectors.n_null
        (2, 1, 2, 1)
        >>> vectors.centroid().round(6).tolist()
        [0.3, 0.9]
        """
        present = [vector for vector in vectors if vector is not None]
        rows = _rows([vector for vector in present if np.shape(vector) == (dimension,)], dimension)
        finite = np.isfinite(rows).all(axis=1)
        largest = np.abs(rows).max(axis=1, initial=0.0)
        zero = largest == 0.0
        use = finite & ~zero
        scaled = rows[use] / largest[use, np.newaxis]  # entries up to 1: no square can overflow or all underflow
        units = scaled / np.sqrt(np.sum(np.square(scaled), axis=1, keepdims=True))
        total = np.rint(units * _UNIT).astype(np.int64).sum(axis=0)
        n, n_zero = int(use.sum()), int(zero.sum())
        return cls(total, n, n_zero, len(present) - n - n_zero, len(vectors) - len(present))

    @property
    def dimension(self) -> int:
        """How many entries an embedding has."""
        return int(self.total.size)

    def centroid(self) -> NDArray[np.float64] | None:
        """Return the mean of the unit embeddings, float64 of shape (dimension,); None where there are none.

        Its length, `resultant_length`, is at most 1; only its direction is compared by a cosine.
        """
        return self.total / (_UNIT * self.n) if self.n else None

    def resultant_length(self) -> float | None:
        """Return how concentrated the directions are: 1 if all are one, near 0 if they cancel; None without any.

        >>> round(VectorSum.from_vectors([[1.0, 0.0], [0.0, 1.0]], dimension=2).resultant_length(), 6)
        0.707107
        """
        centroid = self.centroid()
        return None if centroid is None else min(1.0, math.hypot(*centroid.tolist()))

    def mean_cosine(self, reference: "VectorSum") -> float | None:
        """Return the mean cosine of these embeddings to the reference's centroid, from the sums alone.

        The mean over embeddings is a dot product with their sum, so no embedding is needed again. None where either
        has none, or the reference's cancel out. Raises ValueError where the dimensions differ. O(dimension).

        >>> reference = VectorSum.from_vectors([[1.0, 0.0]], dimension=2)
        >>> VectorSum.from_vectors([[1.0, 0.0], [0.0, 5.0]], dimension=2).mean_cosine(reference)
        0.5
        """
        _check_dimension([reference], self.dimension)
        ours, theirs, length = self.centroid(), reference.centroid(), reference.resultant_length()
        if ours is None or theirs is None or not length:
            return None
        return max(-1.0, min(1.0, math.fsum(ours * theirs) / length))

    def merge(self, other: "VectorSum") -> "VectorSum":
        """Return the sum of both samples. Raises ValueError where the dimensions differ. O(dimension)."""
        return _merged([self, other], self.dimension)

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes], dimension: int) -> "VectorSum":
        """Return the sum of all samples, straight from their bytes; of none, the empty one.

        Raises ValueError on bytes that are no vector sum, and where one has another dimension.

        >>> slices = [VectorSum.from_vectors(v, dimension=2).to_bytes() for v in ([[1.0, 0.0]], [[0.0, 1.0]])]
        >>> VectorSum.merge_all(slices, dimension=2).centroid().tolist()
        [0.5, 0.5]
        """
        return _merged([cls.from_bytes(data) for data in sketches], dimension)

    def to_bytes(self) -> bytes:
        """Return the sum as bytes (docs/sketches.md), the same for equal sums."""
        counts = _BODY.pack(self.dimension, self.n, self.n_zero, self.n_invalid, self.n_null)
        return seal(_TAG, _VERSION, counts + self.total.astype("<i8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "VectorSum":
        """Read a sum back. Raises ValueError on bytes that are no vector sum.

        >>> vectors = VectorSum.from_vectors([[3.0, -4.0]], dimension=2)
        >>> VectorSum.from_bytes(vectors.to_bytes()) == vectors
        True
        """
        body = unseal(data, _TAG)
        if len(body) < _BODY.size or len(body) != _BODY.size + 8 * _BODY.unpack_from(body)[0]:
            refuse(_TAG, "the lengths do not add up")
        total = np.frombuffer(body, "<i8", offset=_BODY.size).astype(np.int64)
        return cls(total, *_BODY.unpack_from(body)[1:])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VectorSum)
            and (self.n, self.n_zero, self.n_invalid, self.n_null)
            == (other.n, other.n_zero, other.n_invalid, other.n_null)
            and np.array_equal(self.total, other.total)
        )

    __hash__ = None  # type: ignore[assignment]  # an array inside: equal sums could not share a cheap hash


def _rows(vectors: list[Any], dimension: int) -> NDArray[np.float64]:
    try:
        return np.array(vectors, dtype=np.float64).reshape(len(vectors), dimension)
    except (TypeError, ValueError) as error:
        raise ValueError("an embedding must be numbers") from error


def _merged(sums: Sequence[VectorSum], dimension: int) -> VectorSum:
    _check_dimension(sums, dimension)
    n = sum(one.n for one in sums)
    if n > _MOST:
        raise ValueError(f"a vector sum holds at most {_MOST} embeddings, not {n}")
    total = np.zeros(dimension, dtype=np.int64)
    for one in sums:
        total += one.total
    return VectorSum(
        total, n, sum(one.n_zero for one in sums), sum(one.n_invalid for one in sums), sum(one.n_null for one in sums)
    )


def _check_dimension(sums: Sequence[VectorSum], dimension: int) -> None:
    other = next((one.dimension for one in sums if one.dimension != dimension), None)
    if other is not None:
        raise ValueError(f"vector sums of {dimension} and {other} dimensions can't be brought together")
