"""Moments against numpy, with the offsets and the sizes that make the textbook formula fail."""

import json
import math
import random
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from udfs.sketches.moments import Moments, standardised_mean_difference
from udfs.statistics.ks import ks_two_sample
from udfs.versioned_bytes import seal

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/statistics.json").read_text())}
GOLDEN = Path(__file__).parent.parent / "golden/sketches/moments_v1.hex"
GOLDEN_VALUES = [1.5, -2.25, 1e9, 0.0, None, np.inf, -np.inf, np.nan]
LARGEST = float(np.finfo(float).max)


def _merged(slices: list[np.ndarray]) -> Moments:
    merged = Moments.empty()
    for values in slices:
        merged = merged.merge(Moments.from_values(values))
    return merged


def test_case_window_nan_chunk() -> None:
    case = CASES["window-nan-chunk"]
    chunks = [ks_two_sample(case["input"]["ref"], chunk).statistic for chunk in case["input"]["chunks"]]
    assert chunks == case["expected"]["chunk_D"]
    moments = Moments.from_values(chunks)
    assert moments.mean + 3 * moments.standard_deviation() == case["expected"]["upper_threshold"]
    assert moments.n_null == 1


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9, 1e-9])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_equal_to_numpy_whole_and_in_slices(offset: float, spread: float) -> None:
    values = np.random.default_rng(7).normal(0.0, spread, 10_000) + offset
    exact_mean = sum(map(Fraction, values.tolist())) / values.size
    exact_m2 = sum((Fraction(value) - exact_mean) ** 2 for value in values.tolist())
    slices = np.split(values, np.sort(np.random.default_rng(8).integers(0, values.size, 200)))
    whole, merged = Moments.from_values(values), _merged(slices)
    for moments in (whole, merged):
        assert moments.mean == pytest.approx(float(exact_mean), rel=1e-15, abs=1e-15 * spread)
        assert moments.m2 == pytest.approx(float(exact_m2), rel=1e-12, abs=0)
        assert moments.variance() == pytest.approx(np.var(values, ddof=1), rel=1e-5, abs=0)  # numpy loses digits
        assert moments.standard_deviation(ddof=0) == pytest.approx(np.std(values), rel=1e-5, abs=0)
        assert (moments.n, moments.minimum, moments.maximum) == (values.size, values.min(), values.max())


def test_the_order_of_slices_and_values_changes_no_bit() -> None:
    rng = np.random.default_rng(9)
    slices = [rng.lognormal(3, 2, n) + 1e6 for n in rng.integers(0, 50, 40)]
    data = [Moments.from_values(values).to_bytes() for values in slices]
    whole = Moments.merge_all(data).to_bytes()
    for seed in range(20):
        random.Random(seed).shuffle(data)
        assert Moments.merge_all(data).to_bytes() == whole
    assert Moments.from_values(slices[3][::-1]) == Moments.from_values(slices[3])


def test_constants_have_no_variance_whatever_they_are() -> None:
    for constant in (0.1, 1e9 + 0.1, 1e-300, LARGEST, -LARGEST, 5e-324):
        slices = [np.full(n, constant) for n in (3, 1, 7, 1000)]
        for moments in (Moments.from_values(np.concatenate(slices)), _merged(slices)):
            assert (moments.mean, moments.m2, moments.minimum, moments.maximum) == (constant, 0.0, constant, constant)


def test_nulls_and_infinities_stay_apart() -> None:
    moments = Moments.from_values([1.0, None, np.nan, np.inf, 3.0, -np.inf])
    assert (moments.n, moments.n_null, moments.n_infinite) == (2, 2, 2)
    assert (moments.mean, moments.minimum, moments.maximum, moments.variance()) == (2.0, 1.0, 3.0, 2.0)


@pytest.mark.parametrize("values", [[], [None, np.nan], [np.inf, -np.inf]])
def test_no_values_give_no_figures(values: list[float | None]) -> None:
    moments = Moments.from_values(values)
    assert (moments.n, moments.mean, moments.minimum, moments.maximum) == (0, None, None, None)
    assert moments.variance() is moments.standard_deviation() is None
    assert Moments.from_bytes(moments.to_bytes()) == moments


def test_one_value_has_no_variance() -> None:
    moments = Moments.from_values([5.0])
    assert (moments.mean, moments.variance(), moments.variance(ddof=0)) == (5.0, None, 0.0)


def test_the_ends_of_float64_give_a_mean_and_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = Moments.from_values([LARGEST, LARGEST, -LARGEST, LARGEST])
        parts = Moments.from_values([LARGEST, LARGEST, LARGEST]).merge(Moments.from_values([-LARGEST]))
    for moments in (whole, parts):
        assert moments.mean == pytest.approx(LARGEST / 2, rel=1e-15)
        assert moments.variance() is None  # beyond float64
    assert standardised_mean_difference(whole, Moments.from_values([1.0, 2.0])) is None


def test_standardised_mean_difference_by_hand() -> None:
    rng = np.random.default_rng(11)
    reference, window = rng.normal(10, 2, 5_000), rng.normal(11, 2, 700)
    pooled = ((reference.size - 1) * reference.var(ddof=1) + (window.size - 1) * window.var(ddof=1)) / 5_698
    difference = standardised_mean_difference(Moments.from_values(reference), Moments.from_values(window))
    assert difference == pytest.approx((window.mean() - reference.mean()) / math.sqrt(pooled), rel=1e-12)
    constants = Moments.from_values([2.0, 2.0]), Moments.from_values([3.0, 3.0])
    assert standardised_mean_difference(constants[0], constants[0]) == 0.0
    assert standardised_mean_difference(*constants) is None
    assert standardised_mean_difference(Moments.empty(), constants[0]) is None


def test_bytes_of_version_1_stay_readable() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())
    assert Moments.from_bytes(golden) == Moments.from_values(GOLDEN_VALUES)
    assert Moments.from_values(GOLDEN_VALUES).to_bytes() == golden
    with pytest.raises(ValueError, match="not MOM bytes"):
        Moments.from_bytes(seal(b"MOM", 1, b"short"))
