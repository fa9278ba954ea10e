"""Means, rates and quantiles against limits: the published limits, numpy's figures, and how sure each is."""

import math
from typing import Any

import numpy as np
import pytest

from tests.judges import LIVE_FRAME, one
from udfs.judging.fixed_limit import Figure, FixedLimit, Limit, reference_figure

RNG = np.random.default_rng(2)


def judge_of(figure: Figure, limit: Limit | None, **fields: Any) -> FixedLimit:
    return FixedLimit(LIVE_FRAME, "f", figure, limit, **({"min_samples": 10} | fields))


@pytest.mark.parametrize(("ones", "drifted"), [(849, True), (850, False), (1000, False)])
def test_prediction_consistency_alerts_below_its_limit_only(ones: int, drifted: bool) -> None:
    verdict = one(judge_of("rate", Limit(0.85, "below")), [1.0] * ones + [0.0] * (1000 - ones) + [None] * 9)
    assert (verdict["statistic"], verdict["drifted"], verdict["n_window_null"]) == (ones / 1000, drifted, 9)
    assert verdict["evidence"]["standard_error"] == pytest.approx(math.sqrt(ones / 1000 * (1 - ones / 1000) / 1000))
    assert (verdict["feature"], verdict["p_value"], verdict["threshold"]) == ("rate(f)", None, 0.85)
    assert verdict["reference_digest"] is None


def test_confidence_shift_alerts_above_its_mean() -> None:
    values = RNG.exponential(0.33, 500)
    verdict = one(judge_of("mean", Limit(0.32, "above")), values)
    assert verdict["statistic"] == pytest.approx(values.mean(), rel=1e-12)
    assert verdict["evidence"]["standard_error"] == pytest.approx(values.std(ddof=1) / math.sqrt(500), rel=1e-12)
    assert verdict["drifted"] is bool(values.mean() > 0.32)


def test_median_factuality_down_by_fifteen_per_cent() -> None:
    reference = RNG.beta(8, 2, 1000)
    median = reference_figure(reference, "quantile", 0.5)
    assert median == np.quantile(reference, 0.5, method="lower")
    judge = judge_of("quantile", Limit.changed_by(median, -0.15))
    quiet, worse = one(judge, RNG.beta(8, 2, 400)), one(judge, 0.8 * RNG.beta(8, 2, 400))
    assert (quiet["drifted"], worse["drifted"]) == (False, True)
    assert worse["effect"] == pytest.approx(-0.2, abs=0.05)
    assert (worse["feature"], worse["evidence"]["reference_value"]) == ("p50(f)", median)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.95, 0.999])
def test_quantiles_are_numpys_within_their_share_and_their_interval_holds_it(q: float) -> None:
    values = RNG.lognormal(3.0, 1.0, 2000)
    verdict = one(judge_of("quantile", Limit(1.0, "above"), q=q), values)
    exact = np.quantile(values, q, method="lower")
    assert verdict["statistic"] == pytest.approx(exact, rel=0.01)
    low, high = verdict["evidence"]["confidence_interval"]
    assert low <= verdict["statistic"] <= high


def test_a_confidence_interval_holds_the_true_median_nineteen_times_of_twenty() -> None:
    judge = judge_of("quantile", Limit(1.0, "above"), relative_accuracy=0.001)
    intervals = [
        one(judge, RNG.lognormal(0.0, 1.0, 300), n_slices=1)["evidence"]["confidence_interval"] for _ in range(200)
    ]
    held = np.mean([low * 0.999 <= 1.0 <= high * 1.001 for low, high in intervals])
    assert 0.90 <= held <= 0.99


@pytest.mark.parametrize(("q", "name"), [(0.5, "p50(f)"), (0.95, "p95(f)"), (0.999, "p99.9(f)")])
def test_a_quantile_is_named_by_its_per_cent(q: float, name: str) -> None:
    assert one(judge_of("quantile", Limit(1.0, "above"), q=q), [1.0] * 10)["feature"] == name


def test_an_infinite_quantile_is_invalid_and_a_mean_leaves_infinities_out() -> None:
    values = [1.0] * 10 + [math.inf] * 30
    quantile = one(judge_of("quantile", Limit(1.0, "above")), values)
    assert (quantile["status"], quantile["statistic"], quantile["drifted"]) == ("invalid", None, None)
    mean = one(judge_of("mean", Limit(1.5, "above")), values)
    assert (mean["statistic"], mean["n_window"], mean["n_infinite"], mean["drifted"]) == (1.0, 10, 30, False)


@pytest.mark.parametrize("figure", ["mean", "rate", "quantile"])
def test_too_few_values(figure: Figure) -> None:
    verdict = one(judge_of(figure, Limit(0.5, "above")), [1.0] * 9 + [None] * 30)
    assert (verdict["status"], verdict["drifted"], verdict["evidence"]) == ("insufficient_data", None, {})


def test_limits_that_are_none_are_refused() -> None:
    for value, change in ((0.0, -0.15), (1.0, 0.0), (math.nan, 0.1), (math.inf, 0.1)):
        with pytest.raises(ValueError, match="no limit"):
            Limit.changed_by(value, change)
    with pytest.raises(ValueError, match="finite"):
        Limit(math.inf, "above")
    with pytest.raises(ValueError, match="from 0 to 1"):
        judge_of("quantile", Limit(1.0, "above"), q=1.5)
    assert Limit.changed_by(-2.0, 0.1) == Limit(-1.8, "above", -2.0)


def test_a_references_own_figures() -> None:
    values = [0.0, 1.0, math.inf, None, 3.0]
    assert reference_figure(values, "mean") == pytest.approx(4 / 3)
    assert reference_figure(values, "rate") == pytest.approx(2 / 3)
    assert reference_figure(values, "quantile", 1.0) == math.inf
    with pytest.raises(ValueError, match="no finite value"):
        reference_figure([math.inf, None], "mean")


def test_without_a_limit_a_figure_is_measured_and_never_drifted() -> None:
    verdict = one(judge_of("mean", None), [1.0, 5.0] * 10)
    assert (verdict["status"], verdict["statistic"], verdict["drifted"], verdict["threshold"]) == (
        "ok",
        3.0,
        False,
        None,
    )
    assert verdict["evidence"]["measured_only"] is True
    few = one(judge_of("mean", None), [1.0])
    assert (few["status"], few["drifted"], few["threshold"]) == ("insufficient_data", None, None)
    assert one(judge_of("quantile", None), [math.inf] * 20)["status"] == "invalid"


def test_true_is_one_and_false_is_none() -> None:
    judge = judge_of("rate", Limit(0.2, "above"), is_boolean=True)
    verdict = one(judge, ["true"] * 3 + ["false"] * 7 + [None, "TRUE", "1", ""])
    assert (verdict["statistic"], verdict["drifted"], verdict["n_window"], verdict["n_window_null"]) == (
        0.3,
        True,
        10,
        4,
    )
    assert one(judge_of("mean", Limit(0.2, "above"), is_boolean=True), ["true", "false"] * 5)["statistic"] == 0.5
