"""The affine map a x + b (a > 0) that brings a reference's distribution nearest a log sketch's, and what is left then.

Quantiles of a x + b are a Q(p) + b, so a and b are fitted by least squares to quantiles, the outer 2.5 % left out: one
wild value would move the fit and says nothing of it. What is left is a distance D that forgives what the sketch can't
know: two values count as one where they are within twice its relative accuracy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.log import LogSketch

Floats = NDArray[np.float64]

SHARES = np.linspace(0.025, 0.975, 39)
FEWEST_VALUES = 20


@dataclass(frozen=True, slots=True)
class AffineFit:
    """The window is about `factor` times the reference plus `offset`.

    `distance` is D before the map, `residual` after it. `blur` is the sketch's error in spreads of the window (its
    95 % range): where it isn't well below 1 the fit means nothing.
    """

    factor: float
    offset: float
    distance: float
    residual: float
    blur: float


def fit_affine(points: Floats, window: LogSketch) -> AffineFit | str:
    """Fit the map, or say in words why there is none. `points` are float64, ascending. O(points + bins).

    >>> from scipy.special import ndtri
    >>> points = np.exp(ndtri((np.arange(1000) + 0.5) / 1000))
    >>> fit = fit_affine(points, LogSketch.from_values(1000.0 * points))
    >>> 990 < fit.factor < 1010, fit.distance > 0.9, fit.residual < 0.01
    (True, True, True)
    >>> fit_affine(np.array([5.0] * 20), LogSketch.from_values(points))
    'the reference is constant'
    """
    if min(points.size, window.n) < FEWEST_VALUES:
        return f"there are fewer than {FEWEST_VALUES} values"
    ours, theirs = quantiles(points, SHARES), _sketched_quantiles(window, SHARES)
    usable = np.isfinite(ours) & np.isfinite(theirs)
    if usable.sum() < SHARES.size:
        return "too many values are infinite"
    with np.errstate(over="ignore", invalid="ignore"):
        spread, window_spread = ours[-1] - ours[0], theirs[-1] - theirs[0]
        if spread == 0.0:
            return "the reference is constant"
        if window_spread == 0.0:
            return "the window is constant, as far as its sketch can tell"
        centred = (ours - ours.mean()) / spread
        factor = float(np.sum(centred * ((theirs - theirs.mean()) / spread)) / np.sum(centred * centred))
        offset = float(theirs.mean() - factor * ours.mean())
        mapped = factor * points + offset
        blur = 2.0 * window.relative_accuracy * float(np.abs(theirs).max()) / float(window_spread)
        figures = np.array([spread, window_spread, factor, offset, blur])
    if not np.isfinite(figures).all() or factor <= 0.0:
        return "the values are too large or too small to fit"
    return AffineFit(factor, offset, forgiving_distance(points, window), forgiving_distance(mapped, window), blur)


def quantiles(ordered: Floats, shares: Floats) -> Floats:
    """Return the values of rank floor(q (n - 1)) of an ascending array, as `LogSketch.quantile` counts."""
    kept: Floats = ordered[np.floor(shares * (ordered.size - 1)).astype(np.int64)]
    return kept


def _sketched_quantiles(window: LogSketch, shares: Floats) -> Floats:
    ranks = np.floor(shares * (window.n - 1))
    kept: Floats = window.representatives()[np.searchsorted(np.cumsum(window.counts), ranks, side="right")]
    return kept


def forgiving_distance(points: Floats, window: LogSketch) -> float:
    """Return D between ascending `points` and a sketch's values, those within twice its accuracy taken for equal.

    Never above the true D, but for rounding. O(points + bins).

    >>> forgiving_distance(np.array([1.0, 2.0]), LogSketch.from_values([1.001, 2.001]))
    0.0
    """
    values = window.representatives()
    points = points[~np.isnan(points)]
    f_window, f_points = np.cumsum(window.counts) / window.n, np.arange(1, points.size + 1) / points.size
    within = 2.0 * window.relative_accuracy
    with np.errstate(invalid="ignore", over="ignore"):
        above_values, above_points = values + within * np.abs(values), points + within * np.abs(points)
    above_values, above_points = (np.where(np.isnan(v), -np.inf, v) for v in (above_values, above_points))
    windows_lead = f_window - np.searchsorted(points, above_values, side="right") / points.size
    places = np.searchsorted(values, above_points, side="right")
    points_lead = f_points - np.concatenate([[0.0], f_window])[places]
    return float(max(0.0, windows_lead.max(), points_lead.max()))
