"""Cramer-von Mises against scipy without ties, by hand with them, and why a rank sketch can't tell it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, kve
from scipy.stats import chi2, cramervonmises_2samp

from schemas.status import Status
from udfs.sketches.rank import RankSketch
from udfs.statistics.cramer_von_mises import cramer_von_mises, limit_upper_tail

distinct = st.lists(st.floats(-1e9, 1e9).map(lambda value: value + 0.0), min_size=4, max_size=60, unique=True)
tied = st.lists(st.integers(-3, 3).map(float) | st.sampled_from([math.inf, -math.inf]), min_size=1, max_size=30)


@settings(deadline=None)
@given(distinct, st.integers(2, 58))
def test_equal_to_scipy_without_ties(values: list[float], cut: int) -> None:
    cut = min(cut, len(values) - 2)
    ours, theirs = values[:cut], values[cut:]
    result, scipys = cramer_von_mises(ours, theirs), cramervonmises_2samp(ours, theirs, method="asymptotic")
    assert result.statistic == pytest.approx(scipys.statistic, abs=1e-12)
    assert result.p_value == pytest.approx(scipys.pvalue, abs=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1, 0.2])
def test_equal_to_scipy_on_large_samples(shift: float) -> None:
    rng = np.random.default_rng(31)
    ours, theirs = rng.normal(size=3_000), rng.normal(shift, 1.0, size=1_000)
    result, scipys = cramer_von_mises(ours, theirs), cramervonmises_2samp(ours, theirs, method="asymptotic")
    assert result.statistic == pytest.approx(scipys.statistic, rel=1e-9)
    assert result.p_value == pytest.approx(scipys.pvalue, abs=1e-8)  # scipy sums its series to 1e-7


def test_the_tables_critical_points() -> None:
    # Anderson & Darling 1952, table 1.
    for x, p in ((0.34730, 0.10), (0.46136, 0.05), (0.74346, 0.01), (1.16786, 0.001)):
        assert limit_upper_tail(x)[0] == pytest.approx(p, rel=1e-4)


def test_the_tail_against_the_whole_series() -> None:
    # Anderson & Darling's series for the distribution function, summed until nothing is left to add.
    k = np.arange(60.0)
    for x in (0.25, 0.5, 1.0, 2.0, 4.0):
        y = 4 * k + 1
        q = y * y / (16 * x)
        terms = np.exp(gammaln(k + 0.5) - gammaln(k + 1) - 2 * q) * np.sqrt(y) * kve(0.25, q)
        exact = 1 - math.fsum(terms) / (math.pi**1.5 * math.sqrt(x))
        assert limit_upper_tail(x)[0] == pytest.approx(exact, abs=1e-14)


def test_the_two_series_meet() -> None:
    below, above = limit_upper_tail(math.nextafter(0.2, 0))[0], limit_upper_tail(0.2)[0]
    assert below == pytest.approx(above, rel=1e-13)
    tails = [limit_upper_tail(x)[1] for x in np.geomspace(1e-4, 1e7, 400)]
    assert all(math.isfinite(tail) for tail in tails)
    assert (np.diff(tails) <= 1e-12).all()


def test_the_far_tail_is_its_leading_term() -> None:
    # The limit is the sum of independent chi-squares over (j pi)**2, so its far tail is that of the first one times
    # the product over j > 1 of (1 - 1 / j**2)**-0.5 = sqrt(2) (Zolotarev 1961); the next term is of order 1 / x.
    for x in (1e3, 1e6):
        leading = 0.5 * math.log(4 / (math.pi**3 * x)) - 0.5 * math.pi**2 * x
        assert limit_upper_tail(x)[1] * math.log(10) == pytest.approx(leading, abs=2 / x)


def test_equal_constants_are_equal_whatever_their_number() -> None:
    assert cramervonmises_2samp([1] * 5, [1] * 10, method="asymptotic").pvalue < 0.02  # scipy's midranks
    result = cramer_von_mises([1] * 5, [1] * 10)
    assert (result.statistic, result.p_value, result.effect) == (0.0, 1.0, 0.0)


def test_ties_by_hand() -> None:
    # Pooled: 0 three times, 1 twice. F - G after the zeros is 1/3 - 1; before them and after the ones it is 0.
    squared = (1 / 3 - 1) ** 2
    zeros, ones = 3 * (0 + squared) / 2, 2 * (squared + 0) / 2
    assert cramer_von_mises([0, 1, 1], [0, 0]).statistic == pytest.approx(6 / 25 * (zeros + ones), rel=1e-14)


@settings(deadline=None)
@given(tied, tied)
def test_symmetries_with_ties(reference: list[float], window: list[float]) -> None:
    result = cramer_von_mises(reference, window)
    swapped = cramer_von_mises(window, reference)
    assert swapped.statistic == pytest.approx(result.statistic, abs=1e-12)
    assert swapped.p_value == pytest.approx(result.p_value, abs=1e-12)
    from_the_other_end = cramer_von_mises([-value for value in reference], [-value for value in window])
    assert from_the_other_end.statistic == pytest.approx(result.statistic, abs=1e-12)
    assert cramer_von_mises(reference, reference * 2).p_value == 1.0
    assert 0.0 <= result.p_value <= 1.0
    assert result.log10_p_value <= 0.0


def test_an_even_binary_feature_as_the_docstring_says() -> None:
    # T is then a half of p (1 - p) = 1/8 of a chi-square with one degree of freedom.
    assert chi2.sf(0.74346 * 8, 1) == pytest.approx(0.0147, abs=1e-4)


def test_log10_p_survives_underflow() -> None:
    result = cramer_von_mises(np.arange(20_000), np.arange(20_000) + 20_000)
    assert result.p_value == 0.0
    assert -20_000 < result.log10_p_value < -5_000
    assert result.effect == pytest.approx(math.sqrt(1 / 3), abs=1e-4)


def test_nulls_are_counted_and_infinities_ordered() -> None:
    result = cramer_von_mises([1.0, None, 2.0], [math.inf, math.nan, -math.inf])
    assert (result.n_reference, result.n_reference_null, result.n_window, result.n_window_null) == (2, 1, 2, 1)
    assert result.n_infinite == 2
    assert result.statistic == cramer_von_mises([1.0, 2.0], [9.0, -9.0]).statistic


@pytest.mark.parametrize("sides", [([], [1.0]), ([1.0], [None]), ([math.nan], [math.nan])])
def test_a_side_without_values_is_unknown(sides: tuple[list[float | None], list[float | None]]) -> None:
    assert cramer_von_mises(*sides).status is Status.INSUFFICIENT_DATA


def test_one_value_against_one_says_nothing() -> None:
    assert cramer_von_mises([1.0], [2.0]).p_value == 1.0


def test_a_rank_sketch_cannot_tell_it() -> None:
    # Three values between two reference points, tied or not: one sketch, two statistics.
    reference, apart, together = [0.0, 1.0], [0.2, 0.4, 0.6], [0.4, 0.4, 0.4]
    assert RankSketch.from_values(apart, reference).to_bytes() == RankSketch.from_values(together, reference).to_bytes()
    assert cramer_von_mises(reference, apart).statistic != cramer_von_mises(reference, together).statistic
