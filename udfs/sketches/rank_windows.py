"""Many windows of rank sketches at once: added up, with the largest gap and the p-value of each, in passes over all.

Guarantee: `merge_windows` gives sketches equal to those of `RankSketch.merge_all`, window by window, and the same D and
p to the last bit of D and within rounding of p (tests/laws). It takes about half of the time where windows have 1,000
values.

Gaps are compared as whole numbers, R m - S n where R of the window's n values and S of the reference's m lie at or
below: quick and exact. Only the largest are then computed as shares, as scipy rounds them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.rank import Gap, RankSketch
from udfs.sketches.rank_bytes import plain_bin_numbers
from udfs.sketches.reference import RankReference
from udfs.statistics.kolmogorov import asymptotic_p_values

Whole = NDArray[np.int64]
BinNumbers = NDArray[np.integer[Any]]

MOST_COUNTS = 1 << 16
"""Counts held at a time, half a MiB: so many windows go through a processor's cache together."""


FEWEST_TOGETHER = 4
"""Fewer windows are faster one by one."""


def merge_windows(windows: Sequence[Sequence[bytes]], reference: RankReference) -> list[RankSketch]:
    """Return the sketch of each window, straight from the bytes of its slices, with gap and p-value known.

    Raises ValueError on bytes that are no sketch, and where one has another reference. O(total bytes + k) a window.

    >>> reference = RankReference.from_values([1.0, 2.0])
    >>> slices = [RankSketch.from_values(v, reference).to_bytes() for v in ([0.0], [1.0, 3.0])]
    >>> [sketch.statistic() for sketch in merge_windows([slices, slices[:1]] * 2, reference)][:2]
    [0.33333333333333337, 1.0]
    """
    if len(windows) < FEWEST_TOGETHER:
        return [RankSketch.merge_all(slices, reference) for slices in windows]
    at_once = max(1, MOST_COUNTS // reference.n_bins)
    found: list[RankSketch] = []
    for begin in range(0, len(windows), at_once):
        found += _merged(windows[begin : begin + at_once], reference)
    known = [(sketch, sketch.gap.statistic) for sketch in found if sketch.gap is not None]
    p_values = asymptotic_p_values([d for _, d in known], reference.n, [sketch.n for sketch, _ in known])
    for (sketch, _), p_value in zip(known, p_values, strict=True):
        sketch.know_p_value(p_value)
    return found


def _merged(windows: Sequence[Sequence[bytes]], reference: RankReference) -> list[RankSketch]:
    """Add up a few windows: those of plain slices together, the others one by one."""
    bodies = [plain_bin_numbers(slices, reference) for slices in windows]
    sketches = iter(_with_gaps([numbers for numbers in bodies if numbers is not None and numbers.size], reference))
    return [
        RankSketch.merge_all(slices, reference) if numbers is None or not numbers.size else next(sketches)
        for slices, numbers in zip(windows, bodies, strict=True)
    ]


def _with_gaps(plain: list[BinNumbers], reference: RankReference) -> list[RankSketch]:
    """The counts are not kept: of a window that has not drifted nobody asks for them."""
    n = np.array([numbers.size for numbers in plain], dtype=np.int64)
    gaps = _largest_gaps(plain, n, reference) if reference.n and plain else None
    return [
        RankSketch(reference, size, 0, 0, unordered=numbers, gap=gaps[at] if gaps else None)
        for at, (size, numbers) in enumerate(zip(n.tolist(), plain, strict=True))
    ]


def _largest_gaps(plain: list[BinNumbers], n: Whole, reference: RankReference) -> list[Gap]:
    """Return the largest gap of each window, at the first bin that has it."""
    numbers = np.concatenate(plain)
    if int(numbers.max()) >= reference.n_bins:
        raise ValueError("not a rank sketch: a bin number is beyond the last bin")
    is_untied = reference.is_distinct and not (numbers & 1).any()
    reached, rows, bins = (_untied if is_untied else _tied)(numbers, n, reference)
    shares = np.abs(reached / n[rows] - reference.ecdf[bins])
    found: list[Gap] = []
    begins = np.searchsorted(rows, np.arange(n.size)).tolist()
    for begin, end in zip(begins, [*begins[1:], rows.size], strict=True):
        # Equal as fractions they may differ in the last bit, and then the largest counts.
        at = begin if end == begin + 1 else begin + int(shares[begin:end].argmax())
        found.append(Gap(float(shares[at]), int(bins[at]), int(reached[at])))
    return found


Places = tuple[NDArray[Any], Whole, Whole]
"""Where windows have their largest gaps: how many values lie up to there, the window, the bin; by window and bin."""


def _tied(numbers: BinNumbers, n: Whole, reference: RankReference) -> Places:
    reached, kind = _reached(numbers, n, reference.n_bins, reference)
    gaps = reached * kind(reference.n)
    gaps -= reference.reached.astype(kind) * n.astype(kind)[:, None]
    np.abs(gaps, out=gaps)
    places = np.flatnonzero(gaps == gaps.max(axis=1)[:, None])
    rows, bins = np.divmod(places, reference.n_bins)
    return reached.ravel()[places], rows, bins


def _untied(numbers: BinNumbers, n: Whole, reference: RankReference) -> Places:
    """No value lies on a point, so bin 2i and 2i + 1 are reached by as many, and half of the bins tell all.

    Above the reference the gap is largest below a point, and below it at a point, where the reference has one more.
    """
    cells = reference.n + 1
    reached, kind = _reached(numbers >> 1, n, cells, reference)
    gaps = reached * kind(reference.n)
    gaps -= np.arange(cells, dtype=kind) * n.astype(kind)[:, None]
    before_points = gaps[:, :-1]
    above, below = gaps.max(axis=1), n - before_points.min(axis=1)
    largest = np.maximum(above, below)
    at_up = np.where(above == largest, largest, largest + 1).astype(kind)  # above the largest there is none
    at_down = np.where(below == largest, n - largest, largest + 1).astype(kind)
    up_rows, up_cells = np.divmod(np.flatnonzero(gaps == at_up[:, None]), cells)
    down_rows, down_cells = np.divmod(np.flatnonzero(before_points == at_down[:, None]), cells - 1)
    rows, in_cells = np.concatenate([up_rows, down_rows]), np.concatenate([up_cells, down_cells])
    bins = np.concatenate([2 * up_cells, 2 * down_cells + 1])
    order = np.lexsort((bins, rows))
    return reached[rows, in_cells][order], rows[order], bins[order]


def _reached(numbers: BinNumbers, n: Whole, n_bins: int, reference: RankReference) -> tuple[NDArray[Any], type[Any]]:
    """Return how many values of each window lie up to each bin, in whole numbers that hold their product with m."""
    kind = np.int32 if (reference.n + 1) * int(n.max()) < 1 << 31 else np.int64
    places = numbers + np.repeat(np.arange(n.size) * n_bins, n)
    counts = np.bincount(places, minlength=n.size * n_bins).reshape(n.size, n_bins)
    return np.cumsum(counts, axis=1, dtype=kind), kind
