"""The Wasserstein-1 distance: how far the mass of one sample must move, on average, to become the other.

It is the area between the two distribution functions, in the unit of the values (milliseconds stay milliseconds), equal
to scipy's `wasserstein_distance`. Unlike KS it says how far, not how surely: above 0 by chance on any two samples.
An infinite value would make it infinite, so a sample with one gives status `invalid`.

Source: Vallender, "Calculation of the Wasserstein distance between probability distributions on the line", Theory
Probab. Appl. 18(4), 1974.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from schemas.status import Status
from udfs.statistics.distance import Distance
from udfs.statistics.samples import sample


def wasserstein_1(reference: ArrayLike | pd.Series, window: ArrayLike | pd.Series) -> Distance:
    """Return the Wasserstein-1 distance of two samples, exactly (error 0).

    Takes what `udfs.statistics.samples.sample` takes and raises as it does. A side without values gives status
    `insufficient_data`; an infinite value, or a distance beyond float64, `invalid`. O((m + n) log(m + n)).

    >>> distance = wasserstein_1([0.0, 1.0, 3.0], [5.0, 6.0, 8.0, None])
    >>> distance.value, distance.error, distance.n_window_null
    (5.0, 0.0, 1)
    """
    ours, theirs = sample(reference), sample(window)
    n_infinite = ours.n_infinite + theirs.n_infinite
    value = None
    if ours.n and theirs.n and not n_infinite:
        value = moved_mass(ours.values, np.ones(ours.n), theirs.values, np.ones(theirs.n))
    return distance_result(
        value,
        0.0,
        n_reference=ours.n,
        n_window=theirs.n,
        n_reference_null=ours.n_null,
        n_window_null=theirs.n_null,
        n_infinite=n_infinite,
    )


def moved_mass(x: NDArray[np.float64], x_counts: NDArray[Any], y: NDArray[np.float64], y_counts: NDArray[Any]) -> float:
    """Return the distance between two sets of finite points, ascending, each point as often as its count says.

    No side may be empty. Infinite only where the distance is beyond float64. O((m + n) log(m + n)).

    >>> moved_mass(np.array([0.0, 10.0]), np.array([1, 1]), np.array([0.0]), np.array([3]))
    5.0
    """
    points = np.sort(np.concatenate([x, y]))
    gap = np.abs(_ecdf(x, x_counts, points[:-1]) - _ecdf(y, y_counts, points[:-1]))
    half_widths = np.diff(0.5 * points)  # the whole width may be beyond float64
    with np.errstate(over="ignore"):
        return float(2.0 * np.sum(gap * half_widths))


def distance_result(
    value: float | None,
    error: float,
    *,
    n_reference: int,
    n_window: int,
    n_reference_null: int,
    n_window_null: int,
    n_infinite: int,
) -> Distance:
    """Return the distance with its status: `insufficient_data` for an empty side, `invalid` for what isn't finite."""
    status = Status.OK
    if n_reference == 0 or n_window == 0:
        status = Status.INSUFFICIENT_DATA
    elif value is None or not math.isfinite(value) or not math.isfinite(error):
        status = Status.INVALID
    is_ok = status is Status.OK
    return Distance(
        value if is_ok else None,
        error if is_ok else None,
        n_reference,
        n_window,
        n_reference_null,
        n_window_null,
        n_infinite,
        status,
    )


def _ecdf(values: NDArray[np.float64], counts: NDArray[Any], points: NDArray[np.float64]) -> NDArray[np.float64]:
    cumulative = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
    return np.asarray(cumulative[np.searchsorted(values, points, side="right")] / cumulative[-1])
