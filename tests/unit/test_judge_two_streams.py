"""Two live streams: arms and versions over one window, and one stream against itself a week ago."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from scipy.stats import ks_2samp

from tests.judges import LIVE_FRAME, judged
from udfs.judging.same_hour import HOUR_MS, WEEK_HOURS, SameHour
from udfs.judging.stream_pair import PairPolicy, compare_streams
from udfs.judging.two_streams import TwoStreams
from udfs.sketches.log import LogSketch

RNG = np.random.default_rng(6)
POLICY = PairPolicy(min_samples=50)


def compared(values: Any, arms: Any, **fields: Any) -> dict[str, dict[str, Any]]:
    judge = TwoStreams(LIVE_FRAME, "f", "arm", **({"policy": POLICY, "baseline": "a"} | fields))
    return {verdict["feature"]: verdict for verdict in judged(judge, list(values), list(arms))}


def two_arms(a: Any, b: Any) -> tuple[list[float], list[str]]:
    return [*a, *b], ["a"] * len(a) + ["b"] * len(b)


def test_the_exact_d_lies_in_the_interval_of_the_verdict() -> None:
    a, b = RNG.lognormal(0, 1, 900), RNG.lognormal(0.4, 1, 700)
    (verdict,) = compared(*two_arms(a, b)).values()
    exact = ks_2samp(a, b, method="asymp")
    low, high = verdict["evidence"]["ks_interval"]
    assert low <= exact.statistic <= high
    assert high - low < 0.05
    p_low, p_high = verdict["evidence"]["p_value_interval"]
    assert p_low <= exact.pvalue <= p_high
    assert (verdict["drifted"], verdict["statistic"], verdict["p_value"]) == (True, low, p_high)
    assert (verdict["feature"], verdict["n_reference"], verdict["n_window"]) == ("two_stream_ks(f:b|a)", 900, 700)
    assert verdict["reference_digest"] is None


def test_equal_arms_do_not_drift() -> None:
    a, b = RNG.lognormal(0, 1, 900), RNG.lognormal(0, 1, 700)
    (verdict,) = compared(*two_arms(a, b)).values()
    assert (verdict["status"], verdict["drifted"]) == ("ok", False)


def test_what_hides_inside_a_bin_is_inconclusive_and_no_pass() -> None:
    """All of b is 0.1 % above all of a: the exact D is 1, but one bin holds both."""
    (verdict,) = compared(*two_arms([100.0] * 200, [100.1] * 200)).values()
    assert (verdict["status"], verdict["drifted"], verdict["statistic"]) == ("inconclusive", None, None)
    assert verdict["evidence"]["ks_interval"] == [0.0, 1.0]


def test_every_label_is_compared_with_the_baseline() -> None:
    values = [1.0] * 200 + [5.0] * 100 + [1.0] * 100
    arms = ["a"] * 200 + ["c"] * 100 + ["b"] * 100
    verdicts = compared(values, arms)
    assert list(verdicts) == ["two_stream_ks(f:b|a)", "two_stream_ks(f:c|a)"]
    assert verdicts["two_stream_ks(f:c|a)"]["drifted"] is True
    assert verdicts["two_stream_ks(f:b|a)"]["status"] == "inconclusive"  # one bin: which side of a, it can't say


def test_without_a_named_baseline_the_most_frequent_is_it() -> None:
    assert list(compared([1.0] * 30, ["x"] * 20 + ["b"] * 10, baseline=None)) == ["two_stream_ks(f:b|x)"]
    assert list(compared([1.0] * 20, ["x", "b"] * 10, baseline=None)) == ["two_stream_ks(f:x|b)"]


def test_without_a_second_stream_or_a_baseline_there_is_nothing_to_say() -> None:
    assert compared([1.0] * 60, ["a"] * 60) == {}
    assert compared([1.0] * 60, ["b"] * 60) == {}
    assert compared([1.0] * 60, [None] * 60, baseline=None) == {}


def test_too_few_values_on_one_side() -> None:
    (verdict,) = compared(*two_arms([1.0] * 100, [9.0] * 49)).values()
    assert (verdict["status"], verdict["drifted"], verdict["n_window"]) == ("insufficient_data", None, 49)


def test_labels_are_bounded_and_the_baseline_is_always_kept() -> None:
    arms = ["a"] * 500 + [f"v{i}" for i in range(500)]
    verdicts = compared([1.0] * 500 + [9.0] * 500, arms, max_labels=3)
    assert len(verdicts) == 4
    rest = verdicts["two_stream_ks(f:*|a)"]
    assert (rest["n_window"], rest["drifted"]) == (497, True)


def hours(judge: SameHour, data: dict[int, Any]) -> tuple[bytes | None, list[dict[str, Any]]]:
    state, bodies = None, []
    for hour, values in data.items():
        sketch = LogSketch.from_values(values).to_bytes()
        state, verdicts = judge.step(state, ["m1"], hour * HOUR_MS, sketch)
        bodies += [orjson.loads(verdict.to_json()) for verdict in verdicts]
    return state, bodies


HOURLY = replace(LIVE_FRAME, window_ms=HOUR_MS, slide_ms=HOUR_MS)


def test_this_hour_is_compared_with_the_same_hour_last_week() -> None:
    """Nights are slow and noons fast all week: only the noon that changed is drift."""
    rng = np.random.default_rng(1)

    def values(hour: int) -> Any:
        level = 0.0 if hour % 24 < 12 else 1.0
        return rng.lognormal(level + (0.7 if hour == 180 else 0.0), 0.5, 300)

    _, verdicts = hours(SameHour(HOURLY, "f"), {hour: values(hour) for hour in range(1, 200)})
    assert len(verdicts) == 199 - WEEK_HOURS
    assert [verdict["window_end"] for verdict in verdicts if verdict["drifted"]] == ["1970-01-08T12:00:00.000Z"]
    assert verdicts[0]["feature"] == "ks_same_hour(f|168h)"
    assert verdicts[0]["evidence"]["reference_window_end_ms"] == HOUR_MS


def test_the_state_is_bounded_by_the_lag_and_missing_hours_are_no_verdict() -> None:
    judge = SameHour(HOURLY, "f", POLICY, lag_hours=3)
    state, verdicts = hours(judge, {hour: range(1, 200) for hour in range(1, 40)})
    longer, _ = hours(judge, {hour: range(1, 200) for hour in range(1, 80)})
    assert state is not None
    assert longer is not None
    assert len(state) == len(longer)
    assert len(verdicts) == 36
    _, sparse = hours(judge, {1: range(1, 200), 3: range(1, 200), 4: range(1, 200), 7: range(1, 200)})
    assert [verdict["window_end"][11:13] for verdict in sparse] == ["04", "07"]


def test_hours_come_once_and_in_order() -> None:
    judge = SameHour(HOURLY, "f")
    state, _ = judge.step(None, ["m1"], 5 * HOUR_MS, LogSketch.from_values([1.0]).to_bytes())
    for hour in (5, 4):
        with pytest.raises(ValueError, match="once, in order"):
            judge.step(state, ["m1"], hour * HOUR_MS, LogSketch.from_values([1.0]).to_bytes())
    with pytest.raises(ValueError, match="LAG"):
        judge.step(b"garbage!", ["m1"], 6 * HOUR_MS, LogSketch.from_values([1.0]).to_bytes())
    with pytest.raises(ValueError, match="one hour"):
        SameHour(LIVE_FRAME, "f")


def test_compared_streams_of_nulls_and_infinities() -> None:
    nothing = compare_streams(LogSketch.empty(), LogSketch.from_values([math.nan] * 5), POLICY)
    assert (nothing.drifted, nothing.result.n_window_null) == (None, 5)
    infinite = compare_streams(LogSketch.from_values([math.inf] * 60), LogSketch.from_values([1.0] * 60), POLICY)
    assert infinite.drifted is True
