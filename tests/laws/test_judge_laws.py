"""The laws every judge of windows obeys, as one suite over all of them.

The same values give the same verdict bytes, in whatever order they came and however they were cut into slices. No slice
raises, whatever is in it. A NaN moves no figure but the counts of nulls. No output holds NaN or infinity.
"""

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.judges import END_MS, FRAME
from udfs.judging.binned import BinnedCategories, BinnedNumbers
from udfs.judging.embedding import EmbeddingJudge, EmbeddingPolicy
from udfs.judging.fixed_limit import Figure, FixedLimit, Limit
from udfs.judging.new_category import NewCategory
from udfs.judging.null_rate import NullRate
from udfs.judging.range import Range
from udfs.judging.reference_categories import ReferenceCategories
from udfs.judging.reference_distance import ReferenceDistance
from udfs.judging.reference_divergence import DivergencePolicy, ReferenceDivergence, Test
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.stream_pair import PairPolicy
from udfs.judging.transform_mismatch import MismatchPolicy, TransformMismatch
from udfs.judging.two_streams import TwoStreams
from udfs.judging.unmonitored import Unmonitored
from udfs.judging.version_semantics import VersionSemantics
from udfs.judging.window_batch import Window, judge_windows
from udfs.judging.window_judge import InputKind, WindowJudge
from udfs.judging.with_findings import WithFindings
from udfs.references.category_feature import CategoryReference
from udfs.references.embedding_reference import build_embedding_reference
from udfs.sketches.reference import RankReference
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit

POINTS = RankReference.from_values([-1.0, 0.0, 0.0, 1.0, 2.5, 40.0])
MANY_POINTS = np.array([-3.0, -1.0, 0.0, 0.0, 1.0] * 3 + [2.0, 2.5, 4.0, 9.0, 40.0, 41.0, 1e9])
MANY_POINTS.sort()
COUNTS = CategoryReference.from_values(["a"] * 30 + ["b"] * 9 + ["c", True, 2], max_categories=4)

number = st.integers(-4, 4).map(float) | st.floats(allow_nan=False)
moderate = st.integers(-4, 4).map(float) | st.floats(-1e6, 1e6)
text = st.sampled_from(["a", "b", "c", "d"]) | st.text(max_size=3)
odd = st.none() | st.just(math.nan)
coordinate = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, math.inf, math.nan])
vector = st.lists(coordinate, min_size=2, max_size=2).map(np.array) | st.none() | st.just(np.ones(3))
mixed = {
    InputKind.VECTOR: vector | st.just(np.empty(0)) | st.just(np.zeros(2)),
    InputKind.NUMBER: number | odd | st.booleans() | st.integers(-5, 5) | st.decimals(-9, 9, places=2),
    InputKind.TEXT: text | st.none() | st.booleans() | st.integers(-3, 3) | st.floats(),
}
USUAL = {InputKind.NUMBER: number | odd, InputKind.TEXT: text | st.none()}


def reference_ks() -> ReferenceKs:
    return ReferenceKs(FRAME, "f", 0.01, 0.0, 2, "asymptotic", POINTS)


def reference_categories(**fields: Any) -> ReferenceCategories:
    return ReferenceCategories(FRAME, "f", COUNTS, alpha=0.01, min_effect=0.0, min_samples=2, **fields)


def fixed(figure: Figure) -> FixedLimit:
    return FixedLimit(FRAME, "f", figure, Limit.changed_by(2.0, -0.15), min_samples=2)


def two_streams(baseline: str | None, max_labels: int = 9) -> TwoStreams:
    policy = PairPolicy(alpha=0.5, min_effect=0.0, min_samples=1)
    return TwoStreams(FRAME, "f", "arm", policy, baseline=baseline, max_labels=max_labels)


