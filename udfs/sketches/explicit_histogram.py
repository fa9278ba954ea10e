"""Explicit histogram: counts between fixed bounds, as OTLP, Prometheus and vLLM report them.

Merging adds the counts of bounds that both have: exact, since a bucket of the coarser layout is a union of buckets of
the finer one. A layout that changed in the middle of a window costs resolution, never a count. A histogram without
observations changes nothing, whatever its layout.

Quantiles follow Prometheus' `histogram_quantile` (promql/quantile.go, classic histograms): linear within a bucket, the
first of which begins at 0 where its bound is positive. In the last bucket, which has no end, the answer is its lower
bound and says that it is censored. Where that rule gives NaN, we give a status instead.

Memory 16 bytes a bucket. Commutative, associative, the empty histogram is neutral, total counts are kept.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.status import Status
from udfs.sketches.histogram_answers import GoodRatio, Quantile, check_rank


@dataclass(frozen=True, slots=True)
class ExplicitHistogram:
    """Counts over (-inf, b0], (b0, b1], ... (bn-1, inf): one count more than `bounds`, which ascend and are finite.

    `sum` is None where a part without it was merged in.
    """

    bounds: tuple[float, ...] = ()
    counts: tuple[int, ...] = (0,)
    sum: float | None = 0.0

    @classmethod
    def of(cls, bounds: Sequence[float], counts: Sequence[int], total: float | None = None) -> "ExplicitHistogram":
        """Return the checked histogram. Raises ValueError where these are no histogram.

        >>> ExplicitHistogram.of([1.0, 2.0], [3, 0, 1]).count
        4
        """
        if len(counts) != len(bounds) + 1:
            raise ValueError(f"{len(bounds)} bounds need {len(bounds) + 1} counts, not {len(counts)}")
        if not all(math.isfinite(bound) for bound in bounds):
            raise ValueError("a bound is not finite")
        if any(lower >= upper for lower, upper in itertools.pairwise(bounds)):
            raise ValueError("the bounds do not ascend")
        if any(count < 0 for count in counts):
            raise ValueError("a count is negative")
        if total is not None and not math.isfinite(total):
            raise ValueError("the sum is not finite")
        return cls(tuple(map(float, bounds)), tuple(counts), total)

    @classmethod
    def from_cumulative(cls, buckets: Iterable[tuple[str | float, int]]) -> "ExplicitHistogram":
        """Return the histogram of Prometheus buckets: (le, observations at or below it), +Inf among them.

        Raises ValueError without +Inf and where counts fall as `le` grows.

        >>> ExplicitHistogram.from_cumulative([("1", 50), ("2.5", 90), ("+Inf", 100)]).counts
        (50, 40, 10)
        """
        ordered = sorted((float(le), count) for le, count in buckets)
        if not ordered or ordered[-1][0] != math.inf:
            raise ValueError("there is no +Inf bucket")
        totals = [count for _, count in ordered]
        counts = [b - a for a, b in itertools.pairwise([0, *totals])]
        return cls.of([le for le, _ in ordered[:-1]], counts)

    @property
    def count(self) -> int:
        """How many observations there are."""
        return sum(self.counts)

    def on(self, bounds: tuple[float, ...]) -> "ExplicitHistogram":
        """Return the same observations on fewer bounds. Raises ValueError on a bound that this one lacks. O(buckets).

        >>> ExplicitHistogram.of([1.0, 2.0, 3.0], [1, 2, 3, 4]).on((2.0,)).counts
        (3, 7)
        """
        if bounds == self.bounds:
            return self
        if missing := set(bounds) - set(self.bounds):
            raise ValueError(f"{min(missing)} is no bound of this histogram")
        wanted, counts, gathered = set(bounds), [], 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            gathered += count
            if bound in wanted:
                counts.append(gathered)
                gathered = 0
        return ExplicitHistogram(bounds, (*counts, gathered + self.counts[-1]), self.sum)

    def merge(self, other: "ExplicitHistogram") -> "ExplicitHistogram":
        """Return all observations of both, on the bounds that both have. O(buckets).

        >>> a, b = ExplicitHistogram.of([1.0, 2.0], [1, 1, 1]), ExplicitHistogram.of([2.0, 4.0], [5, 1, 1])
        >>> a.merge(b).bounds, a.merge(b).counts
        ((2.0,), (7, 3))
        """
        if not self.count and not other.count:
            union = tuple(sorted({*self.bounds, *other.bounds}))
            return ExplicitHistogram(union, (0,) * (len(union) + 1), _total(self.sum, other.sum))
        if not other.count or not self.count:
            return self if self.count else other
        bounds = common_bounds(self, other)
        a, b = self.on(bounds), other.on(bounds)
        counts = tuple(x + y for x, y in zip(a.counts, b.counts, strict=True))
        return ExplicitHistogram(bounds, counts, _total(self.sum, other.sum))

    def minus(self, earlier: "ExplicitHistogram") -> "ExplicitHistogram | None":
        """Return what was observed since `earlier`, a report of the same counter, on the bounds that both have.

        None where some bucket holds less than before: then the counter began anew in between. O(buckets).

        >>> now, before = ExplicitHistogram.of([1.0], [5, 2]), ExplicitHistogram.of([1.0], [4, 2])
        >>> now.minus(before).counts, before.minus(now)
        ((1, 0), None)
        """
        if not earlier.count:
            return self
        bounds = common_bounds(self, earlier)
        pairs = zip(self.on(bounds).counts, earlier.on(bounds).counts, strict=True)
        counts = tuple(now - before for now, before in pairs)
        if min(counts) < 0:
            return None
        total = None if self.sum is None or earlier.sum is None else self.sum - earlier.sum
        return ExplicitHistogram(bounds, counts, total)

    def quantile(self, q: float) -> Quantile:
        """Return the q-quantile by Prometheus' rule, with a status in place of NaN.

        `no_data` without observations, `inconclusive` without bounds. Raises ValueError unless 0 <= q <= 1. O(buckets).

        >>> ExplicitHistogram.from_cumulative([("1", 50), ("2.5", 90), ("+Inf", 100)]).quantile(0.99)
        Quantile(value=2.5, status=<Status.OK: 'ok'>, censored=True)
        """
        check_rank(q)
        if not self.count:
            return Quantile(None, Status.NO_DATA)
        if not self.bounds:
            return Quantile(None, Status.INCONCLUSIVE)
        rank, below = q * self.count, 0
        for place, count in enumerate(self.counts):
            if count and below + count >= rank:
                return self._within(place, (rank - below) / count)
            below += count
        # Rounding put the rank above the count: it is the last observation's.
        return self._within(max(place for place, count in enumerate(self.counts) if count), 1.0)

    def _within(self, place: int, share: float) -> Quantile:
        """Return the value at a share of one bucket."""
        if place == len(self.bounds):
            return Quantile(self.bounds[-1], Status.OK, censored=True)
        lower, upper = self._lower(place), self.bounds[place]
        if lower is None:
            return Quantile(upper, Status.OK, censored=True)
        return Quantile(lower + (upper - lower) * share, Status.OK)

    def _lower(self, place: int) -> float | None:
        """Return where a bucket begins: 0 for the first if its bound is positive, None if it is not."""
        if place:
            return self.bounds[place - 1]
        return 0.0 if self.bounds[0] > 0 else None

    def good_ratio(self, threshold: float) -> GoodRatio:
        """Return the share of observations at or below `threshold`, with the bounds that the buckets allow.

        `no_data` without observations. Raises ValueError on NaN. O(buckets).

        >>> histogram = ExplicitHistogram.from_cumulative([("1.0", 80), ("2.5", 100), ("+Inf", 100)])
        >>> ratio = histogram.good_ratio(2.0)
        >>> ratio.low, ratio.high, round(ratio.estimate, 4), ratio.is_exact
        (0.8, 1.0, 0.9333, False)
        """
        if math.isnan(threshold):
            raise ValueError("the threshold must be a number, not NaN")
        if not self.count:
            return GoodRatio(None, None, None, Status.NO_DATA)
        place = sum(bound < threshold for bound in self.bounds)  # the bucket that holds the threshold
        below = sum(self.counts[:place])
        if place == len(self.bounds):
            # Beyond the last bound: of what is above it we know nothing, but that +Inf has everything.
            low, high, share = below, self.count, float(threshold == math.inf)
            low = high if share else low
        else:
            low, high = below, below + self.counts[place]
            lower, upper = self._lower(place), self.bounds[place]
            low = high if threshold == upper else low
            share = 0.0 if lower is None else min(max((threshold - lower) / (upper - lower), 0.0), 1.0)
        estimate = low + (high - low) * share
        return GoodRatio(low / self.count, high / self.count, estimate / self.count, Status.OK)


def common_bounds(a: ExplicitHistogram, b: ExplicitHistogram) -> tuple[float, ...]:
    """Return the bounds that both have, ascending."""
    return a.bounds if a.bounds == b.bounds else tuple(sorted(set(a.bounds) & set(b.bounds)))


def histogram_quantile(q: float, buckets: Iterable[tuple[str | float, int]]) -> Quantile:
    """Return the q-quantile of Prometheus buckets, `invalid` where they are no histogram.

    Raises ValueError unless 0 <= q <= 1. O(buckets log buckets).

    >>> str(histogram_quantile(0.99, [("1", 3), ("2", 5)]).status)
    'invalid'
    """
    check_rank(q)
    try:
        return ExplicitHistogram.from_cumulative(buckets).quantile(q)
    except ValueError:
        return Quantile(None, Status.INVALID)


def _total(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b
