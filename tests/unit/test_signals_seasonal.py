"""Dynamic thresholds (spec A2): the band against numpy and scipy, season, trend, freezing, re-learning, hysteresis."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import median_abs_deviation, norm, theilslopes

from jobs.kafka_client import ConfigurationError
from jobs.monitor_signals import followers_of
from jobs.yaml_fields import Place
from schemas.verdicts import Verdict
from tests.signal_verdicts import EPOCH_MS, HOUR_MS, window
from udfs.signals.seasonal_band import BandPolicy, BandState, band_at, learnt
from udfs.signals.seasonal_state import decode
from udfs.signals.seasonal_threshold import SeasonalPolicy, SeasonalThreshold
from udfs.signals.versioned_state import UnknownStateVersionError

GOLDEN = Path(__file__).parents[1] / "golden" / "signals" / "dynamic_threshold_v1.hex"
MINUTE_MS = 60_000
FLAT = BandPolicy(period_seconds=None, residual_windows=40, min_windows=10)
DAILY = BandPolicy(period_seconds=86_400.0, slot_seconds=3600.0, periods=4, residual_windows=100, min_windows=20)


def follow(figures, policy: SeasonalPolicy, *, step_ms: int = MINUTE_MS, state: bytes | None = None, start: int = 1):
    """What the signal says of one figure a step; None is a window that was not judged, NaN a missing one."""
    follower, said = SeasonalThreshold("chat", "mean(x)", policy), []
    for number, figure in enumerate(figures, start):
        if figure is None or not math.isnan(figure):
            verdict = window("mean", "mean(x)", number * step_ms, figure, window_ms=step_ms)
            state, found = follower.step(state, verdict)
            said += found
    return said, state


def noisy(n: int, seed: int = 1, centre: float = 100.0, sd: float = 1.0) -> list[float]:
    return np.random.default_rng(seed).normal(centre, sd, n).tolist()


def test_without_a_season_the_band_is_numpys_median_and_scipys_mad():
    figures = noisy(70)
    said, _ = follow([*figures, 103.0], SeasonalPolicy(band=replace(FLAT, min_relative_spread=0.0)))
    last, kept = said[-1], np.array(figures[-40:])
    spread = median_abs_deviation(kept, scale="normal")
    assert last.evidence["expected"] == pytest.approx(np.median(kept), rel=1e-14)
    assert last.evidence["spread"] == pytest.approx(spread, rel=1e-12)
    assert last.threshold == pytest.approx(np.median(kept) + 4 * spread, rel=1e-12)
    assert last.evidence["z"] == pytest.approx((103.0 - np.median(kept)) / spread, rel=1e-12)
    assert (last.statistic, last.test, last.feature) == (103.0, "dynamic_threshold", "dynamic_threshold(mean(x))")


def test_quantile_spreads_differ_above_and_below():
    rng = np.random.default_rng(5)
    figures = rng.lognormal(0.0, 1.0, 40)
    state = BandState()
    policy = BandPolicy(period_seconds=None, residual_windows=40, min_windows=10, spread="quantile")
    for number, figure in enumerate(figures):
        state = learnt(state, EPOCH_MS + number * MINUTE_MS, float(figure), policy)
    band = band_at(state, EPOCH_MS + 40 * MINUTE_MS, policy)
    low, middle, high = np.quantile(figures, [0.1, 0.5, 0.9])
    assert band.upper_spread == pytest.approx((high - middle) / norm.ppf(0.9), rel=1e-12)
    assert band.lower_spread == pytest.approx((middle - low) / norm.ppf(0.9), rel=1e-12)


def test_without_a_season_the_trend_is_theil_and_sens_over_the_medians_of_slots():
    rng = np.random.default_rng(3)
    state, figures = BandState(), {}
    for minute in range(20 * 60 + 1):
        figure = 50 + 0.1 * minute + float(rng.normal())
        figures.setdefault(minute // 60, []).append(figure)
        state = learnt(state, EPOCH_MS + minute * MINUTE_MS, figure, FLAT)
    closed = sorted(figures)[:-1]
    medians = [np.median(figures[hour]) for hour in closed]
    assert state.slope == pytest.approx(theilslopes(medians, np.array(closed) * 3600.0).slope, rel=1e-12)
    ahead = band_at(state, EPOCH_MS + 1300 * MINUTE_MS, FLAT)  # two hours on: the level moves with the trend
    assert ahead.expected == pytest.approx(50 + 0.1 * 1300, abs=1.0)


def test_the_season_and_the_trend_are_those_of_the_same_hour_in_past_days():
    def figure(minute: int, noise: float = 0.0) -> float:
        return 100 + 30 * math.sin(2 * math.pi * minute / 1440) + minute / 1440 * 5 + noise

    rng, state, seen = np.random.default_rng(4), BandState(), {}
    for minute in range(0, 4 * 1440, 5):
        value = figure(minute, float(rng.normal()))
        seen.setdefault(minute // 60, []).append(value)
        state = learnt(state, EPOCH_MS + minute * MINUTE_MS, value, DAILY)
    seen.pop(max(seen))  # the hour that is still open
    medians = {hour: float(np.median(values)) for hour, values in seen.items()}
    pairs = [(medians[hour] - medians[hour - 24]) / 86_400 for hour in medians if hour - 24 in medians]
    assert state.slope == pytest.approx(np.median(pairs), rel=1e-9)
    assert state.slope * 86_400 == pytest.approx(5.0, abs=0.5)
    at = 4 * 1440 + 9 * 60 + 30  # the middle of an hour: no straight line between two
    past = [medians[hour] + state.slope * 86_400 * (4 - hour // 24) for hour in medians if hour % 24 == 9]
    band = band_at(state, EPOCH_MS + at * MINUTE_MS, DAILY)
    assert band.season == pytest.approx(np.median(past), rel=1e-12)
    assert band.expected == pytest.approx(figure(at), abs=2.0)


def test_a_daily_swing_is_no_breach_and_a_smaller_step_is():
    """The swing is +-30 and the step 15: a fixed limit above the swing would not see it, one below cries daily."""
    rng = np.random.default_rng(6)
    minutes = np.arange(0, 6 * 1440, 5)
    figures = 100 + 30 * np.sin(2 * np.pi * minutes / 1440) + rng.normal(0, 1, minutes.size)
    stepped = figures.copy()
    stepped[-100:] += 15
    policy = SeasonalPolicy(wrong_side="both", enter_spreads=5.0, band=DAILY)
    quiet, _ = follow(figures.tolist(), policy, step_ms=5 * MINUTE_MS)
    assert sum(bool(v.drifted) for v in quiet[-4 * 288 :]) <= 2
    found, _ = follow(stepped.tolist(), policy, step_ms=5 * MINUTE_MS)
    assert all(v.drifted for v in found[-100:])
    assert {v.status for v in quiet[:288]} == {"insufficient_data"}  # the first day


def test_hysteresis_enters_late_and_leaves_late():
    figures = [*noisy(60), 103.0, 108.0, 103.5, 103.5, 101.0, 103.5]
    policy = SeasonalPolicy(enter_spreads=5.0, leave_spreads=2.0, band=FLAT)
    said, _ = follow(figures, policy)
    assert [v.drifted for v in said[-6:]] == [False, True, True, True, False, False]
    entered, still = said[-5], said[-4]
    assert entered.threshold > still.threshold  # the edge that decided: to enter, then to leave
    assert entered.evidence["band"][1] == entered.threshold
    assert "still outside 2" in still.evidence["why"]
    assert all((v.statistic > v.threshold) == v.drifted for v in said if v.status == "ok")


def test_a_breach_teaches_nothing_until_it_has_lasted_and_then_the_new_level_is_learnt():
    policy = SeasonalPolicy(relearn_after_seconds=3600.0, band=FLAT)
    said, state = follow(noisy(60) + noisy(59, seed=2, centre=150.0), policy)
    breach = said[60:]
    assert all(v.drifted for v in breach)
    assert len({v.evidence["expected"] for v in breach}) == 1
    assert not any(v.evidence["relearnt"] for v in breach)
    after, _ = follow(noisy(30, seed=3, centre=150.0), policy, state=state, start=120)
    relearnt = [v.evidence["relearnt"] for v in after]
    assert relearnt.index(True) == 1  # the 61st minute of the breach
    assert sum(relearnt) == 1
    assert not any(v.drifted for v in after[1:])
    assert after[-1].evidence["expected"] == pytest.approx(150.0, abs=1.0)


def test_warm_up_gaps_nan_and_unjudged_windows_are_never_a_pass():
    policy = SeasonalPolicy(band=FLAT)
    figures = [*noisy(9), None, math.nan, *noisy(3, seed=2)]
    said, state = follow(figures, policy)
    assert [v.status for v in said] == ["insufficient_data"] * 11 + ["ok"] * 2
    assert all(v.statistic is None and v.threshold is None and v.drifted is None for v in said[:11])
    assert said[0].evidence["windows_to_learn"] == 10
    # A breach is neither ended nor prolonged by what was not judged.
    said, state = follow([200.0, None, 200.0], policy, state=state, start=20)
    assert [v.drifted for v in said] == [True, None, True]
    # After a day without a figure the level may be another.
    said, _ = follow([100.0], policy, state=state, start=20 + 1441 + 5)
    assert (said[0].status, said[0].evidence["windows_learnt"]) == ("insufficient_data", 0)


def test_on_the_log_scale_all_are_factors_and_zero_is_below_everything():
    figures = np.exp(np.random.default_rng(8).normal(3.0, 0.1, 40)).tolist()
    band = replace(FLAT, min_relative_spread=0.0)
    said, _ = follow([*figures, 0.0], SeasonalPolicy(scale="log", wrong_side="both", band=band))
    spread = median_abs_deviation(np.log(figures), scale="normal")
    last = said[-1]
    assert last.evidence["expected"] == pytest.approx(np.exp(np.median(np.log(figures))), rel=1e-12)
    assert last.threshold == pytest.approx(last.evidence["expected"] * np.exp(-4 * spread), rel=1e-12)
    assert (last.drifted, last.statistic) == (True, 0.0)
    assert all(math.isfinite(edge) for edge in last.evidence["band"])
    constant, _ = follow([5.0] * 20, SeasonalPolicy(scale="log", band=FLAT))
    assert constant[-1].threshold == pytest.approx(5.0 * math.exp(4 * 0.01), rel=1e-12)


def test_a_constant_figure_has_a_band_of_its_least_spread():
    said, _ = follow([5.0] * 20 + [5.1, 5.3], SeasonalPolicy(band=FLAT))
    assert [v.drifted for v in said[-3:]] == [False, False, True]  # 4 spreads of 1 % are 0.2
    said, _ = follow([0.0] * 20 + [1e-9], SeasonalPolicy(band=FLAT))
    assert said[-1].drifted
    assert math.isfinite(said[-1].evidence["z"])


def test_figures_at_the_end_of_float64_are_refused_and_nothing_becomes_infinite():
    said, _ = follow([*([1e299, -1e299] * 10), 1.7e308, 1e299], SeasonalPolicy(wrong_side="both", band=FLAT))
    assert said[-2].status == "invalid"
    assert all("NaN" not in v.to_json().decode() and "Infinity" not in v.to_json().decode() for v in said)
    for verdict in said:
        json.loads(verdict.to_json(), parse_constant=pytest.fail)


def test_traffic_is_followed_by_the_count_of_a_window_also_where_it_is_too_few_to_judge():
    policy = SeasonalPolicy(figure="n_window", wrong_side="below", band=FLAT)
    follower, state = SeasonalThreshold("chat", "mean(x)", policy), None
    for number, count in enumerate([*(int(n) for n in noisy(30)), 3], 1):
        figure = None if count < 10 else 1.0
        verdict = window("mean", "mean(x)", number * MINUTE_MS, figure, window_ms=MINUTE_MS, n_window=count)
        state, (said,) = follower.step(state, verdict)
    assert (said.feature, said.statistic, said.drifted) == ("dynamic_threshold(n_window(mean(x)))", 3.0, True)


def test_the_p90_gate_holds_back_what_the_last_day_had_already():
    hourly = [1.0, 1.1, 0.9, 1.05] * 6
    hourly[5:12:2] = [3.0] * 4  # a sixth of the hours: outside the band, and the P90 knows of them
    band = BandPolicy(period_seconds=None, residual_windows=24, min_windows=12)
    for gate, expected in ((False, True), (True, False)):
        said, _ = follow([*hourly, 2.9], SeasonalPolicy(p90_gate=gate, band=band), step_ms=HOUR_MS)
        assert said[-1].drifted is expected
    assert said[-1].evidence["gate"] == pytest.approx(np.quantile(hourly, 0.9))


def test_state_stays_bounded_and_reads_back():
    policy = SeasonalPolicy(band=BandPolicy())  # hours of a week, 3 weeks
    follower, state, rng = SeasonalThreshold("chat", "mean(x)", policy), None, np.random.default_rng(0)
    for number in range(5 * 168):
        figure = float(rng.normal(100, 1)) * (1 + 5 * (number % 100 > 90))
        verdict = window("mean", "mean(x)", number * HOUR_MS, figure, window_ms=HOUR_MS)
        state, _ = follower.step(state, verdict)
    assert len(state) < 20_000
    assert decode(state).band.slot_numbers.size <= 3 * 168


def test_version_1_is_still_written_as_committed_and_read():
    _, state = follow([*noisy(12), 500.0, None, 501.0], SeasonalPolicy(p90_gate=True, band=FLAT))
    assert state.hex() == GOLDEN.read_text().strip()
    with pytest.raises(UnknownStateVersionError):
        decode(b"\x02" + state[1:])


def _asked(**fields) -> Verdict:
    (found,) = followers_of(Place("m.yaml"), "chat", [{"signal": "dynamic_threshold", "feature": "mean(x)"} | fields])
    return found


def test_the_file_gives_the_policy_and_its_faults_are_named():
    assert _asked().policy == SeasonalPolicy()
    given = _asked(period_seconds=0, p90_gate=True, spread="quantile", enter_spreads=6, min_windows=5)
    assert given.policy.band == BandPolicy(period_seconds=None, spread="quantile", min_windows=5)
    assert (given.policy.p90_gate, given.policy.enter_spreads) == (True, 6.0)
    for wrong in (
        {"period_seconds": 3600},
        {"period_seconds": 5000},
        {"slot_seconds": 1},
        {"slot_seconds": 0},
        {"min_windows": 1},
        {"min_windows": 999},
        {"min_periods": 9},
        {"leave_spreads": 9},
        {"wrong_side": "left"},
        {"spread": "sd"},
        {"scale": "square"},
        {"p90_gate": "yes"},
        {"p90_gate": True, "wrong_side": "below"},
        {"relearn_after_seconds": 0},
        {"threshold": 5},
    ):
        with pytest.raises(ConfigurationError, match=r"signals\[0\]"):
            _asked(**wrong)
