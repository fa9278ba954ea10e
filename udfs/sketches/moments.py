"""Moments: count, mean, squared deviations, smallest and largest value, merged without losing digits.

Guarantee: mean and variance are right to about 12 digits, merged or not, also where the spread is a billionth of the
mean: deviations are from the mean and never sums of squares, and the part of the mean that float64 rounds away is
carried beside it. Count, minimum and maximum are exact.
`merge` is exactly commutative, and `merge_all` gives the same bits in whatever order slices come; merging in another
*grouping* may move the last digits of mean and variance, as floating-point sums do.

An infinite value would take mean and variance with it, so it is counted apart, in `n_infinite`, and takes no part in
any figure here, minimum and maximum included. As bytes: 72.

Source: Chan, Golub & LeVeque, "Algorithms for computing the sample variance", The American Statistician 37(3), 1983.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.statistics.samples import sample
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"MOM", 1
_BODY = struct.Struct("<QdddddQQ")


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of a sample's finite values.

    `n` counts them; `mean`, `minimum` and `maximum` are None where there are none; `mean_rest` is what the rounded
    mean lacks of the true one; `m2` is the sum of squared deviations from the true mean. Nulls and NaN are in `n_null`,
    infinities in `n_infinite` only.
    """

    n: int = 0
    mean: float | None = None
    mean_rest: float = 0.0
    m2: float = 0.0
    minimum: float | None = None
    maximum: float | None = None
    n_null: int = 0
    n_infinite: int = 0

    @classmethod
    def empty(cls) -> "Moments":
        """Return the moments of no values, neutral under `merge`."""
        return cls()

    @classmethod
    def from_values(cls, values: ArrayLike | pd.Series) -> "Moments":
        """Take what `udfs.statistics.samples.sample` takes, raising as it does; order changes nothing. O(n log n).

        >>> moments = Moments.from_values([2.0, 4.0, 9.0, None, float("inf")])
        >>> moments.n, moments.mean, moments.variance(), moments.n_null, moments.n_infinite
        (3, 5.0, 13.0, 1, 1)
        """
        taken = sample(values)
        first = int(np.searchsorted(taken.values, -np.inf, side="right"))
        finite = taken.values[first : first + taken.n - taken.n_infinite]
        if not finite.size:
            return cls(n_null=taken.n_null, n_infinite=taken.n_infinite)
        mean = _mean(finite)
        rest, m2 = _rest_and_m2(finite, mean)
        return cls(finite.size, mean, rest, m2, float(finite[0]), float(finite[-1]), taken.n_null, taken.n_infinite)

    def variance(self, ddof: int = 1) -> float | None:
        """Return the sum of squared deviations over n - ddof; None where that isn't above 0 or exceeds float64."""
        if self.n <= ddof or not math.isfinite(self.m2):
            return None
        return self.m2 / (self.n - ddof)

    def standard_deviation(self, ddof: int = 1) -> float | None:
        """Return the square root of the variance; None where there is none."""
        variance = self.variance(ddof)
        return None if variance is None else math.sqrt(variance)

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both samples pooled. O(1)."""
        return _merged([self, other])

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes]) -> "Moments":
        """Return the moments of all samples pooled, straight from their bytes; of none, the empty ones. O(sketches).

        >>> slices = [Moments.from_values(v).to_bytes() for v in ([2.0, 4.0], [9.0])]
        >>> Moments.merge_all(slices) == Moments.from_values([2.0, 4.0, 9.0])
        True
        """
        return _merged([cls.from_bytes(data) for data in sketches])

    def to_bytes(self) -> bytes:
        """Return the moments as bytes (docs/sketches.md), the same for equal moments."""
        mean, minimum, maximum = (math.nan if f is None else f for f in (self.mean, self.minimum, self.maximum))
        body = (self.n, mean, self.mean_rest, self.m2, minimum, maximum, self.n_null, self.n_infinite)
        return seal(_TAG, _VERSION, _BODY.pack(*body))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Moments":
        """Read moments back. Raises ValueError on bytes that are no moments.

        >>> moments = Moments.from_values([2.0, 4.0])
        >>> Moments.from_bytes(moments.to_bytes()) == moments
        True
        """
        body = unseal(data, _TAG)
        if len(body) != _BODY.size:
            refuse(_TAG, f"{len(body)} bytes of body, {_BODY.size} were expected")
        n, mean, rest, m2, minimum, maximum, n_null, n_infinite = _BODY.unpack(body)
        if n == 0:
            return cls(n_null=n_null, n_infinite=n_infinite)
        return cls(n, mean, rest, m2, minimum, maximum, n_null, n_infinite)


def standardised_mean_difference(reference: Moments, window: Moments) -> float | None:
    """Return Cohen's d: the window's mean less the reference's, in pooled standard deviations.

    0 where both are equal constants; None where two constants differ, where a side has no value, or where both have
    one. Source: Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed., 1988, section 2.5.

    >>> standardised_mean_difference(Moments.from_values([1.0, 3.0]), Moments.from_values([4.0, 6.0]))
    2.1213203435596424
    """
    if reference.mean is None or window.mean is None or reference.n + window.n < 3:
        return None
    pooled = (reference.m2 + window.m2) / (reference.n + window.n - 2)
    difference = window.mean - reference.mean
    if difference == 0.0:
        return 0.0
    if pooled == 0.0 or not math.isfinite(pooled):
        return None
    return difference / math.sqrt(pooled)


def _mean(ordered: NDArray[np.float64]) -> float:
    """Return the mean by way of the deviations from the middle value, which keeps the digits of an offset."""
    middle = ordered[ordered.size // 2]
    scale = 1.0 if ordered[0] > -1e290 and ordered[-1] < 1e290 else 2.0**-70  # sums of deviations stay finite
    deviation = float(np.sum(ordered * scale - middle * scale)) / ordered.size
    return min(max(float(middle * scale + deviation) / scale, float(ordered[0])), float(ordered[-1]))


def _rest_and_m2(values: NDArray[np.float64], mean: float) -> tuple[float, float]:
    """Return what the rounded mean lacks, and the squared deviations from the true one; infinite beyond float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = values - mean
        total, squared = float(np.sum(deviations)), float(np.sum(np.square(deviations)))
    if not math.isfinite(squared):
        return 0.0, math.inf
    return total / values.size, max(squared - total * total / values.size, 0.0)


