"""The recorded faults of other libraries (tests/cases/statistics.json): each must come out right here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import kolmogorov
from scipy.stats import norm

from schemas.status import Status
from udfs.sketches.rank import RankSketch
from udfs.statistics.judgement import is_drifted
from udfs.statistics.kolmogorov import critical_constant
from udfs.statistics.ks import Method, ks_p_value, ks_two_sample
from udfs.statistics.result import TestResult

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "statistics.json").read_text("utf-8"))
}
IRIS_PETAL_WIDTHS = {  # Fisher 1936, in cm: how many of the 150 flowers have which
    **{0.1: 6, 0.2: 28, 0.3: 7, 0.4: 7, 0.5: 1, 0.6: 1, 1.0: 7, 1.1: 3, 1.2: 5, 1.3: 13, 1.4: 8},
    **{1.5: 12, 1.6: 4, 1.7: 2, 1.8: 12, 1.9: 5, 2.0: 6, 2.1: 6, 2.2: 3, 2.3: 8, 2.4: 3, 2.5: 3},
}
DESCRIBED: dict[str, Callable[[], NDArray[np.float64]]] = {
    "norm.ppf((i+.5)/3500), i<3500": lambda: norm.ppf((np.arange(3500) + 0.5) / 3500),
    "2*norm.ppf((j+.5)/4000), j<4000": lambda: 2 * norm.ppf((np.arange(4000) + 0.5) / 4000),
    "i/1e6, i<1000000": lambda: np.arange(1_000_000) / 1e6,
    "(i+5000)/1e6, i<1000000": lambda: (np.arange(1_000_000) + 5000) / 1e6,
    "0..999": lambda: np.arange(1000.0),
    "1000..1999": lambda: np.arange(1000.0, 2000.0),
    "sklearn iris data[:,3] (150)": lambda: np.repeat(list(IRIS_PETAL_WIDTHS), list(IRIS_PETAL_WIDTHS.values())),
}


def samples(case_id: str) -> tuple[Any, Any]:
    """The case's two samples; JSON has no NaN and no infinity, so they are text there."""
    given = CASES[case_id]["input"]
    return _sample(given["ref"]), _sample(given["cur"])


def _sample(described: Any) -> Any:
    if isinstance(described, str):
        return DESCRIBED[described]()
    return [float(value) if isinstance(value, str) else value for value in described]


def both_ways(case_id: str, method: Method) -> TestResult:
    """The case's result; the sketch, whole and read back from bytes, must give the same."""
    reference, window = samples(case_id)
    result = ks_two_sample(reference, window, method=method)
    sketch = RankSketch.from_values(window, reference)
    assert sketch.result(method) == result
    assert RankSketch.from_bytes(sketch.to_bytes()).result(method) == result
    return result


def test_every_copied_ks_case_is_tested() -> None:
    source = Path(__file__).read_text("utf-8")
    ours = [case_id for case_id in CASES if case_id.startswith("ks-")]
    assert [case_id for case_id in ours if f'"{case_id}"' not in source] == []


@pytest.mark.parametrize(
    ("case_id", "p_key"),
    [
        ("ks-nan", "p_exact"),
        ("ks-inf", "p_exact"),
        ("ks-ties-const", "p_exact"),
        ("ks-ties-binary", "p_exact_conservative"),
        ("ks-ties-p", "p_exact_conservative"),
        ("ks-exact-tail", "p_exact"),
        ("ks-small-ties", "p_exact_conservative"),
    ],
)
def test_statistic_and_exact_p(case_id: str, p_key: str) -> None:
    expected = CASES[case_id]["expected"]
    result = both_ways(case_id, "exact")
    assert result.statistic == pytest.approx(expected["D"], rel=1e-15, abs=1e-15)
    assert result.p_value == pytest.approx(expected[p_key], rel=1e-12)
    assert result.effect == result.statistic


def test_nan_is_dropped_and_counted() -> None:
    expected, result = CASES["ks-nan"]["expected"], both_ways("ks-nan", "exact")
    assert (result.n_window, result.n_window_null) == (expected["n_cur"], expected["n_null"])


