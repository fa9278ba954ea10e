"""How far a window's distribution function lies from its reference's, all along the reference's points.

KS takes the largest gap. These add up all of them, and need no more than the shares of a window below and at each
reference point, which is what a rank sketch keeps. `before` and `at` are the gaps just below and at each point, float64
of shape (..., k) for k distinct points in ascending order.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def root_mean_square_gap(before: Floats, at: Floats, multiplicity: NDArray[np.int64]) -> Floats:
    """Return the Cramer-von Mises distance: the root of the mean squared gap over the reference's own values.

    At a value of the reference the squared gap is the mean of those just below and at it, as in
    `udfs.statistics.cramer_von_mises`, whose sum runs over the window's values too. Between 0 and 1. O(k) a window.

    >>> one = np.array([1, 1])
    >>> root_mean_square_gap(np.array([0.0, 0.5]), np.array([0.5, 1.0]), one).tolist()  # all values above 2 points
    0.6123724356957945
    """
    squared = np.square(before) + np.square(at)
    mean: Floats = squared @ (0.5 * multiplicity / multiplicity.sum())
    return np.sqrt(mean)


def area_between(before: Floats, at: Floats, points: Floats) -> Floats:
    """Return the area between both distribution functions from the first to the last reference point.

    It is the Wasserstein-1 distance but for what lies beyond them (`udfs.sketches.rank_excess`). Window values within a
    gap between two points are taken to be at its middle. O(k) a window.

    >>> area_between(np.array([0.0, 0.5]), np.array([0.5, 1.0]), np.array([10.0, 12.0])).tolist()
    1.0
    """
    widths = np.diff(0.5 * points)  # the whole width may be beyond float64
    area: Floats = (np.abs(at[..., :-1]) + np.abs(before[..., 1:])) @ widths
    return area
