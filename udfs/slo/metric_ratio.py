"""Good among all events where both are metric points: counters, and buckets of histograms.

What a point counts: a `counter_delta` its value, a `histogram_delta` its observations, or with `at_most` those in
buckets whose upper bound is at most that. Where `at_most` is no bound of the histogram, the bucket it lies in counts as
above: never a pass by a coarse layout. A histogram of observations that are all 0 is a clock that nobody started: it
counts for nothing. A `gauge` has no events.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.measurements import MeasurementKind
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.slo.conditions import Columns, Condition, all_of
from udfs.slo.indicators import Tally

_N, _V = InputKind.NUMBER, InputKind.VECTOR
KIND = Input("kind", InputKind.TEXT)
VALUE, COUNT, SUM = Input("value", _N), Input("count", _N), Input("sum", _N)
BOUNDS, BUCKETS = Input("bounds", _V), Input("bucket_counts", _V)
SCALE, ZEROS = Input("scale", _N), Input("zero_count", _N)
OFFSET, POSITIVE, NEGATIVE = Input("positive_offset", _N), Input("positive_counts", _V), Input("negative_counts", _V)
_HISTOGRAM = (BOUNDS, BUCKETS, SCALE, ZEROS, OFFSET, POSITIVE, NEGATIVE)
# More than any server counts between two scrapes. What says more is no count, and sums must stay within 64 bits.
MOST_EVENTS = 1e12
# A bound is met where it differs by rounding alone: 0.8 s may have come as 800 ms.
_ROUNDING = 1e-9
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class MetricRatio:
    """Points that fulfil `total` give all events, those that fulfil `part` the good ones (or the bad ones).

    `at_most` is for the part. The counts are rounded to whole events.
    """

    total: tuple[Condition, ...]
    part: tuple[Condition, ...]
    part_is_good: bool = True
    at_most: float | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What the conditions and the counts want of a point."""
        found = [given for condition in (*self.total, *self.part) for given in condition.inputs]
        found += [KIND, VALUE, COUNT, SUM, *(_HISTOGRAM if self.at_most is not None else ())]
        return tuple(dict.fromkeys(found))

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return the events of `n` points; `n_null` are points without a count. O(n and buckets)."""
        whole = amounts(columns)
        part = whole if self.at_most is None else amounts_at_most(columns, self.at_most)
        in_total = all_of(self.total, columns, n).holds
        in_part = all_of(self.part, columns, n).holds
        if self.at_most is not None:  # a point of which nobody can say what lies below is of no use above either
            in_total &= ~(in_part & np.isnan(part))
        total, of_part = (round(float(np.nansum(of[at]))) for of, at in ((whole, in_total), (part, in_part)))
        n_null = int((np.isnan(whole) & in_total).sum() + (np.isnan(part) & in_part).sum())
        return Tally(of_part if self.part_is_good else total - of_part, total, n_null)


def amounts(columns: Columns) -> Numbers:
    """Return how many events each point counts, float64; NaN where it counts none, or more than `MOST_EVENTS`."""
    kinds = np.array(list(columns[KIND]), dtype=object)
    value, count, total = (np.asarray(columns[given], dtype=np.float64) for given in (VALUE, COUNT, SUM))
    is_counter, is_histogram = kinds == MeasurementKind.COUNTER_DELTA, kinds == MeasurementKind.HISTOGRAM_DELTA
    found = np.where(is_counter, value, np.where(is_histogram, count, np.nan))
    with np.errstate(invalid="ignore"):
        is_none = (is_histogram & (count > 0) & (total == 0)) | (np.abs(found) > MOST_EVENTS)
    return np.where(is_none, np.nan, found)


def amounts_at_most(columns: Columns, limit: float) -> Numbers:
    """Return how many observations of each point are surely at most `limit`, float64; NaN where nobody can say.

    >>> columns = {KIND: ["histogram_delta"], VALUE: [np.nan], COUNT: [10.0], SUM: [5.0],
    ...     BOUNDS: [np.array([0.5, 1.0])], BUCKETS: [np.array([4.0, 5.0, 1.0])], SCALE: [np.nan], ZEROS: [np.nan],
    ...     OFFSET: [np.nan], POSITIVE: [None], NEGATIVE: [None]}
    >>> [float(amounts_at_most(columns, limit)[0]) for limit in (0.5, 0.8, 1.0, 2.0)]
    [4.0, 4.0, 9.0, 9.0]
    """
    whole = amounts(columns)
    rows = zip(whole.tolist(), *(columns[given] for given in _HISTOGRAM), strict=True)
    found = [np.nan if np.isnan(n) else _at_most(limit, *row) for n, *row in rows]
    return np.array([n if abs(n) <= MOST_EVENTS else np.nan for n in found], dtype=np.float64)


def _at_most(limit: float, bounds: Values, counts: Values, *exponential: object) -> float:
    reach = limit + _ROUNDING * abs(limit)
    if counts is not None:
        upper = np.asarray([] if bounds is None else bounds, dtype=np.float64)
        of_buckets = np.asarray(counts, dtype=np.float64)
        if of_buckets.size < upper.size:  # some bounds have no count
            return np.nan
        return float(of_buckets[: upper.size][upper <= reach].sum())
    return _exponential_at_most(reach, exponential)


def _exponential_at_most(reach: float, fields: Sequence[object]) -> float:
    """Bucket i holds (base^i, base^(i+1)], base = 2^(2^-scale); what is not above 0 counts where the limit is."""
    scale, zeros, offset, positive, negative = fields
    if not isinstance(scale, float) or np.isnan(scale):
        return float("nan")
    below = 0.0 if reach < 0 else sum(float(np.sum(np.asarray(of))) for of in (negative,) if of is not None)
    below += float(zeros) if isinstance(zeros, float) and not np.isnan(zeros) and reach >= 0 else 0.0
    if positive is None or reach <= 0:
        return below
    counts = np.asarray(positive, dtype=np.float64)
    first = 0.0 if not isinstance(offset, float) or np.isnan(offset) else offset
    upper_log2 = (first + np.arange(counts.size) + 1.0) * 2.0**-scale
    return below + float(counts[upper_log2 <= np.log2(reach)].sum())
