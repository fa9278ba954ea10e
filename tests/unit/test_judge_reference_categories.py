"""Categories of a window against stored counts: scipy's figures, rare and new categories, and what evidence says."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, fisher_exact

from tests.judges import FRAME, one
from udfs.judging.reference_categories import ReferenceCategories
from udfs.references.category_feature import CategoryReference


def judge_of(values: list[Any], *, max_categories: int = 1000, **fields: Any) -> ReferenceCategories:
    reference = CategoryReference.from_values(values, max_categories=max_categories)
    return ReferenceCategories(
        FRAME, "reason", reference, **({"alpha": 0.01, "min_effect": 0.0, "min_samples": 1} | fields)
    )


@pytest.mark.parametrize(("test", "lambda_"), [("chi_square_homogeneity", None), ("g_test", "log-likelihood")])
def test_frequent_categories_have_scipys_figures(test: str, lambda_: str | None) -> None:
    judge = judge_of(["a"] * 500 + ["b"] * 300 + ["c"] * 200, test=test)
    verdict = one(judge, ["a"] * 90 + ["b"] * 60 + ["c"] * 50 + [None] * 7)
    scipys = chi2_contingency([[500, 300, 200], [90, 60, 50]], correction=False, lambda_=lambda_)
    assert verdict["statistic"] == pytest.approx(scipys.statistic, rel=1e-12)
    assert verdict["p_value"] == pytest.approx(scipys.pvalue, rel=1e-12)
    assert verdict["effect"] == pytest.approx(0.05)
    assert (verdict["test"], verdict["method"], verdict["feature"], verdict["kind"]) == (
        test,
        "asymptotic",
        "reason",
        "drift",
    )
    assert (verdict["n_reference"], verdict["n_window"], verdict["n_window_null"]) == (1000, 200, 7)


def test_rare_categories_are_pooled_before_they_are_tested() -> None:
    rare = [f"r{i}" for i in range(20)]
    judge = judge_of(["a"] * 500 + ["b"] * 480 + rare)
    verdict = one(judge, ["a"] * 500 + ["b"] * 480 + rare[:10] * 2)
    scipys = chi2_contingency([[500, 480, 20], [500, 480, 20]], correction=False)
    assert verdict["evidence"]["n_pooled_categories"] == 20
    assert verdict["p_value"] == pytest.approx(scipys.pvalue)


def test_a_new_category_in_a_small_window_of_a_huge_reference_is_seen() -> None:
    """Chi-square would expect 0.01 of it, and pooling it with a frequent category would hide it."""
    judge = judge_of(["a"] * 200_000, min_effect=0.05)
    verdict = one(judge, ["a"] * 90 + ["b"] * 10)
    assert (verdict["drifted"], verdict["method"]) == (True, "exact")
    assert verdict["p_value"] == pytest.approx(fisher_exact([[200_000, 0], [90, 10]]).pvalue, rel=1e-6)
    assert verdict["evidence"]["moved"][0] == {
        "category": "other",
        "is_bucket": True,
        "reference_share": 0.0,
        "window_share": 0.1,
    }
    whole = one(judge, ["b"] * 100)
    assert (whole["drifted"], whole["statistic"]) == (True, pytest.approx(200_100))


def test_frequent_categories_and_a_weak_bucket_share_one_p() -> None:
    judge = judge_of(["a"] * 600 + ["b"] * 400)
    verdict = one(judge, ["a"] * 60 + ["b"] * 38 + ["c"] * 2)
    rest = chi2_contingency([[600, 400], [60, 38]], correction=False).pvalue
    bucket = fisher_exact([[1000, 0], [98, 2]]).pvalue
    assert verdict["method"] == "asymptotic_and_exact"
    assert verdict["p_value"] == pytest.approx(2 * min(rest, bucket))


def test_identifiers_have_no_distribution_to_compare() -> None:
    """Each occurs once: that all are new is told by `NewCategory`."""
    judge = judge_of([f"id{i}" for i in range(1000)])
    for values in ([f"new{i}" for i in range(1000)], [f"id{i}" for i in range(1000)]):
        verdict = one(judge, values)
        assert (verdict["status"], verdict["drifted"], verdict["p_value"]) == ("insufficient_data", None, None)


def test_one_category_everywhere_is_no_drift() -> None:
    verdict = one(judge_of(["a"] * 50), ["a"] * 30)
    assert (verdict["statistic"], verdict["p_value"], verdict["drifted"]) == (0.0, 1.0, False)


def test_too_few_and_none() -> None:
    judge = judge_of(["a"] * 50 + ["b"] * 50, min_samples=30)
    for values in (["a"] * 29, [None] * 40, []):
        verdict = one(judge, values)
        assert (verdict["status"], verdict["drifted"], verdict["evidence"]) == ("insufficient_data", None, {})
    assert one(judge, [None] * 40)["n_window_null"] == 40


def test_a_slice_of_a_hundred_thousand_new_categories_is_bounded_and_seen() -> None:
    judge = judge_of(["a"] * 500 + ["b"] * 500)
    values = [f"n{i}" for i in range(100_000)]
    assert len(judge.sketch(values)) < 100
    verdict = one(judge, values)
    assert (verdict["drifted"], verdict["n_window"]) == (True, 100_000)


def test_what_moved_is_named_by_share_and_at_most_five() -> None:
    judge = judge_of([f"c{i}" for i in range(10)] * 100)
    moved = one(judge, [f"c{i}" for i in range(10) for _ in range(10 * (i + 1))])["evidence"]["moved"]
    assert [row["category"] for row in moved] == ["c0", "c9", "c1", "c8", "c2"]
    assert moved[0]["window_share"] == pytest.approx(10 / 550)


def test_min_effect_is_in_share_points() -> None:
    judge = judge_of(["a"] * 50_000 + ["b"] * 50_000, min_effect=0.05)
    significant = one(judge, ["a"] * 52_000 + ["b"] * 48_000)
    assert significant["p_value"] < 1e-10
    assert (significant["drifted"], significant["effect"]) == (False, pytest.approx(0.02))


def test_the_pooled_test_keeps_its_level() -> None:
    """Zipf categories, most of them rare: of quiet windows about alpha alarm, not several times as many."""
    rng = np.random.default_rng(5)
    shares = 1.0 / np.arange(1, 201)
    shares /= shares.sum()
    names = np.array([f"c{i}" for i in range(200)], dtype=object)
    p_values = []
    for _ in range(150):
        judge = judge_of(list(rng.choice(names, 4000, p=shares)), max_categories=100)
        p_values.append(one(judge, list(rng.choice(names, 400, p=shares)), n_slices=1)["p_value"])
    assert np.mean(np.array(p_values) < 0.05) < 0.12
    assert np.mean(np.array(p_values) < 0.5) == pytest.approx(0.5, abs=0.15)
