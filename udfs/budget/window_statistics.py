"""D of the windows of simulated quiet streams, and its like, made of slices as the drift job makes them.

A stream is cut into slices of n / overlap values; a window is the sum of the last `overlap` slices' counts on and
between the reference's points, and its D is exact: the same as `udfs.sketches.rank.RankSketch` gives (tested). All
counts are whole numbers, so the same seed gives the same bits on every machine. Cramer-von Mises and Wasserstein-1 are
made of the same gaps as D (`udfs.statistics.gap_norms`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from udfs.budget.sources import Source
from udfs.references.feature import middle_order_statistics
from udfs.statistics.gap_norms import area_between, root_mean_square_gap

Floats = NDArray[np.float64]
Whole = NDArray[np.signedinteger[Any]]
Norm = Literal["ks_two_sample", "cramer_von_mises", "wasserstein_1"]
GUIDE_CELLS = 1 << 15
"""Cells of the table that places most values among the points without a search: an array of 64 KiB, within L2."""


@dataclass(frozen=True)
class Layout:
    """How streams are simulated: against a reference of `n_reference` raw values, of which `n_points` are kept.

    `norm` names the distance of a window to it, `slice_sizes` is the pattern of slice lengths, repeated over a stream,
    `slides` how many slices a stream has.
    """

    n_reference: int
    n_points: int
    slice_sizes: tuple[int, ...]
    slides: int
    norm: Norm = "ks_two_sample"

    def sizes(self) -> NDArray[np.int64]:
        """The length of each slice of a stream."""
        return np.resize(np.array(self.slice_sizes), self.slides)


def slice_sizes(n: int, overlap: int) -> tuple[int, ...]:
    """Cut a window of n values into `overlap` slices as evenly as whole numbers allow; every such run holds n values.

    >>> slice_sizes(10, 4)
    (2, 3, 2, 3)
    """
    return tuple(int(size) for size in np.diff(np.arange(overlap + 1) * n // overlap))


def simulated_statistics(
    source: Source, layout: Layout, overlaps: Sequence[int], rng: np.random.Generator, streams: int
) -> dict[int, Floats]:
    """Return, for each overlap k, D of the windows of k slices: float64 of shape (streams, slides - k + 1).

    Or the distance that the layout names. Each stream has a reference of its own. Time: 10 to 20 ns a value and 0.5 ns
    a point, slice and overlap (the other distances some 10 ns); memory: 8 bytes a window, and a few arrays of
    slides x points.
    """
    found: dict[int, list[Floats]] = {k: [] for k in overlaps}
    for windows in _streams(source, layout, rng, streams):
        for k in overlaps:
            found[k].append(windows.statistics(k, layout.norm))
    return {k: np.array(statistics) for k, statistics in found.items()}


def reference_of(source: Source, layout: Layout, rng: np.random.Generator) -> Floats:
    """Draw a reference and keep of it what a profile keeps: ascending points."""
    raw = np.sort(source.draw(rng, layout.n_reference))
    return raw if raw.size <= layout.n_points else middle_order_statistics(raw, layout.n_points)


def _streams(source: Source, layout: Layout, rng: np.random.Generator, streams: int) -> Iterator["_Windows"]:
    sizes = layout.sizes()
    for _ in range(streams):
        true = source.of_one_stream(rng)
        points = reference_of(true, layout, rng)
        values = true.draw(rng, int(sizes.sum()))
        yield _Windows.of(points, values, sizes, is_tied=source.has_ties)


@dataclass(frozen=True, eq=False)
class _Windows:
    """Counts of one stream, summed over bins and over time, times m: a window is the difference of two rows.

    `reached` has a row for each slice and one of zeros before; `reference` the reference's own running counts at the
    upper end of each bin. Whole numbers may wrap around; differences of them don't. `points` are distinct, each
    `multiplicity` times, and `values` the stream itself.
    """

    reached: Whole
    reference: Whole
    sizes: NDArray[np.int64]
    m: int
    is_tied: bool
    points: Floats
    multiplicity: NDArray[np.int64]
    values: Floats

    @classmethod
    def of(cls, points: Floats, values: Floats, sizes: NDArray[np.int64], *, is_tied: bool) -> "_Windows":
        m = points.size
        distinct, times = np.unique(points, return_counts=True) if is_tied else (points, np.ones(m, dtype=np.int64))
        bins = bins_of(values, distinct, is_tied=is_tied)
        width = (2 * distinct.size + 1) if is_tied else m + 1
        bins += np.repeat(np.arange(sizes.size) * width, sizes)
        counts = np.bincount(bins, minlength=sizes.size * width).reshape(sizes.size, width)
        whole: type[np.signedinteger[Any]] = np.int64 if m * int(sizes.sum()) >= 1 << 30 else np.int32
        reached = np.zeros((sizes.size + 1, width), dtype=whole)
        np.cumsum(counts, axis=1, out=reached[1:], dtype=whole)
        np.cumsum(reached, axis=0, out=reached, dtype=whole)
        np.multiply(reached, whole(m), out=reached)
        steps = np.zeros(width, dtype=whole)
        steps[1 :: 2 if is_tied else 1] = times
        return cls(reached, np.cumsum(steps, dtype=whole), sizes, m, is_tied, distinct, times, values)

    def statistics(self, overlap: int, norm: Norm) -> Floats:
        """D, or another distance, of every window of `overlap` slices; no window may be empty."""
        passed = np.append(0, np.cumsum(self.sizes))
        n = passed[overlap:] - passed[:-overlap]
        gaps = self._gaps(overlap, n)
        if norm == "ks_two_sample":
            return self._largest(gaps, n)
        scale = (1.0 / (self.m * n))[:, None]
        if self.is_tied:
            before, at = gaps[:, :-1:2] * scale, gaps[:, 1::2] * scale
        else:
            before = gaps[:, :-1] * scale
            at = before - 1.0 / self.m
        if norm == "cramer_von_mises":
            return root_mean_square_gap(before, at, self.multiplicity)
        beyond: Floats = self._outside(overlap) / n
        return beyond + area_between(before, at, self.points)

    def _outside(self, overlap: int) -> Floats:
        """How far the values of every window lie beyond all points, summed up."""
        low, high = self.points[0], self.points[-1]
        outside = np.maximum(self.values - high, 0.0) + np.maximum(low - self.values, 0.0)
        reached = np.append(0.0, np.cumsum(np.add.reduceat(outside, np.cumsum(self.sizes) - self.sizes)))
        found: Floats = reached[overlap:] - reached[:-overlap]
        return found

    def _gaps(self, overlap: int, n: NDArray[np.int64]) -> Whole:
        is_even = bool((n == n[0]).all())
        gaps = self.reached[overlap:] - self.reached[:-overlap]
        gaps -= self.reference * (n[:1] if is_even else n[:, None]).astype(self.reference.dtype)
        return gaps

    def _largest(self, gaps: Whole, n: NDArray[np.int64]) -> Floats:
        above = gaps.max(axis=1).astype(np.int64)
        # Without ties bin j ends just below point j. At the point the reference is n further up, the window isn't.
        down = gaps if self.is_tied else gaps[:, :-1]
        below = down.min(axis=1).astype(np.int64) - (0 if self.is_tied else n)
        largest: Floats = np.maximum(above, -below) / (self.m * n)
        return largest


def bins_of(values: Floats, distinct: Floats, *, is_tied: bool) -> NDArray[np.int64]:
    """Return the bin of each value: how many points are below it; where ties count, 2i + 1 on point i and 2i below.

    A value and a point that share no cell of an even grid are in the order of their cells, so only values in a cell
    with a point are searched for. Exact: a cell is a monotone function of the value.
    """
    low, high = float(distinct[0]), float(distinct[-1])
    scale = (GUIDE_CELLS - 2) / (high - low) if high > low else 0.0
    if not 0.0 < scale < np.inf or not np.isfinite([low, high]).all():
        return _searched(values, distinct, is_tied=is_tied)

    def cell(of: Floats) -> NDArray[np.int64]:
        return (np.clip((of - low) * scale, -1.0, GUIDE_CELLS - 2) + 1.0).astype(np.int64)

    cells = cell(distinct)
    below = np.zeros(GUIDE_CELLS + 1, dtype=np.int64)
    np.cumsum(np.bincount(cells, minlength=GUIDE_CELLS), out=below[1:])
    holds_point = np.diff(below) > 0
    guide = below[:-1] * (2 if is_tied else 1)
    guide[holds_point] = -1
    bins = guide[cell(values)]
    unsure = np.flatnonzero(bins < 0)
    bins[unsure] = _searched(values[unsure], distinct, is_tied=is_tied)
    return bins


def _searched(values: Floats, distinct: Floats, *, is_tied: bool) -> NDArray[np.int64]:
    below = distinct.searchsorted(values, side="left")
    return below + distinct.searchsorted(values, side="right") if is_tied else below
