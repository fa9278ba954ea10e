"""The log sketch against exact quantiles, exact shares and the exact D, and on the values that break sketches."""

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from udfs.sketches.log import LogSketch, ks_interval
from udfs.sketches.log_bytes import LogBytes, encode
from udfs.versioned_bytes import seal

GOLDEN = Path(__file__).parent.parent / "golden/sketches/log_v1.hex"
GOLDEN_VALUES = [-np.inf, -1e300, -2.5, -2.5, -5e-324, 0.0, 0.0, 5e-324, 0.25, 1.0, 1.0, 800.0, 1e300, np.inf, None]
QUANTILES = (0.0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
LARGEST, SMALLEST, SMALLEST_NORMAL = float(np.finfo(float).max), 5e-324, float(np.finfo(float).tiny)


def _distributions() -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(20260101)
    n = 20_000
    return {
        "lognormal": rng.lognormal(6.0, 1.0, n),
        "exponential": rng.exponential(0.3, n),
        "pareto": rng.pareto(0.8, n),
        "normal": rng.normal(0.0, 3.0, n),
        "uniform": rng.uniform(-1.0, 1.0, n),
        "cauchy": rng.standard_cauchy(n),
        "bimodal": np.concatenate([rng.normal(80, 5, n // 2), rng.normal(-4000, 300, n // 2)]),
        "zero-inflated": rng.gamma(0.5, 2.0, n) * rng.integers(0, 2, n),
        "token counts": rng.geometric(0.01, n).astype(float),
        "constant": np.full(n, 0.1),
        "log-uniform": np.exp(rng.uniform(-740, 709, n)),
    }


DISTRIBUTIONS = _distributions()


@pytest.mark.parametrize("relative_accuracy", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_keep_the_guarantee(name: str, relative_accuracy: float) -> None:
    values = DISTRIBUTIONS[name]
    sketch = LogSketch.from_values(values, relative_accuracy)
    for q in QUANTILES:
        exact = np.quantile(values, q, method="lower")
        assert abs(sketch.quantile(q) - exact) <= relative_accuracy * abs(exact), q


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_shares_keep_the_guarantee(name: str) -> None:
    values, a = DISTRIBUTIONS[name], 0.01
    sketch = LogSketch.from_values(values, a)
    for x in np.quantile(values, QUANTILES):
        near, far = sorted((x / (1 + a), x / (1 - a)))
        assert (values <= near).mean() <= sketch.cdf(x) <= (values <= far).mean()


def test_edges_of_bins_and_of_float64_keep_the_guarantee() -> None:
    edges = np.exp(np.arange(-37_200, 35_480) * 2 * math.atanh(0.01))
    near_edges = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, np.inf)])
    subnormal = np.arange(1, 5_000) * SMALLEST
    magnitudes = np.concatenate([near_edges, subnormal, [SMALLEST_NORMAL, 1.0, LARGEST]])
    magnitudes = magnitudes[(magnitudes > 0) & (magnitudes < np.inf)]
    values = np.sort(np.concatenate([magnitudes, -magnitudes, [0.0]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketch = LogSketch.from_values(values)
        stands_for = np.repeat(sketch.representatives(), sketch.counts)
    assert (np.abs(stands_for - values) <= 0.01 * np.abs(values)).all()
    assert (np.diff(sketch.representatives()) >= 0).all()


def test_zero_and_infinities_are_exact_and_nulls_stay_apart() -> None:
    sketch = LogSketch.from_values([-np.inf, -0.0, 0.0, np.inf, np.nan, None])
    assert [sketch.quantile(q) for q in (0.0, 0.4, 0.6, 1.0)] == [-np.inf, 0.0, 0.0, np.inf]
    assert (sketch.n, sketch.n_null, sketch.n_infinite) == (4, 2, 2)
    assert [sketch.cdf(x) for x in (-np.inf, -1e-300, 0.0, LARGEST, np.inf)] == [0.25, 0.25, 0.75, 0.75, 1.0]


def test_nulls_do_not_move_a_quantile() -> None:
    values = DISTRIBUTIONS["lognormal"]
    holes = np.insert(values, np.arange(0, values.size, 7), np.nan)
    assert LogSketch.from_values(holes).quantile(0.95) == LogSketch.from_values(values).quantile(0.95)


def test_no_values_give_no_figures() -> None:
    for sketch in (LogSketch.empty(), LogSketch.from_values([]), LogSketch.from_values([None, np.nan])):
        assert (sketch.n, sketch.quantile(0.5), sketch.cdf(1.0)) == (0, None, None)
        assert ks_interval(sketch, LogSketch.from_values([1.0])) is None


def test_memory_is_bounded_by_float64_itself() -> None:
    everywhere = np.exp(np.linspace(-744.4, 709.7, 300_000))
    sketch = LogSketch.from_values(np.concatenate([everywhere, -everywhere]))
    assert 2 * 72_300 < sketch.keys.size <= 2 * 72_711  # the smallest bins are narrower than float64 is fine
    latencies = LogSketch.from_values(DISTRIBUTIONS["lognormal"])
    assert len(latencies.to_bytes()) < 4 * latencies.keys.size + 64


def test_ten_million_equal_values_take_one_bin() -> None:
    sketch = LogSketch.from_values(np.full(10_000_000, 3.5))
    assert sketch.counts.tolist() == [10_000_000]
    assert abs(sketch.quantile(0.5) - 3.5) <= 0.035


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("change", [0.0, 0.003, 0.3])
def test_ks_interval_holds_the_exact_statistic(name: str, change: float) -> None:
    values = DISTRIBUTIONS[name]
    ours, theirs = values[:7_000], values[7_000:12_000] * (1 + change) + change
    exact = stats.ks_2samp(ours, theirs, method="asymp").statistic
    for accuracy in (0.001, 0.01, 0.2):
        a, b = LogSketch.from_values(ours, accuracy), LogSketch.from_values(theirs, accuracy)
        low, high = ks_interval(a, b)
        assert low - 1e-12 <= exact <= high + 1e-12
        largest_mass = max(a.counts.max() / a.n, b.counts.max() / b.n)
        assert high <= low + largest_mass + 1e-12


def test_ks_interval_reaches_both_ends() -> None:
    # One bin holds all of both samples: they may be equal, or lie wholly beside each other.
    a, b = LogSketch.from_values([100.0, 100.1]), LogSketch.from_values([100.2, 100.3])
    assert a.keys.size == 1
    assert ks_interval(a, b) == ks_interval(a, a) == (0.0, 1.0)


def test_ks_interval_has_no_width_where_bins_are_points() -> None:
    a, b = LogSketch.from_values([0.0, 0.0, 0.0, np.inf]), LogSketch.from_values([-np.inf, 0.0, 0.0, np.inf])
    assert ks_interval(a, b) == (0.25, 0.25)


def test_different_accuracies_do_not_mix() -> None:
    fine, coarse = LogSketch.from_values([1.0], 0.01), LogSketch.from_values([1.0], 0.02)
    with pytest.raises(ValueError, match="accuracy"):
        fine.merge(coarse)
    with pytest.raises(ValueError, match="accuracy"):
        LogSketch.merge_all([fine.to_bytes(), coarse.to_bytes()])
    with pytest.raises(ValueError, match="accuracy"):
        ks_interval(fine, coarse)


@pytest.mark.parametrize("relative_accuracy", [0.0, -0.01, 0.6, 1e-5, math.nan])
def test_impossible_accuracies_are_refused(relative_accuracy: float) -> None:
    with pytest.raises(ValueError, match="relative_accuracy"):
        LogSketch.from_values([1.0], relative_accuracy)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_impossible_quantiles_are_refused(q: float) -> None:
    with pytest.raises(ValueError, match="q must be"):
        LogSketch.from_values([1.0]).quantile(q)


def test_bytes_of_version_1_stay_readable() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())
    sketch = LogSketch.from_values(GOLDEN_VALUES)
    assert LogSketch.from_bytes(golden) == sketch
    assert sketch.to_bytes() == golden


def test_other_bytes_are_refused() -> None:
    data = LogSketch.from_values([1.0, 2.0]).to_bytes()
    wrong = {
        "too few": data[:5],
        "checksum": data[:-6] + b"\0" + data[-5:],
        "version 9": b"\x09" + data[1:],
        "tag": seal(b"MOM", 1, b"x" * 30),
        "lengths": seal(b"LOG", 1, data[4:-5]),
        "add up": seal(b"LOG", 1, data[4:-4] + b"\0"),
        "too short": seal(b"LOG", 1, b"\0" * 8),
        "relative_accuracy": encode(LogBytes(3.0, np.array([1]), np.array([1]), 0)),
        "beyond the last": encode(LogBytes(0.01, np.array([10**6]), np.array([1]), 0)),
    }
    for problem, other in wrong.items():
        with pytest.raises(ValueError, match=problem):
            LogSketch.from_bytes(other)
