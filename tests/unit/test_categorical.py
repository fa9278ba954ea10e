"""Chi-square and G against scipy, by hand where p underflows, and on the inputs that break other libraries."""

import json
import math
from collections import Counter
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from schemas.status import Status
from udfs.statistics.categorical import chi_square_homogeneity, g_test
from udfs.statistics.categories import OTHER, category_of
from udfs.statistics.chi_square import chi_square_p_value

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/statistics.json").read_text())}
counts = st.lists(st.integers(0, 10_000), min_size=2, max_size=12)


@pytest.mark.parametrize("test", [chi_square_homogeneity, g_test])
def test_case_cat_const(test) -> None:
    case = CASES["cat-const"]
    result = test(case["input"]["ref"], case["input"]["cur"])
    found = {"statistic": result.statistic, "p": result.p_value, "dof": result.degrees_of_freedom}
    assert found == case["expected"]
    assert (result.log10_p_value, result.effect, result.n_reference, result.n_window) == (0.0, 0.0, 50, 10)


def test_case_cat_new() -> None:
    case = CASES["cat-new"]
    result = chi_square_homogeneity(case["input"]["ref"], case["input"]["cur"])
    assert result.statistic == pytest.approx(case["expected"]["chi2"], rel=1e-14)
    assert result.p_value == pytest.approx(case["expected"]["p"], rel=1e-14)
    assert result.degrees_of_freedom == case["expected"]["dof"]


@pytest.mark.parametrize("test", [chi_square_homogeneity, g_test])
def test_case_cat_mixed_types(test) -> None:
    case = CASES["cat-mixed-types"]
    result = test(Counter(case["input"]["ref"]), Counter(case["input"]["cur"]))
    expected = case["expected"]
    assert (result.statistic, result.degrees_of_freedom, result.p_value) == (
        expected["chi2"],
        expected["dof"],
        expected["p"],
    )


@settings(deadline=None)
@given(counts, counts)
def test_equal_to_scipy(reference: list[int], window: list[int]) -> None:
    size = min(len(reference), len(window))
    table = np.array([reference[:size], window[:size]])
    occurs = table.sum(axis=0) > 0
    if not table.any(axis=1).all():
        for test in (chi_square_homogeneity, g_test):
            assert test(*table).status is Status.INSUFFICIENT_DATA
        return
    for test, scipys in ((chi_square_homogeneity, "pearson"), (g_test, "log-likelihood")):
        theirs = chi2_contingency(table[:, occurs], correction=False, lambda_=scipys)
        ours = test(*table)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-7, abs=1e-300)
        assert ours.degrees_of_freedom == theirs.dof
        assert 0.0 <= ours.effect <= 1.0


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=3), st.integers(0, 1000), min_size=1, max_size=8), st.randoms())
def test_order_and_empty_categories_change_nothing(mapping: dict[str, int], random) -> None:
    window = {key: count + 1 for key, count in mapping.items()} | {"not seen": 0}
    items = list(mapping.items())
    random.shuffle(items)
    for test in (chi_square_homogeneity, g_test):
        assert test(mapping, window) == test(dict(items), window)
        assert test(mapping, {**window, "also not seen": 0}) == test(mapping, window)


@settings(deadline=None)
@given(counts)
def test_equal_shares_are_no_difference(reference: list[int]) -> None:
    if not any(reference):
        return
    for test in (chi_square_homogeneity, g_test):
        result = test(reference, [7 * count for count in reference])
        assert (result.statistic, result.p_value, result.effect) == (0.0, 1.0, 0.0)


def test_nothing_in_common_is_the_largest_effect() -> None:
    for sizes in ((50, 50), (1, 1_000_000)):
        assert chi_square_homogeneity({"a": sizes[0]}, {"b": sizes[1]}).effect == pytest.approx(1.0, rel=1e-12)


def test_one_name_of_different_kinds_is_different_categories() -> None:
    result = chi_square_homogeneity({"1": 5, 1: 5}, {True: 5, "1": 5})
    assert (result.degrees_of_freedom, result.statistic) == (2, 10.0)


def test_a_column_turned_to_floats_is_no_drift() -> None:
    assert chi_square_homogeneity({1: 5, 2: 5}, {1.0: 5, Decimal(2): 5}).statistic == 0.0


