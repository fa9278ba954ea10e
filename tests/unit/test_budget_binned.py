"""The false-alarm budget of tests over bins: what it simulates, keeps, and says. The bench shows the realised rates."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra.monitor_history.explained import explained
from jobs.monitors import Monitor, load_monitors
from jobs.yaml_fields import ConfigurationError
from tests.drift_files import monitor, write_files
from tests.unit.test_monitor_judges import bodies, verdicts
from udfs.budget import binned
from udfs.budget.binned import BinnedTest, binned_budget, simulated_levels
from udfs.budget.cache import AnswerCache
from udfs.references.bins import ReferenceBins

COUNTS = np.array([4000, 3000, 2000, 1000])


@pytest.fixture(autouse=True)
def few_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second instead of half a minute."""
    monkeypatch.setattr(binned, "WINDOWS", 6000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def euclidean(counts: "np.ndarray[Any, Any]") -> float:
    """How far shares are from the reference's."""
    return float(np.linalg.norm(counts / counts.sum() - COUNTS / COUNTS.sum()))


def budget(**changed: Any) -> binned.BinnedBudget:
    asked: dict[str, Any] = {"n": 500, "overlap": 5, "coefficient": 0.0, "rate": 0.01}
    test = BinnedTest("euclidean", euclidean, True, {"counts": COUNTS.tolist()})
    return binned_budget(test, ReferenceBins.of_counts(COUNTS), **asked | changed)


def test_the_same_question_has_the_same_answer_simulated_or_cached(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    first, again, afresh = budget(cache=cache), budget(cache=cache), budget()
    assert (first.origin, again.origin, afresh.origin) == ("simulated", "cached", "simulated")
    assert first.at(500) == again.at(500) == afresh.at(500)


def test_a_rarer_budget_a_smaller_window_and_dependence_have_higher_thresholds() -> None:
    plain = budget().at(500).level
    assert budget(rate=0.002).at(500).level > plain
    assert budget().at(300).level > plain
    assert budget(coefficient=0.6).at(500).level > plain


def test_the_threshold_is_that_of_the_simulated_windows() -> None:
    """Onsets counted by hand: a window above the level after as many quiet ones as overlap."""
    found = budget()
    question = binned.BinnedQuestion(
        BinnedTest("euclidean", euclidean, True, {}), ReferenceBins.of_counts(COUNTS), 500, 5, 0.0
    )
    onsets = windows = 0
    for stream in simulated_levels(question, np.random.default_rng(1), 100):
        quiet = 0
        for level in stream:
            is_above = level > found.at(500).level
            onsets += is_above and quiet >= 5
            quiet = 0 if is_above else quiet + 1
        windows += stream.size - 5
    assert onsets / windows == pytest.approx(0.01, rel=0.35)  # 230 onsets, and a threshold of 60


def test_what_cannot_be_kept_is_said() -> None:
    assert budget().at(500).kept
    assert "nothing is known of how successive values" in budget(coefficient=None).at(500).reason
    assert "outside of what was simulated" in budget().at(5000).reason
    assert "fewer than" in budget(n=5000).at(5000).reason


def load(folder: Path, **fields: Any) -> list[Monitor]:
    common = {"window_seconds": 300, "slide_seconds": 30, "false_alarms": "1 per 100 windows", "expected_samples": 200}
    return list(load_monitors(write_files(folder, [monitor(**common | fields)])).monitors)


def test_categories_and_distances_of_a_monitor_are_under_its_budget(tmp_path: Path) -> None:
    tests = [
        {"test": "psi", "field": "input_tokens"},
        {"test": "js_divergence", "field": "finish_reason", "threshold": 0.9},
    ]
    (loaded,) = load(tmp_path, features=["finish_reason"], tests=tests, autocorrelation=0)
    found = [verdicts(judge, bodies(200)) for judge in loaded.judges]
    category, psi, js = (body for of_judge in found for body in of_judge.values())
    assert loaded.budget_shares == 3
    assert 0 < category["alpha"] < 0.01
    assert 0 < psi["threshold"] < 1
    assert js["threshold"] == 0.9  # the least that it may be
    for body in (category, psi, js):
        assert body["evidence"]["false_alarm_budget"]["per_window"] == pytest.approx(0.01 / 3)
        assert body["evidence"]["false_alarms_per_window"] == pytest.approx(0.01 / 3)


def test_the_budget_holds_over_a_monitor_and_its_slices(tmp_path: Path) -> None:
    whole, of_slice = load(tmp_path, features=["finish_reason"], slices=["tenant"], expected_slice_values=4)
    assert whole.budget_shares == 1 * 1 * 2
    assert of_slice.budget_shares == 1 * 4 * 2
    assert of_slice.max_series == 4  # what comes beyond is pooled, so no more tests than the budget was divided among


def test_without_a_budget_a_distance_needs_a_threshold(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="threshold"):
        load(tmp_path, tests=[{"test": "psi", "field": "input_tokens"}], false_alarms=None)


def test_explain_tells_what_is_promised_and_what_is_not_under_the_budget(tmp_path: Path) -> None:
    limit = {"test": "limit", "field": "input_tokens", "figure": "mean", "change": 0.15}
    (loaded,) = load(tmp_path, features=["finish_reason"], tests=[limit], autocorrelation=0)
    promised, beside = (judge.false_alarms for judge in explained(loaded, samples=200).judges)
    assert "promised: p < " in promised
    assert "NOT under the false-alarm budget" in beside
    assert math.isfinite(float(promised.rpartition("p < ")[2].split(";")[0]))
