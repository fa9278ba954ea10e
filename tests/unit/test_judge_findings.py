"""Findings of their own (spec D10): nulls, ranges, new categories; and one transport for all that look at a field."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from tests.judges import FRAME, judged, one
from udfs.judging.new_category import NewCategory
from udfs.judging.null_rate import NullRate
from udfs.judging.range import Range
from udfs.judging.reference_categories import ReferenceCategories
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.with_findings import WithFindings
from udfs.references.category_feature import CategoryReference
from udfs.sketches.reference import RankReference

KS = ReferenceKs(FRAME, "f", 0.01, 0.05, 10, "asymptotic", RankReference.from_values(np.arange(100.0)))
NULLS = NullRate(FRAME, "f", 990, 10, alpha=0.01, min_effect=0.02, min_samples=10)
RANGE = Range(FRAME, "f", 0.0, 99.0, n_reference=1000, max_share=0.01, min_samples=10)


def null_rate(values: list[Any], **fields: Any) -> dict[str, Any]:
    finding = NullRate(
        FRAME,
        "f",
        **({"reference_n": 990, "reference_null": 10, "alpha": 0.01, "min_effect": 0.02, "min_samples": 10} | fields),
    )
    return judged(WithFindings(KS, (finding,)), values)[1]


def test_nulls_that_grew_are_a_finding() -> None:
    verdict = null_rate([1.0] * 900 + [None] * 50 + [math.nan] * 50)
    scipys = chi2_contingency([[990, 10], [900, 100]], correction=False)
    assert verdict["p_value"] == pytest.approx(scipys.pvalue, rel=1e-9)
    assert (verdict["feature"], verdict["kind"], verdict["drifted"]) == ("null_rate(f)", "finding", True)
    assert (verdict["statistic"], verdict["effect"]) == (0.1, pytest.approx(0.09))
    assert (verdict["n_window"], verdict["n_reference"]) == (1000, 1000)


def test_a_window_of_nulls_alone_is_found_though_its_distribution_is_unknown() -> None:
    ks, nulls = judged(WithFindings(KS, (NULLS,)), [None] * 200)
    assert (ks["status"], nulls["status"], nulls["drifted"], nulls["statistic"]) == (
        "insufficient_data",
        "ok",
        True,
        1.0,
    )


def test_nulls_that_are_as_ever_are_none() -> None:
    assert null_rate([1.0] * 990 + [None] * 10)["drifted"] is False
    assert null_rate([1.0] * 100, reference_null=0)["p_value"] == 1.0
    small = null_rate([1.0] * 97 + [None] * 3, reference_n=100_000, reference_null=10, min_effect=0.05)
    assert (small["method"], small["drifted"]) == ("exact", False)
    assert null_rate([None] * 9)["status"] == "insufficient_data"


def test_values_beyond_the_reference_are_a_finding() -> None:
    verdict = one(RANGE, [50.0] * 95 + [-7.0, 100.0, 1e9, math.nan, None])
    assert (verdict["statistic"], verdict["threshold"], verdict["drifted"]) == (3 / 98, 0.01, True)
    assert verdict["evidence"] == {
        "reference_minimum": 0.0,
        "reference_maximum": 99.0,
        "smallest": -7.0,
        "largest": 1e9,
        "n_below": 1,
        "n_above": 2,
    }
    assert (verdict["p_value"], verdict["alpha"]) == (None, None)


def test_the_ends_of_the_reference_are_within_it() -> None:
    assert one(RANGE, [0.0, 99.0] * 10)["statistic"] == 0.0
    infinite = one(RANGE, [50.0] * 9 + [math.inf])
    assert (infinite["drifted"], infinite["n_infinite"], infinite["evidence"]["largest"]) == (True, 1, None)
    unbounded = Range(FRAME, "f", -math.inf, math.inf, n_reference=9, max_share=0.0, min_samples=1)
    assert one(unbounded, [-math.inf, 5.0, math.inf])["drifted"] is False


@pytest.mark.parametrize("values", [[], [None, math.nan], [1.0] * 9])
def test_too_few_values_have_no_range(values: list[Any]) -> None:
    verdict = one(RANGE, values)
    assert (verdict["status"], verdict["statistic"], verdict["drifted"]) == ("insufficient_data", None, None)


def new_category(values: list[Any], *, max_categories: int = 1000, **fields: Any) -> NewCategory:
    reference = CategoryReference.from_values(values, max_categories=max_categories)
    return NewCategory(FRAME, "f", reference, **({"max_share": 0.01, "min_samples": 10} | fields))


def test_new_categories_are_named_with_exact_counts() -> None:
    judge = new_category(["a"] * 80 + ["b"] * 20)
    verdict = one(judge, ["a"] * 80 + [f"n{i}" for i in range(6) for _ in range(i + 1)] + [None])
    assert verdict["statistic"] == 21 / 101
    assert [(row["name"], row["count"]) for row in verdict["evidence"]["names"]] == [
        ("n5", 6),
        ("n4", 5),
        ("n3", 4),
        ("n2", 3),
        ("n1", 2),
    ]
    assert (verdict["evidence"]["n_new_categories"], verdict["evidence"]["is_estimated"]) == (6, False)
    assert (verdict["n_window_null"], verdict["drifted"], verdict["kind"]) == (1, True, "finding")


def test_what_the_reference_had_and_did_not_name_is_allowed_for() -> None:
    reference = ["a"] * 90 + [f"r{i}" for i in range(10)]
    judge = new_category(reference, max_categories=1)
    assert one(judge, reference)["drifted"] is False
    worse = one(judge, ["a"] * 80 + ["x"] * 20)
    assert (worse["drifted"], worse["threshold"], worse["evidence"]["reference_unnamed_share"]) == (
        True,
        pytest.approx(0.11),
        0.1,
    )


def test_a_hundred_thousand_new_categories_are_bounded_counted_and_estimated() -> None:
    judge = new_category(["a"] * 100)
    values = ["a"] * 100_000 + [f"{'long' * 100}{i}" for i in range(100_000)]
    assert len(judge.sketch(values)) < 70_000
    verdict = one(judge, values)
    assert verdict["statistic"] == 0.5
    assert verdict["evidence"]["is_estimated"] is True
    assert verdict["evidence"]["n_new_categories"] == pytest.approx(100_000, rel=4 / math.sqrt(256))
    assert max(len(row["name"]) for row in verdict["evidence"]["names"]) <= 217


def test_one_sketch_call_serves_all_that_look_at_a_field() -> None:
    judge = WithFindings(KS, (NULLS,), (RANGE,))
    values = [float(i) for i in range(100)] + [None] * 5 + [1e6] * 5
    ks, nulls, out = judged(judge, values)
    assert [ks["feature"], nulls["feature"], out["feature"]] == ["f", "null_rate(f)", "range(f)"]
    assert [ks] == judged(KS, values)
    assert [out] == judged(RANGE, values)
    assert len({verdict["verdict_id"] for verdict in (ks, nulls, out)}) == 3


def test_findings_of_categories() -> None:
    reference = CategoryReference.from_values(["a"] * 50 + ["b"] * 50, max_categories=1000)
    main = ReferenceCategories(FRAME, "f", reference, alpha=0.01, min_effect=0.05, min_samples=10)
    new = NewCategory(FRAME, "f", reference, max_share=0.01, min_samples=10)
    verdicts = judged(WithFindings(main, (NULLS,), (new,)), ["a"] * 40 + ["c"] * 40 + [None] * 20)
    assert [(verdict["feature"], verdict["drifted"]) for verdict in verdicts] == [
        ("f", True),
        ("null_rate(f)", True),
        ("new_category(f)", True),
    ]


def test_without_judges_beside_it_the_bytes_are_the_main_judges() -> None:
    assert WithFindings(KS, (NULLS,)).sketch([1.0, 2.0]) == KS.sketch([1.0, 2.0])


def test_judges_of_other_inputs_and_other_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="can't take"):
        WithFindings(KS, (), (new_category(["a"]),))
    with pytest.raises(ValueError, match="PTS"):
        WithFindings(KS, (), (RANGE,)).judge(["m1"], 60_000, [KS.sketch([1.0])])
