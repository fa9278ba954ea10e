"""Score sum: how many scores there were and what they add up to, merged without losing a bit.

Guarantee: merging is exact, in whatever order and grouping, because scores are summed as whole multiples of 2**-40. A
mean is off by at most 4.6e-13, the rounding of one score. Missing and impossible scores are counted apart and never
move a figure. As bytes: 48.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.statistics.samples import sample
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"SCS", 1
_COUNTS = struct.Struct("<QQQ")
_TOTAL_BYTES = 16
_BITS = 40
UNIT = 2.0**-_BITS
_ROWS_WITHOUT_OVERFLOW = 4096  # of scores up to 2**10, in an int64
HIGHEST = 1024.0
"""No score may be higher: it is above any relative entropy of two float64 distributions, which is at most 745 nats."""
ROUNDING = 1e-6
"""A score this little beyond its range is the rounding of whoever computed it in float32, and taken for the edge."""


def in_range(values: NDArray[np.float64], highest: float = 1.0) -> NDArray[np.bool_]:
    """Return which values are scores of 0 to `highest`; NaN is none. O(n).

    >>> in_range(np.array([0.0, -1e-9, 1.1, np.nan])).tolist()
    [True, True, False, False]
    """
    return (values >= -ROUNDING) & (values <= highest * (1.0 + ROUNDING))


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """The sum of a sample of scores.

    `n` counts the scores in `total`, which is in multiples of 2**-40; `n_invalid` those out of range (infinite ones
    among them), `n_null` the missing ones: null and NaN. Unchangeable: `merge` returns a new sum.
    """

    n: int = 0
    total: int = 0
    n_invalid: int = 0
    n_null: int = 0

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series, *, highest: float = 1.0) -> "ScoreSum":
        """Sum scores that must be in 0 to `highest`; order changes nothing. O(n log n).

        Takes what `udfs.statistics.samples.sample` takes, raising as it does, and ValueError where `highest` is above
        1024.

        >>> scores = ScoreSum.from_values([0.25, 0.5, None, float("nan"), -3.0, 7.0])
        >>> scores.n, scores.mean, scores.n_invalid, scores.n_null
        (2, 0.375, 2, 2)
        """
        if not 0.0 < highest <= HIGHEST:
            raise ValueError(f"highest must be above 0 and at most {HIGHEST:g}, not {highest}")
        taken = sample(values)
        usable = np.clip(taken.values[in_range(taken.values, highest)], 0.0, highest)
        units = np.rint(usable / UNIT).astype(np.int64)
        starts = range(0, units.size, _ROWS_WITHOUT_OVERFLOW)
        total = sum(int(units[at : at + _ROWS_WITHOUT_OVERFLOW].sum()) for at in starts)
        return cls(int(units.size), total, taken.n - int(units.size), taken.n_null)

    @property
    def mean(self) -> float | None:
        """The mean score, correctly rounded; None where there is none."""
        return self.total / (self.n << _BITS) if self.n else None

    def merge(self, other: "ScoreSum") -> "ScoreSum":
        """Return the sum of both samples. O(1)."""
        return ScoreSum(
            self.n + other.n,
            self.total + other.total,
            self.n_invalid + other.n_invalid,
            self.n_null + other.n_null,
        )

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes]) -> "ScoreSum":
        """Return the sum of all samples, straight from their bytes; of none, the empty one.

        >>> ScoreSum.merge_all(ScoreSum.from_values(v).to_bytes() for v in ([0.5], [1.0])).mean
        0.75
        """
        merged = cls()
        for data in sketches:
            merged = merged.merge(cls.from_bytes(data))
        return merged

    def to_bytes(self) -> bytes:
        """Return the sum as bytes, the same for equal sums: n, invalid, null (u64), total (u128), little-endian."""
        counts = _COUNTS.pack(self.n, self.n_invalid, self.n_null)
        return seal(_TAG, _VERSION, counts + self.total.to_bytes(_TOTAL_BYTES, "little"))

    @classmethod
    def from_bytes(cls, data: bytes) -> "ScoreSum":
        """Read a sum back. Raises ValueError on bytes that are none.

        >>> scores = ScoreSum.from_values([0.1, None])
        >>> ScoreSum.from_bytes(scores.to_bytes()) == scores
        True
        """
        body = unseal(data, _TAG)
        if len(body) != _COUNTS.size + _TOTAL_BYTES:
            refuse(_TAG, f"{len(body)} bytes of body, {_COUNTS.size + _TOTAL_BYTES} were expected")
        n, n_invalid, n_null = _COUNTS.unpack_from(body)
        return cls(n, int.from_bytes(body[_COUNTS.size :], "little"), n_invalid, n_null)
