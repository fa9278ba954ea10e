"""Quality baseline (spec D9): a series against its own P50."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from schemas.verdicts import Verdict
from tests.signal_verdicts import DAY_MS, HOUR_MS, window
from udfs.judging.frame import Frame
from udfs.judging.window_quantile import QuantilePolicy, WindowQuantile
from udfs.signals.baseline import BaselineDrop, BaselinePolicy, decode
from udfs.signals.follow import History
from udfs.signals.versioned_state import UnknownStateVersionError

POLICY = BaselinePolicy(learn_windows=5)


def hourly(values: Any, first: int = 0, **changes: Any) -> list[Verdict]:
    return [
        window("quantile", "p50(factuality)", at * HOUR_MS, p50, window_ms=HOUR_MS, **changes)
        for at, p50 in enumerate(values, first)
    ]


def followed(verdicts: list[Verdict], policy: BaselinePolicy = POLICY) -> list[Verdict]:
    return History([BaselineDrop("chat", "p50(factuality)", policy)]).take(verdicts)


def test_fifteen_percent_below_its_own_median_is_a_breach() -> None:
    """Median of the first five 0.80; limit 0.68."""
    said = followed(hourly([0.79, 0.82, 0.80, 0.10, 0.81, 0.69, 0.67]))
    assert [v.status for v in said] == ["insufficient_data"] * 5 + ["ok"] * 2
    assert [v.drifted for v in said[5:]] == [False, True]
    assert said[6].statistic == pytest.approx(1 - 0.67 / 0.80)
    assert (said[6].threshold, said[6].evidence["baseline"], said[6].evidence["window_statistic"]) == (0.15, 0.80, 0.67)
    assert (said[6].feature, said[6].kind) == ("baseline_drop(factuality)", "signal")
    assert (said[2].evidence["windows_learnt"], said[2].evidence["windows_to_learn"]) == (2, 5)


def test_a_given_reference_needs_no_learning() -> None:
    (verdict,) = followed(hourly([0.6]), replace(POLICY, reference=0.8))
    assert verdict.drifted is True
    assert verdict.statistic == pytest.approx(0.25)


@pytest.mark.parametrize("tau_seconds", [None, 86_400.0])
def test_a_step_is_never_absorbed(tau_seconds: float | None) -> None:
    said = followed(hourly([0.8] * 48 + [0.6] * 24 * 60 + [0.8]), replace(POLICY, adapt_tau_seconds=tau_seconds))
    assert all(v.drifted for v in said[48:-1])
    assert said[-1].drifted is False
    assert said[-1].evidence["baseline"] == pytest.approx(0.8)


def test_a_baseline_moves_only_where_asked_and_by_its_time() -> None:
    values = [0.8] * 5 + [0.84] * 24
    assert followed(hourly(values))[-1].evidence["baseline"] == 0.8
    adapted = followed(hourly([*values, 0.84]), replace(POLICY, adapt_tau_seconds=86_400.0))[-1]
    assert adapted.evidence["baseline"] == pytest.approx(0.84 - 0.04 * math.exp(-1))


def test_overlapping_windows_teach_once() -> None:
    sliding = [
        window("quantile", "p50(factuality)", at * 60_000, 0.8, window_ms=HOUR_MS, slide_seconds=60.0)
        for at in range(400)
    ]
    said = followed(sliding)
    assert [v.status for v in said].index("ok") == 4 * 60 + 1


def test_a_window_that_was_not_judged_teaches_nothing_and_is_no_pass() -> None:
    said = followed(hourly([0.8, None, 0.8, 0.8, None, 0.8, 0.8, None, 0.6]))
    assert [v.status for v in said[-3:]] == ["insufficient_data", "insufficient_data", "ok"]
    assert (said[7].statistic, said[7].drifted) == (None, None)
    assert said[8].drifted is True


@pytest.mark.parametrize("baseline", [0.0, -0.5])
def test_no_drop_is_relative_to_nothing(baseline: float) -> None:
    last = followed(hourly([baseline] * 6))[-1]
    assert (last.status, last.statistic, last.drifted) == ("invalid", None, None)


def test_repeats_say_nothing() -> None:
    hours = hourly(np.random.default_rng(1).uniform(0.5, 1, 30).tolist())
    assert followed([*hours, *hours[::-1], hours[3]]) == followed(hours)


def test_templates_learn_apart() -> None:
    good, poor = hourly([0.9] * 6), hourly([0.5] * 6, series={"model": "m2"})
    said = followed([v for pair in zip(good, poor, strict=True) for v in pair])
    assert [v.drifted for v in said[-2:]] == [False, False]


@pytest.mark.parametrize(
    "wrong", [{"learn_windows": 0}, {"max_drop": 0.0}, {"reference": 0.0}, {"adapt_tau_seconds": 0.0}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BaselinePolicy(**wrong)


def test_only_its_own_feature_is_accepted_and_a_newer_state_refused() -> None:
    drop = BaselineDrop("chat", "p50(factuality)", POLICY)
    (hour,) = hourly([0.8])
    assert drop.accepts(hour)
    assert not drop.accepts(replace(hour, feature="p95(factuality)"))
    state, _ = drop.step(None, hour)
    assert decode(state).learnt == (0.8,)
    with pytest.raises(UnknownStateVersionError):
        drop.step(orjson.dumps(orjson.loads(state) | {"version": 2}), hour)


# The windows that it follows.

FRAME = Frame("chat", "p50(factuality)", ("prompt_template",), DAY_MS, HOUR_MS, "sha256:c", None, "sha256:m")


def test_the_p50_is_numpys_within_one_percent() -> None:
    judge = WindowQuantile(FRAME, "factuality", QuantilePolicy(threshold=0.5))
    values = np.random.default_rng(2).beta(8, 2, 1000)
    (verdict,) = judge.judge(["t1"], 0, [judge.sketch(values[i::3]) for i in range(3)])
    assert verdict.statistic == pytest.approx(np.quantile(values, 0.5, method="lower"), rel=0.01)
    assert (verdict.drifted, verdict.series) == (False, {"prompt_template": "t1"})
    (low,) = judge.judge(["t1"], 0, [judge.sketch(values / 2)])
    assert low.drifted is True


@pytest.mark.parametrize(("values", "status"), [([], "insufficient_data"), ([math.inf] * 40, "invalid")])
def test_no_quantile_is_no_pass(values: list[float], status: str) -> None:
    judge = WindowQuantile(FRAME, "factuality", QuantilePolicy(threshold=0.5))
    (verdict,) = judge.judge(["t1"], 0, [judge.sketch(values)])
    assert (verdict.status, verdict.statistic, verdict.drifted) == (status, None, None)
