"""What holds for every histogram, explicit or exponential."""

import itertools
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.status import Status
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import MAX_BUCKETS, ExponentialHistogram

Histogram = ExplicitHistogram | ExponentialHistogram

COUNTS = st.integers(0, 5) | st.sampled_from([0, 2**40])


@st.composite
def explicit(draw: st.DrawFn) -> ExplicitHistogram:
    bounds = sorted(draw(st.sets(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]), max_size=6)))
    counts = draw(st.lists(COUNTS, min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    return ExplicitHistogram.of(bounds, counts, float(draw(st.integers(0, 100))) if sum(counts) else 0.0)


NO_WIDTH = st.just(0.0)


@st.composite
def exponential(draw: st.DrawFn, thresholds: st.SearchStrategy[float] = NO_WIDTH) -> ExponentialHistogram:
    sides = [(draw(st.integers(-400, 400)), draw(st.lists(COUNTS, max_size=6))) for _ in range(2)]
    zero_count = draw(COUNTS)
    any_count = zero_count + sum(sides[0][1]) + sum(sides[1][1])
    return ExponentialHistogram.of(
        draw(st.integers(-2, 6)),
        zero_count,
        *sides,
        zero_threshold=draw(thresholds),
        total=float(draw(st.integers(0, 100))) if any_count else 0.0,
    )


EITHER = st.one_of(st.lists(explicit(), min_size=3, max_size=3), st.lists(exponential(), min_size=3, max_size=3))


@given(EITHER)
def test_merging_is_commutative_associative_and_keeps_every_count(three: list[Histogram]) -> None:
    a, b, c = three
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(b).count == a.count + b.count


@given(explicit() | exponential())
def test_the_empty_histogram_is_neutral(histogram: Histogram) -> None:
    empty = type(histogram)()
    assert histogram.merge(empty) == empty.merge(histogram) == histogram


@given(exponential(st.sampled_from([0.0, 0.1, 1.0, 3.0])), exponential(st.sampled_from([0.0, 0.5, 2.0])))
def test_zero_thresholds_never_cost_a_count(a: ExponentialHistogram, b: ExponentialHistogram) -> None:
    assert a.merge(b).count == b.merge(a).count == a.count + b.count
    assert a.merge(b) == b.merge(a)


@given(exponential(), st.integers(0, 8))
def test_downscaling_keeps_every_count_and_is_done_in_any_steps(h: ExponentialHistogram, by: int) -> None:
    assert h.at_scale(h.scale - by).count == h.count
    stepwise = h
    for _ in range(by):
        stepwise = stepwise.at_scale(stepwise.scale - 1)
    assert stepwise == h.at_scale(h.scale - by)
    assert all(len(counts) <= MAX_BUCKETS for _, counts in h.wire())


@given(EITHER)
def test_what_was_added_is_what_a_difference_finds(three: list[Histogram]) -> None:
    before, added, _ = three
    now = before.merge(added)
    if before.count and added.count:
        found = now.minus(before)
        assert found is not None
        assert found.count == added.count
        assert before.merge(found) == now


@given(explicit(), st.data())
def test_fewer_bounds_say_the_same_of_those_left(histogram: ExplicitHistogram, data: st.DataObject) -> None:
    kept = tuple(sorted(data.draw(st.sets(st.sampled_from(histogram.bounds))))) if histogram.bounds else ()
    coarse = histogram.on(kept)
    assert coarse.count == histogram.count
    for bound in kept:
        assert coarse.good_ratio(bound) == histogram.good_ratio(bound)


@given(explicit() | exponential(), st.floats(0, 1), st.floats(allow_nan=False))
def test_no_answer_is_ever_nan_or_infinite(histogram: Histogram, q: float, threshold: float) -> None:
    quantile, ratio = histogram.quantile(q), histogram.good_ratio(threshold)
    assert (quantile.value is None) == (quantile.status is not Status.OK)
    assert quantile.value is None or np.isfinite(quantile.value)
    if ratio.status is Status.OK:
        assert 0 <= ratio.low <= ratio.estimate <= ratio.high <= 1
    else:
        assert (ratio.status, histogram.count) == (Status.NO_DATA, 0)


@given(explicit() | exponential(), st.lists(st.floats(0, 1), min_size=2))
def test_quantiles_ascend(histogram: Histogram, ranks: list[float]) -> None:
    values = [histogram.quantile(q).value for q in sorted(ranks)]
    if None not in values:
        assert all(a <= b * (1 + 1e-12) + 1e-12 or a <= b for a, b in itertools.pairwise(values))


@settings(max_examples=30)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=200), st.integers(-1, 5), st.floats(0.01, 1))
def test_the_true_quantile_lies_in_the_bucket_of_the_answer(sample: list[float], scale: int, q: float) -> None:
    values = np.sort(sample)
    indices = np.ceil(np.log2(values) * 2.0**scale).astype(int) - 1
    first = int(indices.min())
    histogram = ExponentialHistogram.of(scale, 0, (first, np.bincount(indices - first).tolist()))
    base = 2.0 ** (2.0**-histogram.scale)
    true = np.quantile(values, q, method="inverted_cdf")
    assert true / base * (1 - 1e-9) <= histogram.quantile(q).value <= true * base * (1 + 1e-9)
    good = np.mean(values <= true)
    ratio = histogram.good_ratio(float(true))
    assert ratio.low - 1e-12 <= good <= ratio.high + 1e-12


@given(st.lists(explicit(), min_size=1, max_size=5), st.randoms())
def test_order_of_merging_does_not_matter(parts: list[ExplicitHistogram], random: Random) -> None:
    def merged(these: list[ExplicitHistogram]) -> ExplicitHistogram:
        found = ExplicitHistogram()
        for part in these:
            found = found.merge(part)
        return found

    shuffled = random.sample(parts, len(parts))
    assert merged(parts) == merged(shuffled)
