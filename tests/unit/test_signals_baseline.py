"""Quality baseline (spec D9): a series against its own P50."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from schemas.verdicts import Verdict
from tests.signal_verdicts import HOUR_MS, window
from udfs.judging.fixed_limit import FixedLimit, Limit
from udfs.judging.frame import Frame
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


# From values to the drop: two templates, of which one becomes worse.


def test_the_p50_of_a_template_falls_below_its_own_baseline() -> None:
    hour = Frame("chat", "", ("prompt_template",), HOUR_MS, HOUR_MS, "sha256:c", None, "sha256:m")
    judge = FixedLimit(hour, "factuality", "quantile", Limit(0.3, "below"), min_samples=30)
    rng = np.random.default_rng(2)
    verdicts = []
    for at in range(20):
        for template, usual in (("short", 0.9), ("long", 0.6)):
            level = usual * (0.8 if template == "long" and at >= 12 else 1.0)
            values = np.clip(rng.normal(level, 0.05, 200), 0, 1)
            verdicts += judge.judge([template], at * HOUR_MS, [judge.sketch(values[:90]), judge.sketch(values[90:])])
    assert not any(verdict.drifted for verdict in verdicts)
    said = followed(verdicts)
    worse = [(v.window_end_ms // HOUR_MS, v.series["prompt_template"]) for v in said if v.drifted]
    assert worse == [(at, "long") for at in range(12, 20)]
    assert said[-1].statistic == pytest.approx(0.2, abs=0.03)