def _merged(sketches: Sequence[Moments]) -> Moments:
    """Pool moments by Chan's formula for many parts; sums are correctly rounded, so their order changes nothing."""
    present = [(sketch, sketch.mean) for sketch in sketches if sketch.mean is not None]
    n_null, n_infinite = sum(s.n_null for s in sketches), sum(s.n_infinite for s in sketches)
    if not present:
        return Moments(n_null=n_null, n_infinite=n_infinite)
    n = sum(sketch.n for sketch, _ in present)
    mean, rest = _pooled_mean([(sketch.n / n, mean, sketch.mean_rest) for sketch, mean in present])
    deviations = [(sketch.n, (part_mean - mean) + (sketch.mean_rest - rest)) for sketch, part_mean in present]
    return Moments(
        n,
        mean,
        rest,
        _sum([*(count * gap * gap for count, gap in deviations), *(sketch.m2 for sketch, _ in present)]),
        min(sketch.minimum for sketch, _ in present if sketch.minimum is not None),
        max(sketch.maximum for sketch, _ in present if sketch.maximum is not None),
        n_null,
        n_infinite,
    )


def _pooled_mean(parts: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Return the mean of (share, mean, rest), from the smallest mean up, and what its rounding lacks."""
    smallest, largest = min(mean for _, mean, _ in parts), max(mean for _, mean, _ in parts)
    if math.isfinite(largest - smallest):
        rise = math.fsum(share * ((mean - smallest) + rest) for share, mean, rest in parts)
        pooled = min(max(smallest + rise, smallest), largest)
        return pooled, rise - (pooled - smallest)
    half = math.fsum(share * (0.5 * mean - 0.5 * smallest) for share, mean, _ in parts)
    return smallest + half + half, 0.0


def _sum(terms: list[float]) -> float:
    """Return the correctly rounded sum, the same in whatever order; infinite where it is beyond float64."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf
