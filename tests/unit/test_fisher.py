"""Fisher's exact test and the test of two proportions, against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact

from schemas.status import Status
from udfs.statistics.fisher import fisher_exact_p_value
from udfs.statistics.two_proportions import two_proportions

tables = st.tuples(st.integers(1, 300), st.integers(1, 60)).flatmap(
    lambda sizes: st.tuples(st.integers(0, sizes[0]), st.just(sizes[0]), st.integers(0, sizes[1]), st.just(sizes[1]))
)


@settings(max_examples=150)
@given(tables)
def test_fisher_is_scipys(table: tuple[int, int, int, int]) -> None:
    a, n, b, m = table
    p, log10_p = fisher_exact_p_value(a, n, b, m)
    assert p == pytest.approx(fisher_exact([[a, n - a], [b, m - b]]).pvalue, rel=1e-6)
    assert log10_p == pytest.approx(math.log10(p), abs=1e-6)


def test_fisher_of_large_tables() -> None:
    for table in ((1_000, 1_000_000, 3, 1_000), (0, 50_000, 2, 400), (7, 100_000, 40, 5_000)):
        a, n, b, m = table
        expected = fisher_exact([[a, n - a], [b, m - b]]).pvalue
        assert fisher_exact_p_value(*table)[0] == pytest.approx(expected, rel=1e-6)


def test_fishers_logarithm_survives_underflow() -> None:
    """The window is all of what the reference never has: p is 1 / choose(N, k)."""
    p, log10_p = fisher_exact_p_value(0, 100_000, 1_000, 1_000)
    expected = sum(math.log10((i + 1) / (100_000 + i + 1)) for i in range(1_000))
    assert p == 0.0
    assert log10_p == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("counts", [(2, 1, 0, 1), (0, 1, 2, 1), (-1, 1, 0, 1)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="a count must be"):
        fisher_exact_p_value(*counts)
    with pytest.raises(ValueError, match="a count must be"):
        two_proportions(*counts)


@settings(max_examples=150)
@given(tables)
def test_proportions_are_scipys(table: tuple[int, int, int, int]) -> None:
    a, n, b, m = table
    result = two_proportions(a, n, b, m)
    assert result.statistic == b / m
    assert result.effect == abs(b / m - a / n)
    if result.method == "exact":
        assert result.p_value == pytest.approx(fisher_exact([[a, n - a], [b, m - b]]).pvalue, rel=1e-6)
    else:
        scipys = chi2_contingency([[a, n - a], [b, m - b]], correction=False)
        assert scipys.expected_freq.min() >= 5
        assert result.p_value == pytest.approx(scipys.pvalue, rel=1e-9)


def test_no_side_is_no_figure() -> None:
    for sizes in ((0, 0, 1, 2), (1, 2, 0, 0)):
        assert two_proportions(*sizes).status is Status.INSUFFICIENT_DATA


def test_the_test_keeps_its_level() -> None:
    """Of windows of the reference's own share, at most alpha are called different, whichever way p was made."""
    rng = np.random.default_rng(3)
    for share in (0.0005, 0.02, 0.3):
        reference = rng.binomial(5_000, share, 400)
        window = rng.binomial(500, share, 400)
        p_values = [two_proportions(int(a), 5_000, int(b), 500).p_value for a, b in zip(reference, window, strict=True)]
        assert np.mean(np.array(p_values) < 0.05) <= 0.085  # 400 draws: three standard errors above 0.05
