"""Cramer-von Mises and Wasserstein-1 against a reference: exact where they can be, and under a false-alarm budget."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import cramervonmises_2samp, wasserstein_distance

from infra.monitor_history.explained import explained
from jobs.kafka_client import ConfigurationError
from jobs.monitors import Monitor, load_monitors
from schemas.status import Status
from tests.drift_files import monitor, write_files
from udfs.budget import simulation
from udfs.budget.distances import distance_budget, unit_of
from udfs.budget.sources import Independent, Shaped
from udfs.budget.window_statistics import Layout, Norm, reference_of, simulated_statistics
from udfs.judging.frame import Frame
from udfs.judging.reference_distance import ReferenceDistance, Test
from udfs.references.feature import FeatureReference
from udfs.sketches.rank_excess import RankExcess
from udfs.sketches.reference import RankReference

NUMBERS = st.lists(st.integers(0, 12).map(float), min_size=1, max_size=30)
NORMS: tuple[Norm, ...] = ("cramer_von_mises", "wasserstein_1")


@pytest.fixture
def few_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second instead of half a minute."""
    monkeypatch.setattr(simulation, "DISTANCE_WINDOWS", 6000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def by_hand(reference: list[float], window: list[float]) -> float:
    """The root mean square gap, a reference value at a time."""
    ours, theirs = np.array(reference), np.array(window)
    at = [(theirs <= x).mean() - (ours <= x).mean() for x in reference]
    before = [(theirs < x).mean() - (ours < x).mean() for x in reference]
    return float(np.sqrt(np.mean([(a * a + b * b) / 2 for a, b in zip(at, before, strict=True)])))


@given(NUMBERS, NUMBERS)
def test_the_mean_square_gap_is_that_of_the_reference_values(reference: list[float], window: list[float]) -> None:
    sketch = RankExcess.from_values(window, RankReference.from_values(reference))
    assert sketch.cramer_von_mises() == pytest.approx(by_hand(reference, window), abs=1e-12)


def test_the_mean_square_gap_approaches_the_two_sample_statistic() -> None:
    """The pooled sum weighs by both samples, ours by the reference alone: alike where the distributions are."""
    rng = np.random.default_rng(1)
    reference, window = rng.random(2000), rng.random(2000) ** 1.1
    ours = RankExcess.from_values(window, RankReference.from_values(reference)).cramer_von_mises()
    theirs = cramervonmises_2samp(reference, window).statistic
    assert ours**2 * 1000 == pytest.approx(theirs, rel=0.05)


@given(NUMBERS, NUMBERS)
def test_wasserstein_is_scipys_where_every_value_is_a_reference_point_or_outside(
    reference: list[float], window: list[float]
) -> None:
    low, high = min(reference), max(reference)
    seen = [x for x in window if x in reference or not low < x < high] or [high + 1.0]
    sketch = RankExcess.from_values(seen, RankReference.from_values(reference))
    assert sketch.wasserstein_1() == pytest.approx(wasserstein_distance(reference, seen), abs=1e-9)


def test_wasserstein_of_values_between_points_is_off_by_less_than_the_gaps() -> None:
    rng = np.random.default_rng(2)
    reference, window = rng.lognormal(0, 1, 1000), rng.lognormal(0.2, 1, 500)
    ours = RankExcess.from_values(window, RankReference.from_values(reference)).wasserstein_1()
    assert ours == pytest.approx(wasserstein_distance(reference, window), rel=0.01)


@given(st.lists(NUMBERS, min_size=1, max_size=4), NUMBERS)
def test_slices_merge_to_the_pooled_window(slices: list[list[float]], reference: list[float]) -> None:
    prepared = RankReference.from_values(reference)
    parts = [RankExcess.from_values(part, prepared).to_bytes() for part in slices]
    pooled = RankExcess.from_values([x for part in slices for x in part], prepared)
    for merged in (RankExcess.merge_all(parts, prepared), RankExcess.merge_all(parts[::-1], prepared)):
        assert merged.rank == pooled.rank
        assert merged.excess == pytest.approx(pooled.excess)
    assert RankExcess.merge_all([pooled.to_bytes()], prepared) == pooled
    with pytest.raises(ValueError, match="EXC"):
        RankExcess.merge_all([pooled.to_bytes()[:-3]], prepared)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("is_tied", [False, True])
def test_what_is_simulated_is_what_is_judged(norm: Norm, is_tied: bool) -> None:
    """The windows of one simulated stream, sketched from the same values."""
    points = np.sort(np.random.default_rng(3).lognormal(0, 1, 50))
    source: Any = Shaped(np.repeat(points, 4), 200, points[0], points[-1]) if is_tied else Independent()
    layout, overlap = Layout(500, 100, (20,), 12, norm), 3
    found = simulated_statistics(source, layout, (overlap,), np.random.default_rng(4), 1)[overlap][0]
    rng = np.random.default_rng(4)
    true = source.of_one_stream(rng)
    reference = RankReference.from_values(reference_of(true, layout, rng))
    values = true.draw(rng, 20 * 12)
    for number, expected in enumerate(found):
        sketch = RankExcess.from_values(values[20 * number : 20 * (number + overlap)], reference)
        judged = sketch.cramer_von_mises() if norm == "cramer_von_mises" else sketch.wasserstein_1()
        assert judged == pytest.approx(expected, rel=1e-9)


def judge(test: Test, reference: list[float], **changed: Any) -> ReferenceDistance:
    frame = Frame("chat", f"{test}(x)", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
    prepared = RankReference.from_values(reference)
    return ReferenceDistance(frame, "x", test, prepared, **{"threshold": 0.1, "min_samples": 10} | changed)


@pytest.mark.parametrize("test", NORMS)
def test_small_empty_and_infinite_windows_are_no_pass(test: Test) -> None:
    looking = judge(test, [float(x) for x in range(100)])
    windows: list[tuple[list[Any], Status]] = [
        ([], Status.INSUFFICIENT_DATA),
        ([None] * 50, Status.INSUFFICIENT_DATA),
        ([1.0] * 9, Status.INSUFFICIENT_DATA),
        ([1.0] * 20 + [float("inf")], Status.INVALID if test == "wasserstein_1" else Status.OK),
    ]
    for values, status in windows:
        (verdict,) = looking.judge([], 60_000, [looking.sketch(values)])
        assert verdict.status == status.value
        assert (verdict.drifted is None) is (status is not Status.OK)


@pytest.mark.usefixtures("few_windows")
@pytest.mark.parametrize("norm", NORMS)
def test_a_rarer_budget_a_smaller_window_and_dependence_have_higher_thresholds(norm: Norm) -> None:
    reference = FeatureReference.from_values(np.random.default_rng(5).lognormal(5, 0.5, 4000), max_points=200)

    def level(**changed: Any) -> float:
        asked: dict[str, Any] = {"n": 300, "overlap": 3, "coefficient": 0.0, "rate": 0.01}
        return distance_budget(norm, reference, **asked | changed).at(300).level

    plain = level()
    assert plain < level(rate=0.002)
    assert plain < level(coefficient=0.6)
    found = distance_budget(norm, reference, n=300, overlap=3, coefficient=None, rate=0.01)
    assert found.at(150).level > found.at(300).level
    assert "nothing is known" in found.at(300).reason


def test_wasserstein_needs_a_finite_spread() -> None:
    for values in ([7.0] * 20, [1.0, float("inf")]):
        with pytest.raises(ValueError, match="spread"):
            unit_of("wasserstein_1", FeatureReference.from_values(values, max_points=100))


def load(folder: Path, **fields: Any) -> list[Monitor]:
    tests = [{"test": test, "field": "input_tokens"} for test in NORMS]
    common = {"window_seconds": 300, "slide_seconds": 60, "false_alarms": "1 per 100 windows", "expected_samples": 300}
    return list(load_monitors(write_files(folder, [monitor(features=[], tests=tests) | common | fields])).monitors)


@pytest.mark.usefixtures("few_windows")
def test_both_are_under_the_budget_of_a_monitor_and_explained(tmp_path: Path) -> None:
    (loaded,) = load(tmp_path, autocorrelation=0)
    assert loaded.budget_shares == 2
    rng = np.random.default_rng(6)
    quiet, moved = rng.integers(1, 60, 300).astype(float), rng.integers(11, 70, 300).astype(float)
    for looking in loaded.judges:
        (calm,) = looking.judge(["s", "m"], 300_000, [looking.sketch(quiet)])
        (drifted,) = looking.judge(["s", "m"], 300_000, [looking.sketch(moved)])
        assert (calm.drifted, drifted.drifted) == (False, True)
        promise = calm.evidence["false_alarm_budget"]
        assert promise["per_window"] == pytest.approx(0.005)
        assert "700 values, fewer than" in promise["reason"]
    for told, name in zip(explained(loaded, samples=300).judges, NORMS, strict=True):
        assert f"promised: {name} > " in told.false_alarms
        assert "NOT under" not in told.false_alarms


def test_without_a_budget_a_threshold_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="threshold"):
        load(tmp_path, false_alarms=None)
