"""What is kept of one feature's raw values: at most some thousand points, and the counts beside them.

Up to `max_points` raw values all are kept, and D against them is D against the raw values. Of more, the order
statistics at the middles of `max_points` equal shares are kept. Their distribution function is within
1 / (2 max_points) of the raw one everywhere, so D is within that bound of the D against all raw values.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.budget.dependence import FEWEST_VALUES, dependence_of
from udfs.sketches.reference import RankReference
from udfs.statistics.samples import sample

AUTOCORRELATION_DIGITS = 3
"""Far above what a sum in another order changes, so that equal values have equal digests on every machine."""


@dataclass(frozen=True, eq=False)
class FeatureReference:
    """One feature of a reference profile.

    `points` is float64, ascending, infinities and equal points allowed. `n_raw` counts the usable raw values,
    `n_infinite` the infinities among them, `n_null` the nulls and NaN beside them; `minimum` and `maximum` are theirs.
    `quantisation_bound` is the most by which D may differ from the raw values' D; 0 where all are kept.
    `autocorrelation` is the AR(1) coefficient that `udfs.budget.dependence` estimates, to 0.001, for the false-alarm
    budget; None where the order of the values is unknown, or there are too few.
    """

    points: NDArray[np.float64]
    n_raw: int
    n_null: int
    n_infinite: int
    minimum: float
    maximum: float
    quantisation_bound: float
    autocorrelation: float | None = None

    @classmethod
    def from_values(
        cls, values: ArrayLike | pd.Series, *, max_points: int, in_time_order: bool = False
    ) -> "FeatureReference":
        """Summarise raw values; a constant feature is fine. O(n log n).

        Say `in_time_order` only where each value is younger than the one before.

        Raises ValueError where there is no usable value, or where they are no numbers (`udfs.statistics.samples`).

        >>> feature = FeatureReference.from_values(range(10), max_points=5)
        >>> feature.points.tolist(), feature.quantisation_bound
        ([1.0, 3.0, 5.0, 7.0, 9.0], 0.1)
        """
        raw = sample(values)
        if not raw.n:
            raise ValueError(f"it has no usable value ({raw.n_null} nulls)")
        ordered = raw.values + 0.0  # -0.0 + 0.0 is 0.0: one digest for both
        is_whole = raw.n <= max_points
        return cls(
            points=ordered if is_whole else middle_order_statistics(ordered, max_points),
            n_raw=raw.n,
            n_null=raw.n_null,
            n_infinite=raw.n_infinite,
            minimum=float(ordered[0]),
            maximum=float(ordered[-1]),
            quantisation_bound=0.0 if is_whole else 0.5 / max_points,
            autocorrelation=_autocorrelation(values) if in_time_order and raw.n >= FEWEST_VALUES else None,
        )

    @cached_property
    def ranks(self) -> RankReference:
        """The points, prepared for sketches."""
        return RankReference.from_values(self.points, n_null=self.n_null)

    @property
    def null_rate(self) -> float:
        """Nulls among all raw records."""
        return self.n_null / (self.n_null + self.n_raw)


def _autocorrelation(values: ArrayLike | pd.Series) -> float:
    return round(dependence_of(values).coefficient, AUTOCORRELATION_DIGITS)


def middle_order_statistics(ordered: NDArray[np.float64], n_points: int) -> NDArray[np.float64]:
    """Return the values in the middles of `n_points` equal shares of an ascending array; n_points <= its size N.

    Of the first c values about c n_points / N are kept, never more than a half away from it, whatever c: hence the
    bound of 1 / (2 n_points) between the distribution functions.

    >>> middle_order_statistics(np.arange(7.0), 2).tolist()
    [1.0, 5.0]
    """
    middles = (2 * np.arange(n_points) + 1) * ordered.size // (2 * n_points)
    kept: NDArray[np.float64] = ordered[middles]
    return kept
