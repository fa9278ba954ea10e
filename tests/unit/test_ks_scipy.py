"""D equals scipy's to the last bit and p within rounding, whatever the samples."""

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from udfs.sketches.rank import RankSketch
from udfs.statistics.ks import METHODS, Method, ks_from_counts, ks_p_value, ks_two_sample
from udfs.statistics.result import TestResult
from udfs.statistics.smirnov import exact_p_value

SCIPY_NAMES: dict[Method, str] = {"asymptotic": "asymp", "exact": "exact", "auto": "auto"}
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
FEW_VALUES = st.sampled_from([0.0, -0.0, 1.0, 5e-324, -5e-324, math.inf, -math.inf, 1.7976931348623157e308, math.nan])
SAMPLE = st.one_of(
    st.lists(ANY_FLOAT, max_size=40),
    st.lists(FEW_VALUES, max_size=40),
    st.lists(st.integers(-3, 3).map(float), max_size=120),
    st.builds(lambda value, n: [value] * n, ANY_FLOAT, st.integers(0, 60)),
)


def usable(values: list[float]) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    kept: NDArray[np.float64] = array[~np.isnan(array)]
    return kept


def assert_equals_scipy(
    result: TestResult, reference: NDArray[np.float64], window: NDArray[np.float64], method: Method
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy says so where it falls back
        theirs = ks_2samp(reference, window, method=SCIPY_NAMES[method])
    if np.isnan(theirs.pvalue):  # scipy has no asymptotic p for one value against one
        assert (reference.size, window.size, result.method) == (1, 1, "exact")
        assert result.p_value == 1.0
    else:
        assert result.p_value == pytest.approx(theirs.pvalue, rel=1e-10)
    assert result.statistic == theirs.statistic
    assert result.p_value is not None
    if result.p_value > 1e-280:
        assert result.log10_p_value == math.log10(result.p_value)


@settings(max_examples=400, deadline=None)
@given(SAMPLE, SAMPLE, st.sampled_from(METHODS))
@example([0.0], [1.0], "asymptotic")
@example([0.0] * 7, [0.0] * 6 + [1.0], "exact")  # scipy's exact count rounds above 1 here and falls back
@example([1.0] * 5, [1.0] * 5, "exact")
def test_samples_and_sketch_equal_scipy(reference: list[float], window: list[float], method: Method) -> None:
    result = ks_two_sample(reference, window, method=method)
    sketch = RankSketch.from_values(np.array(window, dtype=np.float64), reference)
    assert sketch.result(method) == result
    ours, theirs = usable(reference), usable(window)
    assert (result.n_reference, result.n_reference_null) == (ours.size, len(reference) - ours.size)
    assert (result.n_window, result.n_window_null) == (theirs.size, len(window) - theirs.size)
    assert result.n_infinite == np.isinf(theirs).sum()
    if not ours.size or not theirs.size:
        assert (result.status, result.statistic, result.p_value) == ("insufficient_data", None, None)
    else:
        assert_equals_scipy(result, ours, theirs, method)


@pytest.mark.parametrize(
    ("m", "n", "method"),
    [
        (1, 1_000_000, "asymptotic"),
        (200_000, 150_001, "asymptotic"),
        (1000, 100_000, "auto"),
        (10_000, 9_999, "auto"),
        (10_000, 10_000, "auto"),
        (10_001, 10, "auto"),
        (1000, 997, "exact"),
        (120_000, 1_000, "exact"),
        (100_003, 99_991, "exact"),  # lcm too large to count paths
        (1, 2, "asymptotic"),
        (2, 1, "exact"),
    ],
)
@pytest.mark.parametrize("digits", [1, 12], ids=["ties", "no-ties"])
def test_sizes(m: int, n: int, method: Method, digits: int) -> None:
    rng = np.random.default_rng(m + n)
    reference, window = np.round(rng.lognormal(size=m), digits), np.round(rng.lognormal(0.02, size=n), digits)
    result = ks_two_sample(reference, window, method=method)
    assert_equals_scipy(result, reference, window, method)
    assert RankSketch.from_values(window, reference).result(method) == result


def test_method_is_the_one_that_made_the_p_value() -> None:
    assert ks_p_value(0.01, 100_003, 99_991, method="exact")[2] == "asymptotic"
    assert ks_p_value(0.1, 10_000, 10, method="auto")[2] == "exact"
    assert ks_p_value(0.1, 10_001, 10, method="auto")[2] == "asymptotic"
    assert ks_p_value(1.0, 1, 1, method="asymptotic") == (1.0, 0.0, "exact")


@pytest.mark.parametrize("name", ["asymp", "", "Exact", None])
def test_unknown_method_is_refused_by_name(name: Any) -> None:
    message = f"method must be one of asymptotic, exact, auto, not {name!r}"
    with pytest.raises(ValueError, match=message):
        ks_two_sample([1.0], [2.0], method=name)
    with pytest.raises(ValueError, match=message):
        ks_two_sample([], [], method=name)
    with pytest.raises(ValueError, match=message):
        RankSketch.from_values([], []).result(name)
    with pytest.raises(ValueError, match=message):
        ks_p_value(0.5, 2, 2, method=name)


def test_counts_and_samples_agree() -> None:
    reference, window = np.array([3, 0, 2, 5]), np.array([1, 4, 0, 2])
    ours = ks_from_counts(reference, window, method="exact", n_window_null=7)
    theirs = ks_two_sample(np.repeat(np.arange(4), reference), np.repeat(np.arange(4), window), method="exact")
    assert (ours.statistic, ours.p_value, ours.n_window_null) == (theirs.statistic, theirs.p_value, 7)


def share_of_paths_outside(m: int, n: int, steps: int) -> Fraction:
    """The exact p-value by counting every lattice path, in whole numbers."""
    right, up = n // math.gcd(m, n), m // math.gcd(m, n)
    inside: dict[tuple[int, int], int] = {}
    for x in range(m + 1):
        for y in range(n + 1):
            before = inside.get((x - 1, y), 0) + inside.get((x, y - 1), 0)
            inside[x, y] = (1 if x == y == 0 else before) if abs(x * right - y * up) < steps else 0
    return 1 - Fraction(inside[m, n], math.comb(m + n, n))


def test_exact_p_counts_every_path() -> None:
    checked = 0
    for m in range(1, 10):
        for n in range(1, 10):
            right, up = n // math.gcd(m, n), m // math.gcd(m, n)
            possible = {abs(x * right - y * up) for x in range(m + 1) for y in range(n + 1)} - {0}
            for steps in possible:
                found = exact_p_value(steps, m, n)
                if found is None:  # equal sizes at D = 1 / n: scipy's 1.0000000000000002
                    assert (m, steps) == (n, 1)
                    assert share_of_paths_outside(m, n, steps) == 1
                    continue
                assert found[0] == pytest.approx(float(share_of_paths_outside(m, n, steps)), rel=1e-13)
                checked += 1
    assert checked > 1000


def test_a_statistic_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="no samples of 3 and 5 values have D = 14 / lcm"):
        exact_p_value(14, 3, 5)
