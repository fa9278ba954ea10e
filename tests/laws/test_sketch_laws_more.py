"""The laws every mergeable sketch obeys, as one suite over log, category, moments, vector sums, excess and versions.

Equal means equal to the last bit, but for the mean and the squared deviations of moments and for the excess beyond a
reference, which are sums of floats:
there, only merging in another grouping may move the last digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.sketches.category import CategoryCounts
from udfs.sketches.log import LogSketch
from udfs.sketches.moments import Moments
from udfs.sketches.rank_excess import RankExcess
from udfs.sketches.reference import RankReference
from udfs.sketches.vector_sum import VectorSum
from udfs.versions.version_sketch import VersionSketch

RANKS = RankReference.from_values([-2.0, 0.5, 0.5, 1.0, 3.0])
GOLDEN = Path(__file__).parent.parent / "golden/sketches"
number = st.integers(-4, 4).map(float) | st.floats(allow_subnormal=True)
moderate = st.integers(-4, 4).map(float) | st.floats(-1e6, 1e6) | st.sampled_from([math.nan, math.inf, -math.inf])
label = st.none() | st.text(max_size=2) | st.booleans() | st.integers(-3, 3) | st.floats()
vector = st.none() | st.lists(number, min_size=2, max_size=2) | st.lists(number, max_size=3)

score = st.none() | st.floats() | st.floats(0.0, 1.0)
logits = st.lists(st.lists(number, min_size=3, max_size=3), min_size=2, max_size=2)


@dataclass(frozen=True)
class Family:
    """A kind of sketch: how to make one, the neutral one, and all of many from their bytes."""

    values: st.SearchStrategy[Any]
    make: Callable[[list[Any]], Any]
    empty: Any
    merge_all: Callable[[list[bytes]], Any]
    counted: Callable[[Any], int]
    golden: str
    comparable: Callable[[Any], Any] = lambda sketch: sketch


def _without_float_sums(moments: Moments) -> Moments:
    return replace(moments, mean=None, mean_rest=0.0, m2=0.0)


def _of_ready_made_scores(rows: list[Any]) -> VersionSketch:
    js_bits, agreement, kl_nats = zip(*rows, strict=True) if rows else ((), (), ())
    return VersionSketch.from_scores(js_bits=js_bits, agreement=agreement, kl_nats=kl_nats)


def _of_logits(rows: list[Any]) -> VersionSketch:
    pairs = np.array(rows, dtype=np.float64).reshape(len(rows), 2, 3)
    return VersionSketch.from_logits(pairs[:, 0], pairs[:, 1])


def _counted(sketch: VersionSketch) -> int:
    """The inputs counted, which must be as many for each of the three scores."""
    (count,) = {part.n + part.n_invalid + part.n_null for part in (sketch.js_bits, sketch.agreement, sketch.kl_nats)}
    return count


FAMILIES = {
    "log": Family(
        number,
        LogSketch.from_values,
        LogSketch.empty(),
        LogSketch.merge_all,
        lambda sketch: sketch.n + sketch.n_null,
        "log_v1",
    ),
    "category": Family(
        label,
        CategoryCounts.from_values,
        CategoryCounts.empty(),
        CategoryCounts.merge_all,
        lambda sketch: sketch.n + sketch.n_null,
        "category_v1",
    ),
    "category, folded": Family(
        label,
        lambda values: CategoryCounts.from_values(values).folded(["", "a", 1, True, 0]),
        CategoryCounts.empty(),
        CategoryCounts.merge_all,
        lambda sketch: sketch.n + sketch.n_null,
        "category_v1",
    ),
    "moments": Family(
        moderate,
        Moments.from_values,
        Moments.empty(),
        Moments.merge_all,
        lambda sketch: sketch.n + sketch.n_null + sketch.n_infinite,
        "moments_v1",
        _without_float_sums,
    ),
    "rank and excess": Family(
        moderate,
        lambda values: RankExcess.from_values(values, RANKS),
        RankExcess.empty(RANKS),
        lambda data: RankExcess.merge_all(data, RANKS),
        lambda sketch: sketch.rank.n + sketch.rank.n_null,
        "rank_excess_v1",
        lambda sketch: sketch.rank,
    ),
    "vector sum": Family(
        vector,
        lambda values: VectorSum.from_vectors(values, 2),
        VectorSum.empty(2),
        lambda data: VectorSum.merge_all(data, 2),
        lambda sketch: sketch.n + sketch.n_zero + sketch.n_invalid + sketch.n_null,
        "vector_sum_v1",
    ),
    "version sketch, ready-made": Family(
        st.tuples(score, score, score),
        _of_ready_made_scores,
        VersionSketch(),
        VersionSketch.merge_all,
        _counted,
        "version_sketch_v1",
    ),
    "version sketch, of logits": Family(
        logits, _of_logits, VersionSketch(), VersionSketch.merge_all, _counted, "version_sketch_v1"
    ),
}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


def law(test: Callable[[Family, st.DataObject], None]) -> Callable[[Family], None]:
    """Run a test of a family with values that hypothesis draws."""

    def run(family: Family) -> None:
        settings(deadline=None, max_examples=60)(given(st.data())(lambda data: test(family, data)))()

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def _sketches(family: Family, data: st.DataObject, count: int) -> list[Any]:
    lists = data.draw(st.lists(st.lists(family.values, max_size=12), min_size=count, max_size=count))
    return [family.make(values) for values in lists]


def _same(family: Family, one: Any, other: Any) -> None:
    assert family.comparable(one) == family.comparable(other)
    if isinstance(one, RankExcess):
        assert one.excess == pytest.approx(other.excess, rel=1e-12)
    if isinstance(one, Moments) and one.mean is not None:
        size = max(abs(one.minimum), abs(one.maximum))
        assert one.mean == pytest.approx(other.mean, rel=1e-12, abs=1e-12 * size)
        assert one.m2 == pytest.approx(other.m2, rel=1e-9, abs=1e-12 * size * size)


@law
def test_merge_is_commutative(family: Family, data: st.DataObject) -> None:
    a, b = _sketches(family, data, 2)
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).to_bytes() == b.merge(a).to_bytes()


@law
def test_merge_is_associative(family: Family, data: st.DataObject) -> None:
    a, b, c = _sketches(family, data, 3)
    _same(family, a.merge(b).merge(c), a.merge(b.merge(c)))


@law
def test_empty_is_neutral(family: Family, data: st.DataObject) -> None:
    (a,) = _sketches(family, data, 1)
    assert a.merge(family.empty) == family.empty.merge(a) == a
    assert family.make([]) == family.empty == family.merge_all([])


@law
def test_merged_equals_pooled(family: Family, data: st.DataObject) -> None:
    slices = data.draw(st.lists(st.lists(family.values, max_size=12), max_size=5))
    pooled = family.make([value for values in slices for value in values])
    one_by_one = family.empty
    for values in slices:
        one_by_one = one_by_one.merge(family.make(values))
    at_once = family.merge_all([family.make(values).to_bytes() for values in slices])
    _same(family, one_by_one, pooled)
    _same(family, at_once, pooled)


@law
def test_the_order_of_slices_moves_no_bit(family: Family, data: st.DataObject) -> None:
    slices = data.draw(st.lists(st.lists(family.values, max_size=12), max_size=5))
    shuffled = data.draw(st.permutations(slices))
    one, other = (family.merge_all([family.make(v).to_bytes() for v in order]) for order in (slices, shuffled))
    assert one.to_bytes() == other.to_bytes()


@law
def test_bytes_round_trip(family: Family, data: st.DataObject) -> None:
    (a,) = _sketches(family, data, 1)
    read = type(a).from_bytes(a.to_bytes())
    assert read == a
    assert read.to_bytes() == a.to_bytes()
    assert read.merge(a) == a.merge(a)


@law
def test_every_value_is_counted_once(family: Family, data: st.DataObject) -> None:
    values = data.draw(st.lists(family.values, max_size=30))
    assert family.counted(family.make(values)) == len(values)


def test_bytes_of_earlier_versions_merge_with_todays(family: Family) -> None:
    earlier = bytes.fromhex((GOLDEN / f"{family.golden}.hex").read_text())
    read = type(family.empty).from_bytes(earlier)
    if isinstance(read, VectorSum):
        assert VectorSum.merge_all([earlier, earlier], 3).n == 2 * read.n
    else:
        assert family.merge_all([earlier, family.make([]).to_bytes()]) == read


@settings(deadline=None)
@given(st.lists(label, max_size=20), st.lists(label, max_size=20), st.lists(label, max_size=5))
def test_folding_and_merging_change_places(one: list[Any], other: list[Any], keep: list[Any]) -> None:
    a, b = CategoryCounts.from_values(one), CategoryCounts.from_values(other)
    assert a.merge(b).folded(keep) == a.folded(keep).merge(b.folded(keep))
    assert a.folded(keep).folded(keep) == a.folded(keep)


@settings(deadline=None)
@given(st.lists(number, min_size=1, max_size=40), st.floats(0, 1), st.sampled_from([0.001, 0.01, 0.3]))
def test_every_quantile_keeps_the_guarantee(values: list[float], q: float, accuracy: float) -> None:
    present = sorted(value for value in values if not math.isnan(value))
    estimate = LogSketch.from_values(values, accuracy).quantile(q)
    if not present:
        assert estimate is None
        return
    exact = present[math.floor(q * (len(present) - 1))]
    assert estimate == exact if math.isinf(exact) else abs(estimate - exact) <= accuracy * abs(exact)


@settings(deadline=None)
@given(st.lists(number, min_size=1, max_size=40), number.filter(lambda x: not math.isnan(x)))
def test_shares_and_quantiles_agree(values: list[float], x: float) -> None:
    sketch = LogSketch.from_values(values)
    if sketch.n == 0:
        return
    assert 0.0 <= sketch.cdf(x) <= sketch.cdf(math.inf) == 1.0
    for q in (0.0, 0.25, 0.5, 1.0):
        assert sketch.cdf(sketch.quantile(q)) * sketch.n >= math.floor(q * (sketch.n - 1)) + 1 - 1e-9
