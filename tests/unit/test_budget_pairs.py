"""The false-alarm budget of two live streams. The bench shows the realised rates."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.monitor_history.explained import explained
from jobs.monitors import Monitor, load_monitors
from tests.drift_files import monitor, write_files
from udfs.budget import pairs
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.pairs import PairQuestion, bin_edges, pair_budget, simulated_pairs
from udfs.judging.frame import Frame
from udfs.judging.slice_machine import EarlierHour
from udfs.judging.stream_pair import PairPolicy
from udfs.judging.two_streams import TwoStreams
from udfs.sketches.log import LogSketch, ks_interval

EDGES = bin_edges(np.sort(np.random.default_rng(2).lognormal(5, 0.8, 1000)))


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second instead of half a minute."""
    monkeypatch.setattr(pairs, "WINDOWS", 8000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def budget(**changed: Any) -> pairs.PairBudget:
    asked: dict[str, Any] = {"n": 400, "overlap": 5, "coefficient": 0.0, "rate": 0.01}
    return pair_budget(EDGES, **asked | changed)


def test_a_rarer_budget_smaller_windows_and_dependence_have_higher_thresholds() -> None:
    plain = budget().at(200, 200).level
    assert budget(rate=0.002).at(200, 200).level > plain
    assert budget().at(100, 100).level > plain
    assert budget(coefficient=0.6).at(200, 200).level > plain


def test_what_is_simulated_is_the_certain_end_of_the_interval_of_d() -> None:
    """The same values, cut at the log bins by the sketch and at their shares by the simulation."""
    rng, n = np.random.default_rng(4), 300
    low = [
        interval.low
        for _ in range(400)
        if (interval := ks_interval(*(LogSketch.from_values(rng.lognormal(5, 0.8, n)) for _ in range(2))))
    ]
    simulated = simulated_pairs(PairQuestion(EDGES, n, 1, 0.0), np.random.default_rng(5), 20, 100).ravel()
    for q in (0.5, 0.9):
        assert np.quantile(low, q) == pytest.approx(np.quantile(simulated, q), rel=0.06)


def test_unequal_streams_are_like_equal_ones_of_their_effective_size() -> None:
    assert budget().at(380, 20).level == pytest.approx(budget().at(38, 38).level)


def test_the_threshold_is_that_of_the_simulated_windows() -> None:
    found = budget().at(200, 200)
    statistics = simulated_pairs(PairQuestion(EDGES, 200, 5, 0.0), np.random.default_rng(1), 100, 240)
    assert OnsetCurve.of(statistics, quiet=5, step=1e-9).rate(found.level) == pytest.approx(0.01, rel=0.35)


def test_what_cannot_be_kept_is_said() -> None:
    assert budget().at(200, 200).kept
    assert "nothing is known of how successive values" in budget(coefficient=None).at(200, 200).reason
    assert "outside of what was simulated" in budget().at(5000, 5000).reason


def load(folder: Path, tests: list[dict[str, Any]], **fields: Any) -> Monitor:
    common = {"window_seconds": 300, "slide_seconds": 30, "false_alarms": "1 per 100 windows", "expected_samples": 400}
    (loaded,) = load_monitors(
        write_files(folder, [monitor(features=[], tests=tests, autocorrelation=0, **common | fields)])
    ).monitors
    return loaded


ARMS = {"test": "two_streams", "field": "input_tokens", "split_by": "arm", "baseline": "control", "min_effect": 0.0}


def test_arms_of_a_monitor_are_under_its_budget(tmp_path: Path) -> None:
    loaded = load(tmp_path, [ARMS | {"expected_labels": 2}])
    (judge,) = loaded.judges
    assert isinstance(judge, TwoStreams)
    assert loaded.budget_shares == 2
    rng = np.random.default_rng(6)
    values = rng.integers(1, 60, 1200).astype(np.float64)
    arms = np.resize(["control", "a", "b", "c", "d"], 1200).tolist()
    found = judge.judge(["s", "m"], 300_000, [judge.sketch(values, arms)])
    pooled, *named = found
    assert (len(named), pooled.feature) == (2, "two_stream_ks(input_tokens:*|control)")
    for verdict in named:
        assert verdict.evidence["false_alarm_budget"] == {"per_window": 0.005, "kept": True}
        assert verdict.evidence["false_alarms_per_window"] == 0.005
        assert verdict.alpha is not None
        assert verdict.threshold is not None
        assert verdict.p_value is not None
        assert verdict.statistic is not None
        assert (verdict.statistic > verdict.threshold) is (verdict.p_value < verdict.alpha) is verdict.drifted
    assert "beyond expected_labels" in pooled.evidence["false_alarm_budget"]["reason"]
    (told,) = explained(loaded, samples=400).judges
    assert told.features == ("two_stream_ks(input_tokens:LABEL|control)",)
    assert "promised: D > 0." in told.false_alarms
    assert "NOT" not in told.false_alarms


def test_a_shift_between_arms_still_drifts_under_a_budget() -> None:
    frame = Frame("chat", "x", (), 300_000, 60_000, "sha256:c", None, "sha256:m")
    judge = TwoStreams(frame, "x", "arm", PairPolicy(), baseline="a", budget=budget())
    rng = np.random.default_rng(7)
    values, arms = rng.lognormal(5, 0.5, 400), np.resize(["a", "b"], 400)
    values[arms == "b"] *= 1.5
    (verdict,) = judge.judge([], 300_000, [judge.sketch(values, arms.tolist())])
    assert verdict.drifted


def test_the_same_hour_is_under_the_budget_and_explained(tmp_path: Path) -> None:
    hours = {"window_seconds": 3600, "slide_seconds": 3600, "false_alarms": "1 per 30d"}
    loaded = load(tmp_path, [{"test": "same_hour", "field": "input_tokens"}], **hours)
    (machine,) = loaded.machines
    assert isinstance(machine, EarlierHour)
    assert machine.compare.budget is not None
    hour = LogSketch.from_values(np.random.default_rng(8).integers(1, 60, 400))
    verdict = machine.compare.compare(["s", "m"], 3_600_000, hour, hour)
    assert verdict.evidence["false_alarm_budget"]["per_window"] == pytest.approx(1 / 720)
    (told,) = explained(loaded, samples=400).judges
    assert told.features == ("ks_same_hour(input_tokens|168h)",)
    assert told.false_alarms.startswith("one in 30.0 days promised: D > 0.")
    assert math.isfinite(told.slice_bytes)


def test_windows_by_count_are_explained(tmp_path: Path) -> None:
    body = monitor(features=["input_tokens"], window_requests=200, window_seconds=None, slide_seconds=30)
    (loaded,) = load_monitors(write_files(tmp_path, [body])).monitors
    (told,) = explained(loaded, samples=1000).judges
    assert told.features == ("input_tokens",)
    assert told.slice_bytes == 8 * 200
