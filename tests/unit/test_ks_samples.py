"""What a sample may be, what is counted apart in it, and what is refused."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.status import Status
from udfs.statistics.judgement import is_drifted, published_score
from udfs.statistics.ks import METHODS, ks_two_sample
from udfs.statistics.result import TestResult
from udfs.statistics.samples import sample

NAN, INF = float("nan"), float("inf")


def masked(values: list[float], mask: list[bool]) -> Any:
    return np.ma.array(values, mask=mask)  # type: ignore[no-untyped-call]  # numpy 2.1 has no types for it


@pytest.mark.parametrize(
    ("values", "expected", "n_null"),
    [
        ([], [], 0),
        ([None, None], [], 2),
        ([3, None, 1.5, NAN], [1.5, 3.0], 2),
        ([True, False], [0.0, 1.0], 0),
        ([Decimal("1.5"), Fraction(1, 4)], [0.25, 1.5], 0),
        ((2, 1), [1.0, 2.0], 0),
        (range(3), [0.0, 1.0, 2.0], 0),
        (np.array([2, 1], dtype=np.int32), [1.0, 2.0], 0),
        (np.array([0.5, NAN], dtype=np.float32), [0.5], 1),
        (masked([1.0, 2.0, NAN], mask=[False, True, False]), [1.0], 2),
        (masked([2, 1], mask=[True, False]), [1.0], 1),
        (pd.Series([1.0, None, 3.0]), [1.0, 3.0], 1),
        (pd.Series([1, None], dtype="Int64"), [1.0], 1),
        (pd.Series([True, None], dtype="boolean"), [1.0], 1),
        (pd.Series([1, pd.NA, None], dtype=object), [1.0], 2),
        ([1, pd.NA], [1.0], 1),
        ([10**300, -INF], [-INF, 1e300], 0),
    ],
)
def test_kinds_of_sample(values: Any, expected: list[float], n_null: int) -> None:
    taken = sample(values)
    assert (taken.values.tolist(), taken.n_null) == (expected, n_null)
    assert taken.values.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1.5"], "numbers, not"),
        ([1, "2", None], "numbers, not str"),
        ([1j], "numbers, not"),
        (np.array(["2026-01-01"], dtype="datetime64[D]"), "numbers, not"),
        (pd.Series(pd.to_datetime(["2026-01-01"])), "numbers, not"),
        (pd.Series(["a"], dtype="category"), "numbers, not"),
        ([[1.0], [2.0]], "one dimension"),
        ([[1.0], [2.0, 3.0]], "one dimension"),
        (3.0, "one dimension"),
        ([10**400], "float64 can hold"),
    ],
)
def test_what_is_no_sample(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample(values)


def test_the_input_is_left_alone() -> None:
    values = np.array([3.0, NAN, 1.0])
    sample(values)
    assert np.array_equal(values, [3.0, NAN, 1.0], equal_nan=True)


def test_infinities_are_counted_on_both_sides() -> None:
    assert sample([INF, -INF, 1.0, INF, None]).n_infinite == 3


@pytest.mark.parametrize(("reference", "window"), [([], [1.0]), ([1.0], []), ([None], [NAN]), ([], [])])
def test_a_side_without_values_has_no_figures(reference: list[float], window: list[float]) -> None:
    for method in METHODS:
        result = ks_two_sample(reference, window, method=method)
        assert result.status is Status.INSUFFICIENT_DATA
        assert (result.statistic, result.p_value, result.log10_p_value, result.effect) == (None,) * 4
        assert is_drifted(result, alpha=0.5) is None
        assert published_score(result, alpha=0.5) is None


def test_null_rate_of_no_records_is_unknown() -> None:
    assert ks_two_sample([1.0], []).window_null_rate is None


@pytest.mark.parametrize("figure", [NAN, INF, None])
def test_an_ok_result_has_finite_figures(figure: float | None) -> None:
    result = ks_two_sample([1.0, 2.0], [1.5])
    fields = {name: getattr(result, name) for name in TestResult.__slots__}
    for name in ("statistic", "p_value", "log10_p_value", "effect"):
        with pytest.raises(ValueError, match="finite figures"):
            TestResult(**(fields | {name: figure}))


def test_a_result_without_data_has_no_figures() -> None:
    result = ks_two_sample([1.0, 2.0], [1.5])
    fields = {name: getattr(result, name) for name in TestResult.__slots__}
    with pytest.raises(ValueError, match="must have no figures"):
        TestResult(**(fields | {"status": Status.INSUFFICIENT_DATA}))


def test_published_score_is_zero_or_nearly_one() -> None:
    drifted = ks_two_sample(range(50), range(100, 150))
    assert drifted.p_value is not None
    assert published_score(drifted, alpha=0.01) == 1.0 - drifted.p_value
    assert published_score(ks_two_sample(range(50), range(50)), alpha=0.01) == 0.0


def test_alpha_and_effect_are_bounds_of_drift() -> None:
    result = ks_two_sample(range(100), range(30, 130))
    assert result.p_value is not None
    assert is_drifted(result, alpha=result.p_value) is False
    assert is_drifted(result, alpha=result.p_value * 1.01, min_effect=0.3) is True
    assert is_drifted(result, alpha=result.p_value * 1.01, min_effect=0.301) is False