def test_infinity_is_ordered_and_counted_beside() -> None:
    expected, result = CASES["ks-inf"]["expected"], both_ways("ks-inf", "exact")
    assert (result.n_window, result.n_infinite, result.n_window_null) == (expected["n_cur"], expected["n_inf"], 0)


def test_ties_are_symmetric() -> None:
    reference, window = samples("ks-ties-binary")
    assert ks_two_sample(window, reference).statistic == ks_two_sample(reference, window).statistic
    assert (
        RankSketch.from_values(reference, window).statistic() == RankSketch.from_values(window, reference).statistic()
    )


def test_asymptotic_tail() -> None:
    expected = CASES["ks-exact-tail"]["expected"]
    assert both_ways("ks-exact-tail", "asymptotic").p_value == pytest.approx(expected["p_asymp_kstwo"], rel=1e-12)


def test_large_windows_need_a_minimum_effect() -> None:
    expected, result = CASES["ks-huge-n"]["expected"], ks_two_sample(*samples("ks-huge-n"))
    assert result.statistic == pytest.approx(expected["D"], rel=1e-9)
    assert result.p_value == pytest.approx(expected["p_asymptotic_kstwo"], rel=expected["p_relative_tolerance"])
    assert is_drifted(result, alpha=0.05) is expected["significant"]
    assert is_drifted(result, alpha=0.05, min_effect=0.05) is expected["drift_with_min_effect"]


@pytest.mark.parametrize("method", ["asymptotic", "exact"])
def test_p_underflows_but_its_logarithm_does_not(method: Method) -> None:
    result = both_ways("ks-p-underflow", method)
    assert result.statistic == CASES["ks-p-underflow"]["expected"]["D"]
    assert result.p_value == CASES["ks-p-underflow"]["expected"]["p"]
    assert result.log10_p_value is not None
    assert np.isfinite(result.log10_p_value)


def test_log10_p_exact() -> None:
    expected = CASES["ks-p-underflow"]["expected"]["log10_p_exact"]
    assert both_ways("ks-p-underflow", "exact").log10_p_value == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("text", CASES["ks-crossover"]["input"]["list"])
def test_exact_and_asymptotic_p_of_a_statistic(text: str) -> None:
    n, m, statistic = (part.split("=")[1] for part in text.split(","))
    numerator, denominator = (int(part) for part in statistic.split("/"))
    expected = CASES["ks-crossover"]["expected"][text]
    p_exact, _, _ = ks_p_value(numerator / denominator, int(m), int(n), method="exact")
    p_asymptotic, _, _ = ks_p_value(numerator / denominator, int(m), int(n), method="asymptotic")
    assert p_exact == pytest.approx(expected["exact"], rel=1e-12)
    assert p_asymptotic == pytest.approx(expected["scipy_asymp_kstwo"], rel=1e-12)
    limit = float(kolmogorov(np.sqrt(int(m) / 2) * numerator / denominator))
    assert limit == pytest.approx(expected["kolmogorov_limit"], rel=1e-9)  # and ours is not that one


def test_all_null_window_has_a_status_and_no_figures() -> None:
    expected, result = CASES["ks-empty"]["expected"], both_ways("ks-empty", "asymptotic")
    assert result.status is Status.INSUFFICIENT_DATA
    assert result.status == expected["status"]
    assert (result.statistic, result.p_value, result.log10_p_value, result.effect) == (
        expected["D"],
        expected["p"],
        None,
        None,
    )
    assert is_drifted(result, alpha=0.01) is expected["drift"]
    assert result.window_null_rate == expected["null_rate"]


def test_values_never_added_are_not_taken_out() -> None:
    given, expected = CASES["remove-absent"]["input"], CASES["remove-absent"]["expected"]
    reference, window = zip(*given["insert"], strict=True)
    sketch = RankSketch.from_values(window, reference)
    with pytest.raises(ValueError, match="never added"):
        sketch.without(RankSketch.from_values(given["revert"][1:], sketch.reference))
    assert sketch.n == expected["n"]


def test_critical_constant_is_two_sided() -> None:
    given, expected = CASES["alpha-two-sided"]["input"], CASES["alpha-two-sided"]["expected"]
    assert critical_constant(given["alpha"]) == pytest.approx(expected["c"], abs=expected["tolerance"])
