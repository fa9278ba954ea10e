"""Transform mismatch: which maps are found and named, which drifts are not claimed, and what can't be told."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import gamma, ks_2samp

from tests.judges import FRAME, one
from udfs.judging.transform_mismatch import MismatchPolicy, TransformMismatch
from udfs.sketches.affine_fit import forgiving_distance
from udfs.sketches.log import LogSketch


def even(n: int) -> NDArray[np.float64]:
    return (np.arange(n) + 0.5) / n


LATENCY = np.exp(0.8 * ndtri(even(1000)) - 1.0)
SKEWED = gamma.ppf(even(1000), 3.0)
RNG = np.random.default_rng(11)


def found(reference: Any, values: Any, **policy: Any) -> dict[str, Any]:
    return one(TransformMismatch(FRAME, "f", np.sort(np.asarray(reference, float)), MismatchPolicy(**policy)), values)


def named(verdict: dict[str, Any]) -> tuple[bool, str]:
    return verdict["drifted"], verdict["evidence"]["looks_like"]


def drawn(reference: NDArray[np.float64], n: int = 800) -> NDArray[np.float64]:
    return np.interp(RNG.random(n), even(reference.size), reference)


@pytest.mark.parametrize("factor", [1000.0, 0.001, 60.0, 1 / 100])
def test_another_unit_is_named(factor: float) -> None:
    verdict = found(LATENCY, factor * drawn(LATENCY))
    assert named(verdict) == (True, "unit")
    assert verdict["evidence"]["factor_of"] == factor
    assert verdict["evidence"]["factor"] == pytest.approx(factor, rel=0.1)
    assert verdict["evidence"]["residual"] < 0.05


def test_min_max_and_standardised_are_named() -> None:
    values = drawn(SKEWED)
    low, high = SKEWED[0], SKEWED[-1]
    assert named(found(SKEWED, (values - low) / (high - low))) == (True, "min_max")
    assert named(found(SKEWED, (values - SKEWED.mean()) / SKEWED.std())) == (True, "standardised")


def test_serving_what_training_had_scaled_is_named() -> None:
    values = 30.0 * drawn(SKEWED) + 100.0
    low, high = SKEWED[0], SKEWED[-1]
    assert named(found((SKEWED - low) / (high - low), values)) == (True, "not_min_max")
    assert named(found((SKEWED - SKEWED.mean()) / SKEWED.std(), values)) == (True, "not_standardised")


def test_the_published_case_in_kind() -> None:
    """KS = 0.182, p = 0.0007 (spec D1): scaled to 0..1 by other ends in serving than in training."""
    training = (SKEWED - SKEWED[0]) / (SKEWED[-1] - SKEWED[0])
    values = 0.82 * np.quantile(training, even(136)) + 0.0745
    published = ks_2samp(training, values, method="asymp")
    assert published.statistic == pytest.approx(0.182, abs=0.005)
    assert published.pvalue == pytest.approx(0.0007, abs=0.0003)
    verdict = found(training, values)
    assert named(verdict) == (True, "affine")
    assert verdict["evidence"]["factor"] == pytest.approx(0.82, abs=0.03)
    assert verdict["evidence"]["offset"] == pytest.approx(0.0745, abs=0.01)
    assert verdict["statistic"] == pytest.approx(0.182, abs=0.04)


def test_shift_and_scale_are_reported_and_not_claimed() -> None:
    shifted = found(LATENCY, drawn(LATENCY) + 0.5)
    scaled = found(LATENCY, 1.4 * drawn(LATENCY))
    assert (named(shifted), named(scaled)) == ((False, "shift"), (False, "scale"))
    assert shifted["effect"] > 0.5
    assert named(found(LATENCY, 1.4 * drawn(LATENCY), claimed=("scale",))) == (True, "scale")


def test_another_shape_is_no_map() -> None:
    two_humps = np.concatenate([LATENCY[:400] * 0.2, LATENCY[400:] * 8.0])
    verdict = found(LATENCY, two_humps)
    assert verdict["p_value"] < 1e-6
    assert verdict["drifted"] is False


def test_a_quiet_window_is_none() -> None:
    verdict = found(LATENCY, drawn(LATENCY))
    assert named(verdict) == (False, "none")


def test_negative_and_discrete_values() -> None:
    atoms = np.repeat([-2.0, -1.0, 0.0, 1.0, 3.0], [50, 150, 400, 300, 100])
    verdict = found(atoms, 10.0 * atoms - 5.0)
    assert named(verdict) == (True, "affine")
    assert verdict["evidence"]["residual"] < 0.02
    assert verdict["evidence"]["factor"] == pytest.approx(10.0, rel=0.02)


@pytest.mark.parametrize(
    ("reference", "values", "reason"),
    [
        ([3.0] * 200, LATENCY, "the reference is constant"),
        (LATENCY, [3.0] * 200, "the window is constant"),
        (LATENCY, [1e6 + x for x in LATENCY], "constant"),
        (LATENCY, [20.0 + x for x in LATENCY], "closer together"),
        (LATENCY, [math.inf] * 100 + [1.0] * 100, "infinite"),
    ],
)
def test_what_cannot_be_told_is_inconclusive_with_its_reason(reference: Any, values: Any, reason: str) -> None:
    verdict = found(reference, values)
    assert (verdict["status"], verdict["drifted"], verdict["statistic"]) == ("inconclusive", None, None)
    assert reason in verdict["evidence"]["reason"]


def test_too_few_values() -> None:
    assert found(LATENCY, LATENCY[:99])["status"] == "insufficient_data"


@pytest.mark.parametrize("seed", range(8))
def test_the_forgiving_distance_is_below_d_and_near_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, values = np.sort(rng.normal(size=300)), rng.normal(0.4, 1.3, size=250)
    d = ks_2samp(points, values).statistic
    assert d - 0.05 <= forgiving_distance(points, LogSketch.from_values(values)) <= d + 1e-12
