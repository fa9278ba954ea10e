"""log10 p where p itself underflows: against big integers and against figures of mpmath 1.3 at 60 digits."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstwo

from udfs.statistics.kolmogorov import (
    asymptotic_p_value,
    critical_constant,
    critical_statistic,
    effective_size,
)
from udfs.statistics.ks import METHODS, ks_p_value, ks_two_sample
from udfs.statistics.smirnov import log10_exact_tail


def log10_share_outside(m: int, n: int, steps: int) -> float:
    """The exact log10 p by counting paths in whole numbers of any length."""
    right, up = n // math.gcd(m, n), m // math.gcd(m, n)
    column = [0] * (n + 1)
    for x in range(m + 1):
        for y in range(n + 1):
            to_here = 1 if x == y == 0 else column[y] + (column[y - 1] if y else 0)
            column[y] = to_here if abs(x * right - y * up) < steps else 0
    paths = math.comb(m + n, n)
    return math.log10(paths - column[n]) - math.log10(paths)


@pytest.mark.parametrize(
    ("m", "n", "statistic"),
    [
        (200, 199, 0.95),
        (150, 300, 0.9),
        (300, 151, 0.8),
        (7, 400, 1.0),
        (400, 400, 0.75),
        (400, 7, 1.0),
        (333, 500, 0.75),
    ],
)
def test_exact_tail_against_whole_numbers(m: int, n: int, statistic: float) -> None:
    steps = math.floor(statistic * math.lcm(m, n))
    assert log10_exact_tail(m, n, steps) == pytest.approx(log10_share_outside(m, n, steps), rel=1e-13)


def test_exact_tail_where_walk_probabilities_underflow() -> None:
    steps = 9000
    expected = math.log10(2) + math.log10(math.comb(20_000, 10_000 - steps)) - math.log10(math.comb(20_000, 10_000))
    assert log10_exact_tail(10_000, 10_000, steps) == pytest.approx(expected, rel=1e-12)


def test_complete_separation_has_two_paths() -> None:
    for m, n in ((1000, 1000), (1000, 999), (10_000, 9_973), (3, 10_000)):
        log10_p = ks_p_value(1.0, m, n, method="exact")[1]
        assert log10_p == pytest.approx(math.log10(2) - math.log10(math.comb(m + n, n)), rel=1e-12)


def test_exact_logarithm_joins_p_where_it_starts_to_underflow() -> None:
    m, n = 1000, 997
    for steps in range(620_000, 800_000, 20_011):
        reachable = next(h for h in range(steps, steps + 2000) if _is_reachable(h, m, n))
        p, log10_p, _ = ks_p_value(reachable / math.lcm(m, n), m, n, method="exact")
        assert log10_p == pytest.approx(log10_exact_tail(m, n, reachable), rel=1e-9)
        assert p == 0.0 or math.log10(p) == pytest.approx(log10_p, rel=1e-6)


def _is_reachable(steps: int, m: int, n: int) -> bool:
    x = (steps * pow(n, -1, m)) % m if math.gcd(m, n) == 1 else -1
    return any(0 <= (x * n - steps) // m <= n and (x * n - steps) % m == 0 for x in (x, x + m) if 0 <= x <= m)


@pytest.mark.parametrize(
    ("size", "statistic", "expected"),
    [
        (500, 0.9, -499.61830052352313202),
        (500, 0.9995, -1650.2139678363505317),
        (400, 0.8, -275.36179898988508259),
        (2500, 0.5, -577.73392208290486982),
        (9000, 0.35, -985.33224554168309934),
        (140, 0.995, -321.84316939729333213),
    ],
)
def test_asymptotic_tail_against_mpmath(size: int, statistic: float, expected: float) -> None:
    p, log10_p = asymptotic_p_value(statistic, 2 * size, 2 * size)
    assert effective_size(2 * size, 2 * size) == size
    assert log10_p == pytest.approx(expected, rel=1e-13)
    assert p == pytest.approx(kstwo.sf(statistic, size), rel=1e-10)


def test_asymptotic_logarithm_falls_as_d_rises_through_the_underflow_and_up_to_one() -> None:
    statistics = np.arange(400, 1001) / 1000
    logs = [asymptotic_p_value(float(d), 1000, 1000)[1] for d in statistics]
    assert np.isfinite(logs).all()
    assert (np.diff(logs) < 0).all()
    assert logs[-1] == pytest.approx(500 * math.log10(0.0005) + math.log10(2), rel=1e-9)


def test_d_of_one_is_finite_for_every_size() -> None:
    for m, n in ((1, 1), (1, 2), (2, 2), (3, 1_000_000), (1000, 1000), (100_003, 99_991)):
        for method in METHODS:
            p, log10_p, _ = ks_p_value(1.0, m, n, method=method)
            assert math.isfinite(log10_p)
            assert 0.0 <= p <= 1.0


def test_critical_statistic_is_where_p_crosses_alpha() -> None:
    critical = critical_statistic(0.01, 1000, 600)
    assert (
        asymptotic_p_value(critical * 1.0001, 1000, 600)[0] < 0.01 < asymptotic_p_value(critical * 0.9999, 1000, 600)[0]
    )


def test_the_constant_is_the_limit_of_the_critical_statistic() -> None:
    n = 10_000_000
    assert critical_statistic(0.05, n, n) == pytest.approx(critical_constant(0.05) * math.sqrt(2 / n), rel=1e-3)


def test_the_one_sided_constant_would_alarm_too_often() -> None:
    """sqrt(-ln(alpha) / 2) at a nominal 5 %: about 8 % of quiet windows, where the two-sided one keeps to 5 %."""
    rng = np.random.default_rng(7)
    n, trials = 500, 2000
    d = np.array([ks_two_sample(rng.random(n), rng.random(n)).statistic for _ in range(trials)])
    scaled = d * math.sqrt(n / 2)
    assert 0.065 < (scaled > math.sqrt(-math.log(0.05) / 2)).mean() < 0.105
    assert 0.03 < (scaled > critical_constant(0.05)).mean() < 0.06


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be above 0 and below 1"):
        critical_constant(alpha)
    with pytest.raises(ValueError, match="alpha must be above 0 and below 1"):
        critical_statistic(alpha, 100, 100)


def test_one_value_against_one_has_no_asymptotic_p() -> None:
    with pytest.raises(ValueError, match="round to 1 or more"):
        asymptotic_p_value(1.0, 1, 1)
    with pytest.raises(ValueError, match="round to 1 or more"):
        critical_statistic(0.05, 1, 1)


def test_p_of_the_tail_is_scipys() -> None:
    x, y = np.arange(1000.0), np.arange(640.0, 1640.0)
    result = ks_two_sample(x, y)
    assert result.p_value == pytest.approx(ks_2samp(x, y, method="asymp").pvalue, rel=1e-10)


def test_exact_logarithm_keeps_its_digits_where_p_is_losing_them() -> None:
    for steps in range(770, 805, 3):
        expected = math.log10(2) + math.log10(math.comb(2000, 1000 - steps)) - math.log10(math.comb(2000, 1000))
        assert -325 < expected < -290
        p, log10_p, _ = ks_p_value(steps / 1000, 1000, 1000, method="exact")
        assert p < 1e-290
        assert log10_p == pytest.approx(expected, rel=1e-13)
