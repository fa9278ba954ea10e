"""The laws of a mergeable sketch, for any values, ties, infinities and nulls."""

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.sketches.rank import RankSketch
from udfs.sketches.rank_windows import FEWEST_TOGETHER, merge_windows
from udfs.sketches.reference import RankReference

VALUE = st.one_of(
    st.integers(-4, 4).map(float),
    st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
)
VALUES = st.lists(VALUE, max_size=60)
REFERENCE = st.lists(VALUE, max_size=40).map(RankReference.from_values)


def sketch(values: list[float], reference: RankReference) -> RankSketch:
    return RankSketch.from_values(np.array(values, dtype=np.float64), reference)


@given(VALUES, VALUES, REFERENCE)
def test_merge_is_commutative(a: list[float], b: list[float], reference: RankReference) -> None:
    assert sketch(a, reference).merge(sketch(b, reference)) == sketch(b, reference).merge(sketch(a, reference))


@given(VALUES, VALUES, VALUES, REFERENCE)
def test_merge_is_associative(a: list[float], b: list[float], c: list[float], reference: RankReference) -> None:
    one, two, three = (sketch(values, reference) for values in (a, b, c))
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


@given(VALUES, REFERENCE)
def test_empty_is_neutral(a: list[float], reference: RankReference) -> None:
    assert sketch(a, reference).merge(sketch([], reference)) == sketch(a, reference)
    assert sketch([], reference) == RankSketch.merge_all([], reference)


@given(st.lists(VALUES, max_size=6), REFERENCE)
def test_merged_equals_pooled(slices: list[list[float]], reference: RankReference) -> None:
    pooled = sketch([value for values in slices for value in values], reference)
    merged = sketch([], reference)
    for values in slices:
        merged = merged.merge(sketch(values, reference))
    at_once = RankSketch.merge_all([sketch(values, reference).to_bytes() for values in slices], reference)
    assert merged == pooled == at_once
    assert merged.result() == pooled.result() == at_once.result()
    assert merged.to_bytes() == pooled.to_bytes() == at_once.to_bytes()


@given(VALUES, VALUES, REFERENCE)
def test_without_undoes_merge(a: list[float], b: list[float], reference: RankReference) -> None:
    both = sketch(a, reference).merge(sketch(b, reference))
    assert both.without(sketch(b, reference)) == sketch(a, reference)
    assert both.without(sketch(b, reference)).n == sketch(a, reference).n


@given(VALUES, REFERENCE)
def test_bytes_round_trip(a: list[float], reference: RankReference) -> None:
    taken = sketch(a, reference)
    for read in (RankSketch.from_bytes(taken.to_bytes()), RankSketch.from_bytes(taken.to_bytes(), reference)):
        assert read == taken
        assert (read.n, read.n_null, read.n_infinite) == (taken.n, taken.n_null, taken.n_infinite)
        assert read.result() == taken.result()
        assert read.merge(taken).to_bytes() == taken.merge(read).to_bytes()


@given(VALUES, REFERENCE)
def test_every_value_is_counted_once(a: list[float], reference: RankReference) -> None:
    taken = sketch(a, reference)
    assert taken.counts.shape == (reference.n_bins,)
    assert taken.counts.sum() == taken.n == len(taken.bins)
    assert taken.n + taken.n_null == len(a)
    assert taken.n_infinite == sum(np.isinf(a))


@settings(max_examples=300)
@given(VALUES, REFERENCE)
def test_a_bin_is_a_point_or_a_gap_between_two(a: list[float], reference: RankReference) -> None:
    assert reference.points is not None
    points = reference.points.tolist()
    for value in [value for value in a if not np.isnan(value)]:
        (bin_number,) = np.flatnonzero(sketch([value], reference).counts)
        below, on = divmod(int(bin_number), 2)
        assert sum(point < value for point in points) == below
        assert (value in points) == bool(on)


@settings(max_examples=150)
@given(st.lists(st.floats(min_value=5e-324, allow_nan=False, allow_infinity=True), min_size=1, max_size=20), REFERENCE)
def test_positive_values_have_the_bins_they_have_beside_a_negative_one(
    values: list[float], reference: RankReference
) -> None:
    beside_negative = np.sort(np.array([-1.0, *values]))
    assert reference.bins_of(beside_negative[1:]).tolist() == reference.bins_of(beside_negative)[1:].tolist()


@given(VALUES, REFERENCE)
def test_a_pickled_reference_is_the_same(a: list[float], reference: RankReference) -> None:
    copy = pickle.loads(pickle.dumps(reference))
    assert copy == reference
    assert hash(copy) == hash(reference)
    assert sketch(a, copy).to_bytes() == sketch(a, reference).to_bytes()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(VALUES, max_size=4), min_size=FEWEST_TOGETHER, max_size=8), REFERENCE)
def test_windows_merged_together_are_those_merged_one_by_one(
    windows: list[list[list[float]]], reference: RankReference
) -> None:
    assert_merged_alike(windows, reference)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3), st.sampled_from([1, 4, 30, 400]))
def test_untied_windows_merged_together_are_those_merged_one_by_one(seed: int, decimals: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    reference = RankReference.from_values(rng.random(m).round(decimals) if decimals else rng.random(m))
    slices = [rng.random(int(rng.integers(0, 40))) for _ in range(9)]
    assert_merged_alike([[part.tolist() for part in slices[at : at + 3]] for at in range(9)], reference)


def test_a_gap_as_large_on_both_sides_is_told_at_its_first_bin() -> None:
    reference = RankReference.from_values([1.0, 2.0, 3.0, 4.0])
    below_first, above_first = [2.5, 4.5, 4.5, 0.5, 0.5, 0.5], [0.5, 0.5, 4.5, 4.5]
    assert_merged_alike([[below_first], [above_first], [above_first, above_first], [[2.5, 2.6]]], reference)


def assert_merged_alike(windows: list[list[list[float]]], reference: RankReference) -> None:
    taken = [[sketch(values, reference).to_bytes() for values in slices] for slices in windows]
    together = merge_windows(taken, reference)
    one_by_one = [RankSketch.merge_all(slices, reference) for slices in taken]
    for merged, expected in zip(together, one_by_one, strict=True):
        assert merged.gap == expected.gap
        assert merged == expected
        assert merged.to_bytes() == expected.to_bytes()
        assert merged.result() == expected.result()
