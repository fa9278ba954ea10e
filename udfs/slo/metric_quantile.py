"""A quantile of a metric's histogram, merged over the series and slices of a window.

Each `histogram_delta` brings its buckets; those of a window are added on the bounds (at the scale) that all have, so
that a layout that changed costs resolution and never a count. Within a bucket the rule is Prometheus'
(`udfs.sketches.explicit_histogram`, `exponential_histogram`). A gauge and a counter have no distribution.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from schemas.measurements import MeasurementKind
from udfs.judging.window_judge import Input, InputKind
from udfs.sketches.both_histograms import BothHistograms
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.slo.conditions import Columns, Condition, all_of
from udfs.slo.indicators import Tally, quantile_name
from udfs.slo.metric_ratio import (
    BOUNDS,
    BUCKETS,
    COUNT,
    KIND,
    MOST_EVENTS,
    NEGATIVE,
    OFFSET,
    POSITIVE,
    SCALE,
    SUM,
    ZEROS,
)

NEGATIVE_OFFSET = Input("negative_offset", InputKind.NUMBER)
ZERO_THRESHOLD = Input("zero_threshold", InputKind.NUMBER)
_FIELDS = (COUNT, SUM, BOUNDS, BUCKETS, SCALE, ZEROS, ZERO_THRESHOLD, OFFSET, POSITIVE, NEGATIVE_OFFSET, NEGATIVE)


_MOST_INDEX = 2**31


@dataclass(frozen=True)
class MetricQuantile:
    """The q-quantile of the observations of points that fulfil `where`."""

    where: tuple[Condition, ...]
    q: float

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What the conditions and the histograms want of a point."""
        found = [given for condition in self.where for given in condition.inputs]
        return tuple(dict.fromkeys([*found, KIND, *_FIELDS]))

    @property
    def name(self) -> str:
        """Such as `p95`."""
        return quantile_name(self.q)

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return the merged histogram; `total` are its observations, `n_null` points without one. O(buckets of all)."""
        chosen = np.flatnonzero(all_of(self.where, columns, n).holds).tolist()
        kinds = list(columns[KIND])
        found = [_histogram(columns, at) if kinds[at] == MeasurementKind.HISTOGRAM_DELTA else None for at in chosen]
        merged = reduce(BothHistograms.merge, (one for one in found if one is not None), BothHistograms())
        has_any = merged != BothHistograms()
        return Tally(0, merged.count, found.count(None), sketch=merged.to_bytes() if has_any else b"")


def _histogram(columns: Columns, at: int) -> BothHistograms | None:
    """The histogram of one point; None where it is none."""
    count, total, bounds, buckets, scale, zeros, threshold, *signs = (columns[given][at] for given in _FIELDS)
    known_total = None if np.isnan(total) else float(total)
    try:
        if count > 0 and known_total == 0.0:
            return BothHistograms(n_all_zero=_whole([count])[0])
        if buckets is not None or np.isnan(scale):
            counts = _whole([count] if buckets is None else buckets)
            return BothHistograms(ExplicitHistogram.of([] if bounds is None else list(bounds), counts, known_total))
        positive, negative = ((_index(of), _whole([] if on is None else on)) for of, on in (signs[:2], signs[2:]))
        exponential = ExponentialHistogram.of(
            int(scale),
            _whole([_or_0(zeros)])[0],
            positive,
            negative,
            zero_threshold=_or_0(threshold),
            total=known_total,
        )
        return BothHistograms(exponential=exponential)
    except (ValueError, OverflowError):
        return None


def _or_0(value: float) -> float:
    return 0.0 if np.isnan(value) else float(value)


def _whole(counts: Iterable[float]) -> list[int]:
    """The counts as whole numbers. Raises ValueError or OverflowError where they are none."""
    found = [round(float(count)) for count in counts]
    if sum(map(abs, found)) > MOST_EVENTS:
        raise ValueError(f"more than {MOST_EVENTS:g} observations")
    return found


def _index(offset: float) -> int:
    """The first bucket's index. Raises ValueError or OverflowError where OTLP could not hold it."""
    found = int(_or_0(offset))
    if abs(found) > _MOST_INDEX:
        raise ValueError("the offset is not of 32 bits")
    return found
