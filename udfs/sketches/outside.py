"""Outside counts: how many values lie below and above fixed bounds, and the smallest and largest value seen.

Guarantee: all exact, whatever was merged in whatever order. As bytes: 64.
"""

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from udfs.statistics.samples import sample
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"OUT", 1
_BODY = struct.Struct("<QQQQQdd")


@dataclass(frozen=True, slots=True)
class OutsideCounts:
    """A sample against two bounds that are fixed beforehand.

    `n` counts the values, infinities (`n_infinite`) among them; nulls and NaN are in `n_null` only. `smallest` and
    `largest` are of all values, None where there are none; an infinite value may be one.
    """

    n: int = 0
    n_null: int = 0
    n_infinite: int = 0
    n_below: int = 0
    n_above: int = 0
    smallest: float | None = None
    largest: float | None = None

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series, minimum: float, maximum: float) -> "OutsideCounts":
        """Take what `udfs.statistics.samples.sample` takes, raising as it does. O(n log n).

        >>> OutsideCounts.from_values([1.0, 5.0, 9.0, None], 2.0, 8.0)
        OutsideCounts(n=3, n_null=1, n_infinite=0, n_below=1, n_above=1, smallest=1.0, largest=9.0)
        """
        taken = sample(values)
        if not taken.n:
            return cls(n_null=taken.n_null)
        below = int(np.searchsorted(taken.values, minimum, side="left"))
        above = taken.n - int(np.searchsorted(taken.values, maximum, side="right"))
        smallest, largest = float(taken.values[0]) + 0.0, float(taken.values[-1]) + 0.0  # no -0.0
        return cls(taken.n, taken.n_null, taken.n_infinite, below, above, smallest, largest)

    @property
    def share(self) -> float | None:
        """The share of values outside; None where there are none."""
        return (self.n_below + self.n_above) / self.n if self.n else None

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes]) -> "OutsideCounts":
        """Return the counts of all samples pooled, straight from their bytes; of none, the empty ones.

        The bounds must have been the same; the bytes don't say.

        >>> slices = [OutsideCounts.from_values(v, 0.0, 1.0).to_bytes() for v in ([0.5], [2.0, -3.0])]
        >>> OutsideCounts.merge_all(slices).share
        0.6666666666666666
        """
        parts = [_unpacked(data) for data in sketches]
        if not parts:
            return cls()
        n, n_null, n_infinite, n_below, n_above, smallest, largest = zip(*parts, strict=True)
        return cls(
            sum(n),
            sum(n_null),
            sum(n_infinite),
            sum(n_below),
            sum(n_above),
            min((end for end in smallest if not math.isnan(end)), default=None),
            max((end for end in largest if not math.isnan(end)), default=None),
        )

    def to_bytes(self) -> bytes:
        """Return the counts as bytes: five of 8 bytes each, then smallest and largest; the same for equal counts."""
        ends = (math.nan if end is None else end for end in (self.smallest, self.largest))
        body = _BODY.pack(self.n, self.n_null, self.n_infinite, self.n_below, self.n_above, *ends)
        return seal(_TAG, _VERSION, body)

    @classmethod
    def from_bytes(cls, data: bytes) -> "OutsideCounts":
        """Read counts back. Raises ValueError on bytes that are none."""
        return cls.merge_all([data])


def _unpacked(data: bytes) -> tuple[int, int, int, int, int, float, float]:
    body = unseal(data, _TAG)
    if len(body) != _BODY.size:
        refuse(_TAG, f"{len(body)} bytes of body, {_BODY.size} were expected")
    unpacked: tuple[int, int, int, int, int, float, float] = _BODY.unpack(body)
    return unpacked