RANGE = Range(FRAME, "f", -1.0, 40.0, n_reference=6, max_share=0.1, min_samples=2)
NULLS = NullRate(FRAME, "f", 90, 10, alpha=0.01, min_effect=0.0, min_samples=2)
NEW = NewCategory(FRAME, "f", COUNTS, max_share=0.1, min_samples=2, names_kept=3)


def diverged(test: Test) -> ReferenceDivergence[Any]:
    return ReferenceDivergence(FRAME, "f", BinnedNumbers(POINTS), DivergencePolicy(test, 0.1, 2))


VERSIONS = VersionSemantics(
    FRAME,
    "agreement",
    "kl",
    "js",
    ConsistencyLimit(0.85, 2),
    ConfidenceShiftLimit(0.32, min_samples=2),
    DivergenceLimit(0.1, 2),
)
EMBEDDED = EmbeddingJudge(
    FRAME,
    "f",
    build_embedding_reference([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2, name="law", source="a test"),
    EmbeddingPolicy(min_samples=2),
)


@dataclass(frozen=True)
class Member:
    """A judge; what its columns hold where not the usual; and verdicts that are about nulls, which NaN does move."""

    judge: WindowJudge
    values: dict[InputKind, st.SearchStrategy[Any]] | None = None
    sums_floats: bool = False  # another grouping may move the last digits (docs/sketches.md); another order may not
    speaks_of_nulls: bool = False

    @property
    def kinds(self) -> list[InputKind]:
        return [one.kind for one in self.judge.inputs]

    def rows(self) -> st.SearchStrategy[list[tuple[Any, ...]]]:
        values = self.values or USUAL
        return st.lists(st.tuples(*(values[kind] for kind in self.kinds)), max_size=40)


MEMBERS: dict[str, Member] = {
    "reference_ks": Member(reference_ks()),
    "reference_categories": Member(reference_categories()),
    "g_test": Member(reference_categories(test="g_test")),
    "range": Member(RANGE),
    "fixed_rate": Member(fixed("rate")),
    "fixed_mean": Member(fixed("mean"), {InputKind.NUMBER: moderate | odd}, sums_floats=True),
    "fixed_quantile": Member(fixed("quantile")),
    "two_streams": Member(two_streams("a")),
    "two_streams_of_many_labels": Member(two_streams(None, max_labels=2)),
    "unmonitored": Member(Unmonitored(FRAME, "names", frozenset({"a"}), 0.2, 2, max_names=2, names_kept=3)),
    "new_category": Member(NEW),
    "transform_mismatch": Member(TransformMismatch(FRAME, "f", MANY_POINTS, MismatchPolicy(min_samples=2))),
    "psi": Member(diverged("psi")),
    "kl_divergence": Member(diverged("kl_divergence")),
    "js_divergence_of_categories": Member(
        ReferenceDivergence(FRAME, "f", BinnedCategories(COUNTS.counts), DivergencePolicy("js_divergence", 0.1, 2))
    ),
    "cramer_von_mises": Member(ReferenceDistance(FRAME, "f", "cramer_von_mises", POINTS, 0.1, 2)),
    "wasserstein_1": Member(
        ReferenceDistance(FRAME, "f", "wasserstein_1", POINTS, 0.1, 2),
        {InputKind.NUMBER: moderate | odd},
        sums_floats=True,
    ),
    "version_semantics": Member(VERSIONS, sums_floats=True),
    "embedding": Member(EMBEDDED, {InputKind.VECTOR: vector}, sums_floats=True),
    "numeric_with_findings": Member(WithFindings(reference_ks(), (NULLS,), (RANGE,)), speaks_of_nulls=True),
    "category_with_findings": Member(WithFindings(reference_categories(), (NULLS,), (NEW,)), speaks_of_nulls=True),
}
member = pytest.mark.parametrize("name", MEMBERS)


def verdicts(judge: WindowJudge, slices: list[list[tuple[Any, ...]]]) -> list[bytes]:
    """The verdicts as bytes; rows are turned into one column an input, as the job hands them over."""
    sketches = [judge.sketch(*columns(judge, rows)) for rows in slices]
    return [verdict.to_json() for verdict in judge.judge(["m1"], END_MS, sketches)]


def columns(judge: WindowJudge, rows: list[tuple[Any, ...]]) -> list[np.ndarray[Any, Any]]:
    arrays = []
    for place in range(len(judge.inputs)):
        column = np.empty(len(rows), dtype=object)
        column[:] = [row[place] for row in rows]
        arrays.append(column)
    return arrays


@member
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_order_and_slicing_change_nothing(name: str, data: st.DataObject) -> None:
    judge = MEMBERS[name].judge
    rows = data.draw(MEMBERS[name].rows())
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    slices = [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    slices = data.draw(st.permutations(slices))
    again, whole = verdicts(judge, slices), verdicts(judge, [rows])
    if MEMBERS[name].sums_floats:
        assert verdicts(judge, slices[::-1]) == again
        again, whole = ([approximate(orjson.loads(body)) for body in bodies] for bodies in (again, whole))
    assert again == whole


def approximate(value: Any) -> Any:
    """The figures to nine digits, of which a large sum may have lost some: 1e-6 counts as 0."""
    if isinstance(value, dict):
        return {key: approximate(each) for key, each in value.items()}
    return pytest.approx(value, rel=1e-9, abs=1e-6) if isinstance(value, float) else value


@member
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_is_in_a_slice_there_is_a_verdict_without_nan(name: str, data: st.DataObject) -> None:
    judge = MEMBERS[name].judge
    rows = data.draw(st.lists(st.tuples(*(mixed[kind] for kind in MEMBERS[name].kinds)), max_size=30))
    for body in map(orjson.loads, verdicts(judge, [rows])):
        assert (body["status"] == "ok") == (body["statistic"] is not None) == (body["drifted"] is not None)
    for verdict in judge.judge(["m1"], END_MS, [judge.sketch(*columns(judge, rows))]):
        check_finite([verdict.statistic, verdict.p_value, verdict.log10_p_value, verdict.effect, verdict.evidence])


def check_finite(value: Any) -> None:
    """orjson would write NaN as null, silently; so the figures themselves are looked at."""
    if isinstance(value, dict):
        check_finite(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            check_finite(each)
    elif isinstance(value, float):
        assert math.isfinite(value)


EDGES: dict[str, dict[InputKind, list[Any]]] = {
    "empty": {InputKind.NUMBER: [], InputKind.TEXT: []},
    "one_row": {InputKind.NUMBER: [1.0], InputKind.TEXT: ["a"]},
    "all_null": {InputKind.NUMBER: [None, math.nan] * 5, InputKind.TEXT: [None] * 10},
    "all_equal": {InputKind.NUMBER: [7.0] * 10, InputKind.TEXT: ["z"] * 10},
    "infinite": {
        InputKind.NUMBER: [math.inf, -math.inf] * 5,
        InputKind.TEXT: ["inf"] * 10,
        InputKind.VECTOR: [np.full(2, math.inf)] * 10,
    },
    "opposite": {
        InputKind.NUMBER: [1.7e308, -1.7e308] * 20,
        InputKind.TEXT: ["a", "z"] * 20,
        InputKind.VECTOR: [np.ones(2), -np.ones(2)] * 20,
    },
    "huge": {
        InputKind.NUMBER: [1.7e308, -1.7e308, 5e-324, -5e-324] * 3,
        InputKind.TEXT: ["x" * 9_999, "\ud800"] * 6,
        InputKind.VECTOR: [np.full(2, 1.7e308), np.full(2, 5e-324)] * 6,
    },
}
VECTORS: dict[str, list[Any]] = {
    "empty": [],
    "one_row": [np.ones(2)],
    "all_null": [None] * 10,
    "all_equal": [np.ones(2)] * 10,
    "infinite": [np.full(2, math.inf)] * 10,
    "opposite": [np.ones(2), -np.ones(2)] * 20,
    "huge": [np.full(2, 1.7e308), np.full(2, 5e-324)] * 6,
}


@member
@pytest.mark.parametrize("edge", EDGES)
def test_the_edges_have_verdicts(name: str, edge: str) -> None:
    judge = MEMBERS[name].judge
    of_kind = EDGES[edge] | {InputKind.VECTOR: VECTORS[edge]}
    rows = list(zip(*(of_kind[kind] for kind in MEMBERS[name].kinds), strict=True))
    for slices in ([rows], [[], rows, []]):
        for verdict in judge.judge(["m1"], END_MS, [judge.sketch(*columns(judge, part)) for part in slices]):
            check_finite([verdict.statistic, verdict.p_value, verdict.log10_p_value, verdict.effect, verdict.evidence])
            assert verdict.to_json()
            assert len(verdict.to_json()) < 20_000


@member
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_windows_judged_together_are_those_judged_one_by_one(name: str, data: st.DataObject) -> None:
    judge = MEMBERS[name].judge
    several = st.lists(st.lists(MEMBERS[name].rows(), max_size=3), min_size=1, max_size=6)
    windows = [
        Window(["m1"], END_MS + number, [judge.sketch(*columns(judge, rows)) for rows in slices])
        for number, slices in enumerate(data.draw(several))
    ]
    together = [[verdict.to_json() for verdict in said] for said in judge_windows(judge, windows)]
    assert together == [[verdict.to_json() for verdict in judge.judge(*window)] for window in windows]


NO_NULL_COUNTS = {"n_window_null": None, "n_reference_null": None}
NUMBERS_FIRST = [name for name, each in MEMBERS.items() if each.kinds[0] is InputKind.NUMBER]


@pytest.mark.parametrize("name", NUMBERS_FIRST)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_nan_moves_nothing_but_the_counts_of_nulls(name: str, data: st.DataObject) -> None:
    each = MEMBERS[name]
    rows = data.draw(each.rows())
    place = data.draw(st.integers(0, len(rows)))
    rest = data.draw(st.sampled_from([row[1:] for row in rows])) if rows else ("a",) * (len(each.kinds) - 1)
    kinds_of_rest = zip(rest, each.kinds[1:], strict=True)
    rest = tuple(math.nan if kind is InputKind.NUMBER else value for value, kind in kinds_of_rest)
    with_nan = [*rows[:place], (math.nan, *rest), *rows[place:]]
    before, after = (list(map(orjson.loads, verdicts(each.judge, [part]))) for part in (rows, with_nan))
    assert len(before) == len(after)
    for without, with_one in zip(before, after, strict=True):
        if without["feature"].startswith("null_rate"):
            continue
        if without["status"] == "no_data":  # with a null there is a row, of which nothing can be said
            without |= {"status": with_one["status"]}
            assert with_one["statistic"] is None
        assert without | NO_NULL_COUNTS == with_one | NO_NULL_COUNTS
        more = sum(with_one[count] - without[count] for count in NO_NULL_COUNTS)
        assert more == 1 if len(each.kinds) == 1 else more in (0, 1)  # with a label, only the stream it belongs to


@member
def test_a_judge_travels_and_its_numbers_may_come_as_floats(name: str) -> None:
    each = MEMBERS[name]
    copy = pickle.loads(pickle.dumps(each.judge))
    rows = [tuple(1.5 * i if kind is InputKind.NUMBER else "ab"[i % 2] for kind in each.kinds) for i in range(20)]
    assert verdicts(copy, [rows]) == verdicts(each.judge, [rows])
    as_floats = [
        np.array([row[place] for row in rows], dtype=float if kind is InputKind.NUMBER else object)
        for place, kind in enumerate(each.kinds)
    ]
    assert copy.sketch(*as_floats) == each.judge.sketch(*columns(each.judge, rows))
