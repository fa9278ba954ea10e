"""The fast upper tail of Kolmogorov's statistic: scipy's, whatever the size and D, on every way and at every seam."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ksone, kstwo

from udfs.statistics.kolmogorov_tail import MOST_KEPT, one_sided_tail, two_sided_tail, two_sided_tails

SIZES = [1, 2, 3, 10, 139, 140, 141, 500, 909, 4095, 4097, 20_000, 100_000, 100_001]
ZS = [0.05, 0.2, 0.45, 0.7, 0.9, 1.2, 1.48, 1.49, 1.9, 2.0, 2.1, 4.0, 9.0, 19.0]


def assert_is_scipys(size: int, statistic: float) -> None:
    scipys = float(kstwo.sf(statistic, size))
    assert two_sided_tail(size, statistic) == pytest.approx(scipys, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("size", SIZES)
def test_tail_is_scipys_from_the_lower_end_to_the_upper(size: int) -> None:
    zs = ZS if size < 50_000 else ZS[1::3]  # scipy's lower end takes a second there
    for z in zs:
        statistic = z / math.sqrt(size)
        if statistic < 1.0:
            assert_is_scipys(size, statistic)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.floats(0.05, 30.0))
def test_tail_is_scipys(size: int, z: float) -> None:
    statistic = z / math.sqrt(size)
    if statistic < 1.0:
        assert_is_scipys(size, statistic)


@pytest.mark.parametrize("size", [141, 500, 5000])
@pytest.mark.parametrize("seam", [lambda n: 0.5 / n, lambda n: 1 / n, lambda n: (1.4 / n) ** (2 / 3), lambda n: 0.5])
def test_tail_is_scipys_at_every_seam(size: int, seam) -> None:
    for statistic in (np.nextafter(seam(size), 0), seam(size), np.nextafter(seam(size), 1), seam(size) + 0.3 / size):
        assert_is_scipys(size, float(statistic))


@pytest.mark.parametrize("size", [5, 141, 3000, MOST_KEPT + 7])
def test_one_sided_tail_is_scipys(size: int) -> None:
    for z in (0.4, 1.0, 2.0) if size < MOST_KEPT else (1.5,):
        statistic = z / math.sqrt(size)
        assert one_sided_tail(size, statistic) == pytest.approx(float(ksone.sf(statistic, size)), rel=1e-10)


def test_tail_falls_as_d_rises() -> None:
    tails = [two_sided_tail(700, float(statistic)) for statistic in np.linspace(1e-4, 0.999, 700)]
    assert tails[0] == 1.0
    assert (np.diff(tails) <= 0).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(141, 20_000), st.floats(0.05, 2.5)), min_size=1, max_size=60))
def test_tails_of_many_are_those_of_each_to_the_last_bit(pairs: list[tuple[int, float]]) -> None:
    sizes, statistics = [n for n, _ in pairs], [z / math.sqrt(n) for n, z in pairs]
    assert two_sided_tails(sizes, statistics) == [two_sided_tail(*pair) for pair in zip(sizes, statistics, strict=True)]
