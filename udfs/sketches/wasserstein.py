"""The Wasserstein-1 distance from sketches, with how far it may be off.

A sketch knows a value only as far as its bin. Moving every value to a point that stands for its bin moves the distance
by at most the mean length of those moves; that is the error stated.
"""

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.log import LogSketch
from udfs.sketches.rank import RankSketch
from udfs.statistics.distance import Distance
from udfs.statistics.wasserstein import distance_result, moved_mass


def wasserstein_from_logs(reference: LogSketch, window: LogSketch) -> Distance:
    """Return the Wasserstein-1 distance of the samples behind two log sketches, with its error.

    The error is a / (1 - a) times the sum of both samples' mean magnitudes: about 2 % of a latency's mean at a = 0.01.
    Status as in `udfs.statistics.wasserstein.wasserstein_1`. O(bins).

    >>> distance = wasserstein_from_logs(LogSketch.from_values([100.0, 200.0]), LogSketch.from_values([150.0, 250.0]))
    >>> abs(distance.value - 50.0) <= distance.error, round(distance.error, 1)
    (True, 3.5)
    """
    value, error = None, 0.0
    n_infinite = reference.n_infinite + window.n_infinite
    if reference.n and window.n and not n_infinite:
        x, y = reference.representatives(), window.representatives()
        value = moved_mass(x, reference.counts, y, window.counts)
        error = _reach(reference, x) + _reach(window, y)
    return distance_result(
        value,
        error,
        n_reference=reference.n,
        n_window=window.n,
        n_reference_null=reference.n_null,
        n_window_null=window.n_null,
        n_infinite=n_infinite,
    )


def wasserstein_from_rank(
    sketch: RankSketch, *, minimum: float | None = None, maximum: float | None = None
) -> Distance:
    """Return the Wasserstein-1 distance of a rank sketch's window to its reference, with its error.

    Values on a reference point are exact; one between two points is taken for the middle, off by half their distance
    at most. Values below all points or above them need the window's `minimum` or `maximum` (`Moments` has them).
    The error is the mean of those halves, so it shrinks with the spacing of the reference. Status as in
    `udfs.statistics.wasserstein.wasserstein_1`.

    Raises ValueError where a needed minimum or maximum is missing or isn't beyond the reference, and where the sketch
    was read from bytes without its reference, whose points are needed. O(reference points).

    >>> distance = wasserstein_from_rank(RankSketch.from_values([1.0, 1.4], [1.0, 2.0]))
    >>> distance.value, distance.error
    (0.25, 0.25)
    """
    reference = sketch.reference
    if reference.points is None:
        raise ValueError("sketch must be read with its reference: the points are needed")
    reference_infinite = int(reference.multiplicity[np.isinf(reference.points)].sum())
    n_infinite = sketch.n_infinite + reference_infinite
    value, error = None, 0.0
    if sketch.n and reference.n and not n_infinite:
        at, half_widths = _bin_middles(reference.points, sketch.counts, minimum, maximum)
        error = float(np.sum(sketch.counts * half_widths) / sketch.n)
        value = moved_mass(reference.points, reference.multiplicity, at, sketch.counts)
    return distance_result(
        value,
        error,
        n_reference=reference.n,
        n_window=sketch.n,
        n_reference_null=reference.n_null,
        n_window_null=sketch.n_null,
        n_infinite=n_infinite,
    )


def _reach(sketch: LogSketch, representatives: NDArray[np.float64]) -> float:
    """Return how far the values are from their representatives on average, at most."""
    a = sketch.relative_accuracy
    with np.errstate(over="ignore"):
        return float(a / (1.0 - a) * np.sum(sketch.counts / sketch.n * np.abs(representatives)))


def _bin_middles(
    points: NDArray[np.float64], counts: NDArray[np.int64], minimum: float | None, maximum: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each bin's middle and half its width; a bin outside the points reaches to `minimum` or `maximum`."""
    lowest = _end(points[0], minimum, "minimum", -1, is_needed=bool(counts[0]))
    highest = _end(points[-1], maximum, "maximum", 1, is_needed=bool(counts[-1]))
    edges = np.concatenate([[lowest], points, [highest]])
    halves = 0.5 * edges
    middles, half_widths = np.empty(counts.size), np.zeros(counts.size)
    middles[1::2] = points
    middles[0::2] = halves[:-1] + halves[1:]
    half_widths[0::2] = halves[1:] - halves[:-1]
    return middles, half_widths


def _end(point: float, end: float | None, name: str, side: int, *, is_needed: bool) -> float:
    if not is_needed:
        return point
    if end is None or not side * end > side * point:
        raise ValueError(f"{name} must be given, and be beyond the reference: the window has values there")
    return end
