"""The few figures of a reference that a root cause is told by."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from udfs.statistics.samples import sample


@dataclass(frozen=True, slots=True)
class ReferenceFigures:
    """The reference's mean, standard deviation, 1st and 99th percentile of one field, in the field's unit; finite."""

    mean: float
    standard_deviation: float
    p1: float
    p99: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(figure) for figure in (self.mean, self.standard_deviation, self.p1, self.p99)):
            raise ValueError("the figures of a reference must be finite")
        if self.standard_deviation < 0 or self.p1 > self.p99:
            raise ValueError("a standard deviation is at least 0, and the 1st percentile at most the 99th")

    @classmethod
    def of_points(cls, points: ArrayLike) -> "ReferenceFigures":
        """Return the figures of the finite values among a reference's points; numpy's linear percentiles. O(n log n).

        Of a reference that keeps points of more raw values (`quantisation_bound`) they are approximate. Raises
        ValueError where there is no finite value, or where they are too large for float64 to hold their variance.

        >>> ReferenceFigures.of_points([1.0, 2.0, 3.0])
        ReferenceFigures(mean=2.0, standard_deviation=1.0, p1=1.02, p99=2.98)
        """
        values = sample(points).values
        finite = values[np.isfinite(values)]
        if not finite.size:
            raise ValueError("the reference has no finite value")
        p1, p99 = (float(found) for found in np.quantile(finite, (0.01, 0.99)))
        with np.errstate(over="ignore", invalid="ignore"):
            spread = float(np.std(finite, ddof=1)) if finite.size > 1 else 0.0
            return cls(float(np.mean(finite)), spread, p1, p99)
