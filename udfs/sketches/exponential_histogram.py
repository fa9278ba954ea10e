"""Exponential histogram: OTLP's, whose buckets grow by base 2^(2^-scale). Merged exactly, whatever the scales.

Bucket i holds (base^i, base^(i+1)]. One scale less joins buckets 2j and 2j+1 into j: nothing is interpolated, so no
count is ever lost or moved to where it was not. Merging goes to the finest scale that both have and at which what is
filled spans at most MAX_BUCKETS buckets a sign; that depends on the observations, not on the order of merging.

Within a bucket quantiles are interpolated geometrically, as Prometheus does for native histograms (promql/quantile.go).

Memory 16 bytes a filled bucket. Commutative, associative, the empty histogram is neutral, total counts are kept.
Source: OpenTelemetry metrics data model, ExponentialHistogram ("all scales are subsetting"; zero threshold on merging).
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schemas.status import Status
from udfs.sketches.histogram_answers import GoodRatio, Quantile, check_rank

# OpenTelemetry SDK specification, Base2 Exponential Bucket Histogram Aggregation: default MaxSize and largest scale.
MAX_BUCKETS = 160
MAX_SCALE = 20
# One scale below -10, all of float64 lies in the buckets -1 and 0: a coarser one says no more.
MIN_SCALE = -11
_EDGE_TOLERANCE = 1e-9  # of a bucket's width: how far rounding can move a threshold off an edge

Buckets = tuple[tuple[int, int], ...]  # (index, count), ascending, counts above 0


@dataclass(frozen=True, slots=True)
class ExponentialHistogram:
    """Counts by sign and index. `scale` says nothing where no bucket is filled.

    `zero_count` are observations of at most `zero_threshold` in absolute value. `sum` is None where a part without it
    was merged in.
    """

    scale: int = MAX_SCALE
    zero_count: int = 0
    zero_threshold: float = 0.0
    positive: Buckets = ()
    negative: Buckets = ()
    sum: float | None = 0.0

    @classmethod
    def of(
        cls,
        scale: int,
        zero_count: int,
        positive: tuple[int, Sequence[int]],
        negative: tuple[int, Sequence[int]] = (0, ()),
        *,
        zero_threshold: float = 0.0,
        total: float | None = None,
    ) -> "ExponentialHistogram":
        """Return the histogram of OTLP's fields, `positive` and `negative` being (offset, counts).

        Scales above MAX_SCALE and spans above MAX_BUCKETS are brought down. Raises ValueError where these are no
        histogram. O(buckets).

        >>> histogram = ExponentialHistogram.of(3, 0, (1, [1, 1])).at_scale(2)
        >>> histogram.positive
        ((0, 1), (1, 1))
        """
        if scale < MIN_SCALE:
            raise ValueError(f"a scale below {MIN_SCALE} tells nothing apart")
        if zero_count < 0 or min((*positive[1], *negative[1]), default=0) < 0:
            raise ValueError("a count is negative")
        if not (math.isfinite(zero_threshold) and zero_threshold >= 0):
            raise ValueError("the zero threshold is no finite number from 0")
        if total is not None and not math.isfinite(total):
            raise ValueError("the sum is not finite")
        found = cls(scale, zero_count, zero_threshold, _sparse(*positive), _sparse(*negative), total)
        return found._fitting()

    @property
    def count(self) -> int:
        """How many observations there are."""
        return self.zero_count + sum(count for _, count in (*self.positive, *self.negative))

    def at_scale(self, scale: int) -> "ExponentialHistogram":
        """Return the same observations at a scale as coarse or coarser. Raises ValueError on a finer one. O(buckets).

        >>> ExponentialHistogram.of(1, 0, (-3, [1, 2, 4])).at_scale(0).positive
        ((-2, 1), (-1, 6))
        """
        if scale > self.scale:
            raise ValueError(f"scale {self.scale} can't be refined to {scale}")
        by = self.scale - scale
        if not by:
            return self
        return replace(self, scale=scale, positive=_joined(self.positive, by), negative=_joined(self.negative, by))

    def merge(self, other: "ExponentialHistogram") -> "ExponentialHistogram":
        """Return all observations of both. O(filled buckets).

        >>> empty = ExponentialHistogram.of(4, 0, (0, []), total=0.0)
        >>> full = ExponentialHistogram.of(4, 0, (-160, [2, 0, 9]), total=1.0)
        >>> empty.merge(full) == full.merge(empty) == full
        True
        """
        if not self.count and not other.count:
            threshold = max(self.zero_threshold, other.zero_threshold)
            total = _total(self.sum, other.sum)
            return ExponentialHistogram(min(self.scale, other.scale), zero_threshold=threshold, sum=total)
        if not other.count or not self.count:
            return self if self.count else other
        a, b = _alike(self, other)
        return ExponentialHistogram(
            scale=a.scale,
            zero_count=a.zero_count + b.zero_count,
            zero_threshold=a.zero_threshold,
            positive=_added(a.positive, b.positive),
            negative=_added(a.negative, b.negative),
            sum=_total(self.sum, other.sum),
        )._fitting()

    def minus(self, earlier: "ExponentialHistogram") -> "ExponentialHistogram | None":
        """Return what was observed since `earlier`, a report of the same counter, at the coarser of both scales.

        None where some bucket holds less than before: then the counter began anew in between. O(filled buckets).

        >>> now = ExponentialHistogram.of(0, 0, (0, [2, 2]))
        >>> now.minus(ExponentialHistogram.of(1, 0, (0, [1, 1]))).positive
        ((1, 2),)
        """
        if not earlier.count:
            return self
        a, b = _alike(self, earlier)
        positive, negative = _taken_from(a.positive, b.positive), _taken_from(a.negative, b.negative)
        if positive is None or negative is None or a.zero_count < b.zero_count:
            return None
        total = None if self.sum is None or earlier.sum is None else self.sum - earlier.sum
        return ExponentialHistogram(a.scale, a.zero_count - b.zero_count, a.zero_threshold, positive, negative, total)

    def quantile(self, q: float) -> Quantile:
        """Return the q-quantile: within the bucket that holds it, so within base - 1 of its value. Never censored.

        `no_data` without observations. Raises ValueError unless 0 <= q <= 1. O(filled buckets).

        >>> round(ExponentialHistogram.of(0, 0, (0, [10, 0])).quantile(0.5).value, 4)
        1.4142
        """
        check_rank(q)
        if not self.count:
            return Quantile(None, Status.NO_DATA)
        rank, below, last = q * self.count, 0, 0.0
        for lower, upper, count in self._ascending():
            if below + count >= rank:
                return Quantile(_between(lower, upper, (rank - below) / count), Status.OK)
            below, last = below + count, upper
        return Quantile(last, Status.OK)

    def good_ratio(self, threshold: float) -> GoodRatio:
        """Return the share of observations at or below `threshold`, with the bounds that the buckets allow.

        `no_data` without observations. Raises ValueError on NaN. O(filled buckets).

        >>> ratio = ExponentialHistogram.of(0, 0, (0, [1, 3])).good_ratio(2.0)
        >>> ratio.estimate, ratio.is_exact
        (0.25, True)
        """
        if math.isnan(threshold):
            raise ValueError("the threshold must be a number, not NaN")
        if not self.count:
            return GoodRatio(None, None, None, Status.NO_DATA)
        low, high, estimate = 0, 0, 0.0
        for lower, upper, count in self._ascending():
            share = _share_below(lower, upper, threshold)
            low += count if share == 1.0 else 0
            high += count if share > 0.0 else 0
            estimate += count * share
        return GoodRatio(low / self.count, high / self.count, estimate / self.count, Status.OK)

    def wire(self) -> tuple[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]]:
        """Return (offset, counts) of the positive and of the negative buckets, as OTLP has them. O(span)."""
        return _dense(self.positive), _dense(self.negative)

    def _fitting(self) -> "ExponentialHistogram":
        """Return the same at the finest allowed scale at which each sign spans at most MAX_BUCKETS."""
        scale = min(self.scale, MAX_SCALE)
        for buckets in (self.positive, self.negative):
            while buckets and _span(buckets, self.scale - scale) > MAX_BUCKETS:
                scale -= 1
        return self.at_scale(scale)

    def _with_zero_threshold(self, threshold: float) -> "ExponentialHistogram":
        """Return the same with at least this zero threshold: what is filled below it, or across it, joins the zeros.

        Where that cuts a filled bucket in two the threshold rises to the bucket's upper edge.
        """
        if threshold <= self.zero_threshold:
            return self
        inside = [i for i, _ in (*self.positive, *self.negative) if _edge(i, self.scale) < threshold]
        highest = max(inside, default=None)
        if highest is None:
            return replace(self, zero_threshold=threshold)
        moved = sum(count for i, count in (*self.positive, *self.negative) if i <= highest)
        return replace(
            self,
            zero_count=self.zero_count + moved,
            zero_threshold=max(threshold, _edge(highest + 1, self.scale)),
            positive=tuple(bucket for bucket in self.positive if bucket[0] > highest),
            negative=tuple(bucket for bucket in self.negative if bucket[0] > highest),
        )

    def _ascending(self) -> Iterable[tuple[float, float, int]]:
        """Yield (lower, upper, count) of what is filled, from the smallest values to the largest."""
        for index, count in reversed(self.negative):
            yield -_edge(index + 1, self.scale), -_edge(index, self.scale), count
        if self.zero_count:
            # As Prometheus: zeros of a histogram with one sign lie on that side.
            lower = 0.0 if self.positive and not self.negative else 0.0 - self.zero_threshold
            upper = 0.0 if self.negative and not self.positive else self.zero_threshold
            yield lower, upper, self.zero_count
        for index, count in self.positive:
            yield _edge(index, self.scale), _edge(index + 1, self.scale), count


def _alike(a: ExponentialHistogram, b: ExponentialHistogram) -> tuple[ExponentialHistogram, ExponentialHistogram]:
    """Return both at one scale and one zero threshold."""
    scale = min(a.scale, b.scale)
    a, b = a.at_scale(scale), b.at_scale(scale)
    while a.zero_threshold != b.zero_threshold:
        threshold = max(a.zero_threshold, b.zero_threshold)
        a, b = a._with_zero_threshold(threshold), b._with_zero_threshold(threshold)
    return a, b


def _edge(index: int, scale: int) -> float:
    """Return base^index, clamped to what a float64 holds."""
    exponent = math.ldexp(index, -scale)
    if exponent >= sys.float_info.max_exp:
        return sys.float_info.max
    return math.pow(2.0, exponent) if exponent > -1075 else 0.0


def _between(lower: float, upper: float, share: float) -> float:
    """Return the value at a share of a bucket: geometric, linear where the bucket touches 0."""
    if lower == 0.0 or upper == 0.0 or (lower < 0.0 < upper):
        return lower + (upper - lower) * share
    sign = 1.0 if lower > 0 else -1.0
    at = math.log2(abs(lower)) + (math.log2(abs(upper)) - math.log2(abs(lower))) * share
    return sign * min(math.pow(2.0, min(at, 1023.9999999999999)), sys.float_info.max)


def _share_below(lower: float, upper: float, threshold: float) -> float:
    """Return which share of a bucket is taken to be at or below the threshold; 1 and 0 only where that is sure."""
    if threshold >= upper or math.isclose(threshold, upper, rel_tol=_EDGE_TOLERANCE):
        return 1.0
    if threshold < lower or math.isclose(threshold, lower, rel_tol=_EDGE_TOLERANCE):
        return 0.0
    if lower > 0 or upper < 0:
        near, far, at = sorted((abs(lower), abs(upper)))[0], max(abs(lower), abs(upper)), abs(threshold)
        share = math.log2(at / near) / math.log2(far / near)
        share = share if lower > 0 else 1.0 - share
    else:
        share = (threshold - lower) / (upper - lower)
    return min(max(share, _EDGE_TOLERANCE), 1.0 - _EDGE_TOLERANCE)


def _sparse(offset: int, counts: Sequence[int]) -> Buckets:
    return tuple((offset + place, count) for place, count in enumerate(counts) if count)


def _dense(buckets: Buckets) -> tuple[int, tuple[int, ...]]:
    if not buckets:
        return 0, ()
    first, filled = buckets[0][0], dict(buckets)
    return first, tuple(filled.get(index, 0) for index in range(first, buckets[-1][0] + 1))


def _span(buckets: Buckets, by: int) -> int:
    """Return how many buckets lie from the first filled to the last, `by` scales coarser."""
    return (buckets[-1][0] >> by) - (buckets[0][0] >> by) + 1


def _joined(buckets: Buckets, by: int) -> Buckets:
    # Python's shift rounds towards minus infinity, which is what negative and odd offsets need.
    return _added(((index >> by, count) for index, count in buckets), ())


def _added(a: Iterable[tuple[int, int]], b: Buckets) -> Buckets:
    found: Counter[int] = Counter()
    for index, count in (*a, *b):
        found[index] += count
    return tuple(sorted(found.items()))


def _taken_from(now: Buckets, before: Buckets) -> Buckets | None:
    found = dict(now)
    for index, count in before:
        found[index] = found.get(index, 0) - count
        if found[index] < 0:
            return None
    return tuple(sorted((index, count) for index, count in found.items() if count))


def _total(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b