def test_nulls_are_dropped_and_counted() -> None:
    result = chi_square_homogeneity({"a": 3, "b": 3, None: 4}, {"a": 6, "b": 6, math.nan: 2, pd.NA: 1, pd.NaT: 1})
    assert (result.statistic, result.degrees_of_freedom) == (0.0, 1)
    assert (result.n_reference, result.n_window, result.n_reference_null, result.n_window_null) == (6, 12, 4, 4)
    assert result.window_null_rate == 0.25


def test_series_are_matched_by_index() -> None:
    reference, window = pd.Series(list("aab")).value_counts(), pd.Series(list("bba" * 5)).value_counts()
    assert list(reference.index) != list(window.index)
    assert chi_square_homogeneity(reference, window) == chi_square_homogeneity({"a": 2, "b": 1}, {"a": 5, "b": 10})


@pytest.mark.parametrize("window", [{}, {"a": 0}, {None: 5}])
def test_a_side_without_counts_is_unknown(window: dict[str | None, int]) -> None:
    for result in (chi_square_homogeneity({"a": 5}, window), g_test(window, {"a": 5})):
        assert result.status is Status.INSUFFICIENT_DATA
        assert result.p_value is None


@pytest.mark.parametrize(
    ("reference", "window", "problem"),
    [
        ({"a": 0.5, "b": 0.5}, {"a": 5, "b": 5}, "reference_counts must be whole"),
        ({"a": 5}, {"a": -1}, "window_counts must be finite"),
        ({"a": 5}, {"a": math.inf}, "window_counts must be finite"),
        ([5, None], [5, 5], "reference_counts must be finite"),
        (["a", "b"], [5, 5], "reference_counts must be one row of numbers"),
        ([[5], [5]], [5, 5], "reference_counts must be one row of numbers"),
        ([5, 5], [5, 5, 5], "window_counts must have as many bins as reference_counts"),
        ({"a": 5}, [5], "both"),
    ],
)
def test_what_is_no_count_is_refused(reference, window, problem: str) -> None:
    for test in (chi_square_homogeneity, g_test):
        with pytest.raises(ValueError, match=problem):
            test(reference, window)


def test_log10_p_survives_underflow() -> None:
    result = chi_square_homogeneity({"a": 10**6, "b": 10}, {"a": 10, "b": 10**6})
    assert result.p_value == 0.0
    assert result.log10_p_value == pytest.approx(-434_283.5, abs=5.0)


@pytest.mark.parametrize(
    ("statistic", "dof"), [(1500, 2), (3000, 4), (5000, 200), (60_000, 20_000), (250_000, 100_000)]
)
def test_log10_p_against_the_closed_sum(statistic: int, dof: int) -> None:
    # For an even dof the tail is a Poisson probability: exp(-x) times the sum over k < dof / 2 of x**k / k!.
    with localcontext(prec=40):
        x, term, total = Decimal(statistic) / 2, Decimal(1), Decimal(0)
        for k in range(dof // 2):
            total += term
            term *= x / (k + 1)
        expected = float((total.ln() - x) / Decimal(10).ln())
    p, log10_p = chi_square_p_value(float(statistic), dof)
    assert p < 1e-280
    assert log10_p == pytest.approx(expected, rel=1e-12)


def test_one_hundred_thousand_categories() -> None:
    reference = {f"c{i}": 1 + i % 3 for i in range(100_000)}
    result = chi_square_homogeneity(reference, {f"c{i}": 1 + i % 3 for i in range(50_000, 150_000)})
    assert result.degrees_of_freedom == 149_999
    assert result.effect == pytest.approx(math.sqrt(0.5), abs=1e-4)


def test_a_category_is_its_kind_and_value() -> None:
    assert category_of("1") != category_of(1) != category_of(True) != category_of("True")
    assert category_of(np.str_("a")) == category_of("a")
    assert category_of(np.int8(3)) == category_of(3.0) == category_of(Decimal(3))
    assert category_of(-0.0) == category_of(0)
    assert category_of(math.inf) != category_of(-math.inf)
    assert category_of("other") != OTHER
    assert all(category_of(null) is None for null in (None, math.nan, np.float32("nan"), pd.NA, np.datetime64("NaT")))
    with pytest.raises(ValueError, match="hashable"):
        category_of(["a"])
