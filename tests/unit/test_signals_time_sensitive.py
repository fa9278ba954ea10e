"""Time-sensitive score and P90 gate (spec D8): published figures, missing hours, the creep a static limit misses."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from schemas.verdicts import Verdict
from tests.signal_verdicts import EPOCH_MS, HOUR_MS, window
from udfs.judging.binned import BinnedCategories
from udfs.judging.frame import Frame
from udfs.judging.reference_divergence import DivergencePolicy, ReferenceDivergence
from udfs.signals.follow import History
from udfs.signals.p90_gate import DynamicThreshold, DynamicThresholdPolicy
from udfs.signals.time_sensitive import TimeSensitive, TimeSensitivePolicy, decode, time_sensitive_score
from udfs.signals.versioned_state import UnknownStateVersionError
from udfs.sketches.category import CategoryCounts
from udfs.statistics.divergence import kl_divergence

GATE = DynamicThresholdPolicy()
POLICY = TimeSensitivePolicy(alarm_threshold=0.02)


def updated(threshold: DynamicThreshold, first_hour: int, figures: Any) -> list[DynamicThreshold]:
    after = []
    for hour, figure in enumerate(figures, first_hour):
        threshold = threshold.after(hour, figure, GATE)
        after.append(threshold)
    return after


# The dynamic threshold.


def spread(p50: float, p90: float) -> list[float]:
    """24 figures of exactly this median and (numpy's) 90th percentile, which lie at ranks 11.5 and 20.7 from 0."""
    figures = np.interp(np.arange(24), [0, 11, 12, 20, 21, 23], [p50 / 2, p50, p50, p90, p90, p90 + 0.1])
    return [float(figure) for figure in np.random.default_rng(1).permutation(figures)]


def test_the_published_rise_is_followed_within_five_percent_an_hour() -> None:
    """P50/P90 of 0.21/0.38 at T - 24 h and 0.29/0.45 at T - 12 h."""
    day_before = updated(DynamicThreshold(), 0, spread(0.21, 0.38))[-1]
    assert day_before.threshold == pytest.approx(0.38)
    assert day_before.quantile(0.5) == pytest.approx(0.21)
    later = updated(day_before, 24, spread(0.29, 0.45))
    assert later[-1].threshold == pytest.approx(0.45)
    assert later[-1].quantile(0.5) == pytest.approx(0.29)
    moves = np.array([after.threshold for after in (day_before, *later)], dtype=float)
    assert (np.abs(np.diff(moves) / moves[:-1]) <= 0.05 + 1e-12).all()


def test_it_is_numpys_quantile_of_the_last_day_where_the_move_allows() -> None:
    figures = np.random.default_rng(2).uniform(0.30, 0.31, 100)
    for hour, after in enumerate(updated(DynamicThreshold(), 0, figures)):
        if hour >= 23:
            assert after.threshold == pytest.approx(np.quantile(figures[hour - 23 : hour + 1], 0.9), rel=1e-12)
        assert len(after.figures) <= 24


def test_a_step_moves_it_by_five_percent_an_hour_up_and_down() -> None:
    before = updated(DynamicThreshold(), 0, [1.0] * 24)[-1]
    up = updated(before, 24, [10.0] * 40)
    thresholds = [after.threshold for after in up]
    # Three figures of 24 above it move a P90: until then it stays.
    assert thresholds[:2] == [1.0, 1.0]
    assert thresholds[5] == pytest.approx(1.05**4)
    down = updated(up[-1], 64, [1.0] * 30)
    assert down[-1].threshold is not None
    assert down[-1].threshold < 10
    falls = [b.threshold / a.threshold for a, b in itertools.pairwise(down) if a.threshold and b.threshold]
    assert min(falls) == pytest.approx(0.95)


def test_a_threshold_at_zero_can_rise() -> None:
    zero = updated(DynamicThreshold(), 0, [0.0] * 24)[-1]
    assert zero.threshold == 0.0
    assert updated(zero, 24, [1.0] * 200)[-1].threshold == pytest.approx(1.0)


def test_few_figures_are_no_threshold_and_missing_hours_no_zeros() -> None:
    assert updated(DynamicThreshold(), 0, [0.3] * 11)[-1].threshold is None
    gappy = updated(DynamicThreshold(), 0, [0.3, None] * 12)[-1]
    assert (gappy.threshold, len(gappy.figures)) == (0.3, 12)
    # After a gap the old figures are gone; what was learnt stays until there are enough again.
    later = updated(gappy, 100, [0.9] * 11)[-1]
    assert later.threshold == 0.3
    with pytest.raises(ValueError, match="not after"):
        gappy.after(23, 0.1, GATE)


def test_a_gap_allows_as_many_steps_as_it_has_hours() -> None:
    policy = replace(GATE, min_hours=1)
    threshold = DynamicThreshold().after(0, 1.0, policy)
    assert threshold.after(3, 5.0, replace(policy, hours=2)).threshold == pytest.approx(1.05**3)


# The score.


def hourly(values: Any, first_hour: int = 0, **changes: Any) -> list[Verdict]:
    """Verdicts of hours with these KL; None was not judged, NaN left no verdict at all."""
    return [
        window("kl_divergence", "kl_divergence(r)", hour * HOUR_MS, kl, window_ms=HOUR_MS, **changes)
        for hour, kl in enumerate(values, first_hour)
        if kl is None or not math.isnan(kl)
    ]


def followed(verdicts: list[Verdict], policy: TimeSensitivePolicy = POLICY) -> list[Verdict]:
    return History([TimeSensitive("chat", "r", policy)]).take(verdicts)


def test_the_score_is_the_published_sum() -> None:
    values = np.random.default_rng(3).uniform(0, 0.05, 60)
    for hour, verdict in enumerate(followed(hourly(values))):
        newest_first = values[: hour + 1][::-1][:24]
        plain = float(np.sum(newest_first * 0.7 ** np.arange(newest_first.size)))
        if hour == 0:  # 0.3 of the weights
            assert (verdict.status, verdict.statistic, verdict.drifted) == ("insufficient_data", None, None)
            continue
        assert verdict.published_score == pytest.approx(plain, rel=1e-12)
        if hour >= 23:
            assert verdict.statistic == pytest.approx(plain, rel=1e-12)


def test_the_score_stops_at_one() -> None:
    last = followed(hourly([3.0] * 30))[-1]
    assert (last.statistic, last.published_score) == (1.0, 1.0)
    assert last.drifted is True


def test_missing_hours_are_not_zeros() -> None:
    steady = [0.005] * 24
    for missing in (float("nan"), None):
        gappy = [*steady, missing, missing, 0.005]
        last = followed(hourly(gappy))[-1]
        assert last.statistic == pytest.approx(0.005 / 0.3, rel=1e-3)
        assert last.evidence["coverage"] == pytest.approx(1 - 0.3 * (0.7 + 0.49), rel=1e-3)
        assert last.published_score is not None
        assert last.statistic is not None
        assert last.published_score < last.statistic


def test_an_unjudged_hour_is_no_score_and_no_pass() -> None:
    said = followed(hourly([0.005] * 24 + [None]))[-1]
    assert (said.status, said.statistic, said.drifted) == ("insufficient_data", None, None)


def test_after_a_long_silence_two_hours_are_needed() -> None:
    said = followed(hourly([0.01] * 30) + hourly([0.01, 0.01], first_hour=500))
    assert [verdict.status for verdict in said[-2:]] == ["insufficient_data", "ok"]


def test_a_lasting_step_is_not_absorbed_by_the_gate() -> None:
    """The P90 catches up within a day; the episode goes on until the score falls below the alarm threshold."""
    rng = np.random.default_rng(4)
    said = followed(hourly([*rng.uniform(0, 0.001, 48), *rng.uniform(0.019, 0.021, 24 * 7), *[0.0] * 24]))
    drifted = [verdict.drifted for verdict in said]
    onset = drifted.index(True)
    assert 48 <= onset <= 49
    assert said[onset + 100].evidence["gate"] > 0.06
    assert all(drifted[onset : 48 + 24 * 7])
    assert drifted[-1] is False


def test_an_unjudged_hour_ends_no_episode() -> None:
    """By then the gate has caught up, so what came after would begin no episode of its own."""
    steady = [0.02] * 60
    said = followed(hourly([*steady, None, *steady[:3]]))
    assert said[-1].evidence["gate"] >= said[-1].statistic
    assert [verdict.drifted for verdict in said[-4:]] == [None, True, True, True]


def test_the_gate_holds_back_what_the_day_before_had_too() -> None:
    """A busy time of day, every day alike: above the alarm threshold from 21 h on, above the P90 only from 22 h on.

    More the gate can't do: a tenth of the hours lie above a P90, however quiet they are.
    """
    days = [0.002] * 20 + [0.012] * 4
    said = followed(hourly(days * 6), TimeSensitivePolicy(alarm_threshold=0.02))
    started = [hour % 24 for hour, v in enumerate(said) if v.drifted and not v.evidence["in_episode"]]
    assert started == [21, 21, 22, 22, 22, 22]
    for verdict in said[48:]:
        gate = 0.0 if verdict.evidence["in_episode"] else verdict.evidence["gate"]
        assert verdict.threshold == max(0.02, gate)


def test_only_whole_hours_of_its_own_field_are_accepted() -> None:
    follower = TimeSensitive("chat", "r", POLICY)
    (hour,) = hourly([0.1])
    assert follower.accepts(hour)
    others: list[dict[str, Any]] = [
        {"monitor": "other"},
        {"test": "psi"},
        {"feature": "kl_divergence(q)"},
        {"window_start_ms": hour.window_start_ms + 1},
        {"window_start_ms": hour.window_start_ms + 60_000, "window_end_ms": hour.window_end_ms + 60_000},
    ]
    assert [follower.accepts(replace(hour, **other)) for other in others] == [False] * 5


def test_repeats_say_nothing_and_a_new_reference_starts_anew() -> None:
    hours = hourly([0.03] * 30)
    assert followed([*hours, *hours]) == followed(hours)
    other = hourly([0.03] * 2, first_hour=30, reference_digest="sha256:f1")
    said = followed([*hours, *other])
    assert [verdict.status for verdict in said[-2:]] == ["insufficient_data", "ok"]
    assert said[-1].evidence["gate"] is None
    assert followed([*hours, *other, *other, *hours]) == said


def test_the_state_is_bounded_and_a_newer_one_refused() -> None:
    follower, state = TimeSensitive("chat", "r", POLICY), None
    for verdict in hourly(np.random.default_rng(5).uniform(0, 1, 300)):
        state, _ = follower.step(state, verdict)
        assert len(state) < 2500
    assert state is not None
    assert len(decode(state).series) == 24
    with pytest.raises(UnknownStateVersionError, match="version 2"):
        follower.step(orjson.dumps(orjson.loads(state) | {"version": 2}), hourly([0.1], 999)[0])


@pytest.mark.parametrize("alarm_threshold", [0.0, 1.0, float("nan")])
def test_a_threshold_that_can_never_be_right_is_refused(alarm_threshold: float) -> None:
    with pytest.raises(ValueError, match="alarm_threshold"):
        TimeSensitivePolicy(alarm_threshold=alarm_threshold)


# The creep (spec D8): a share that goes from 45 % to 62 % over 7 days in hourly windows of 2,000 requests, and quiet
# weeks of the same service, whose share swings by 3 points over a day.

SHARES_BEFORE, SHARES_AFTER = np.array([0.45, 0.35, 0.20]), np.array([0.62, 0.29, 0.09])
PER_HOUR = 2000
NAIVE_LIMIT_NATS = 0.12
WEEK_HOURS = 7 * 24
ONE_ALARM_PER_HOURS = 30 * 24


def windows_of(rng: np.random.Generator, hours: int, *, creep_from: int | None = None) -> NDArray[np.int64]:
    """Counts of three categories, hour by hour: int64 of shape (hours, 3)."""
    at = np.arange(hours)
    done = np.zeros(hours) if creep_from is None else np.clip((at - creep_from) / WEEK_HOURS, 0, 1)
    shares = SHARES_BEFORE + done[:, np.newaxis] * (SHARES_AFTER - SHARES_BEFORE)
    swing = 0.03 * np.sin(2 * np.pi * at / 24)[:, np.newaxis] * np.array([1, -1, 0])
    return np.asarray(rng.multinomial(PER_HOUR, shares + swing))


REFERENCE_COUNTS = (SHARES_BEFORE * 20_000).astype(int)


def hourly_kl(counts: NDArray[np.int64]) -> list[float]:
    found = [kl_divergence(REFERENCE_COUNTS, hour) for hour in counts]
    return [kl for kl in found if kl is not None]


def scores_of(kl: list[float]) -> NDArray[np.float64]:
    series = list(enumerate(kl))
    policy = TimeSensitivePolicy(alarm_threshold=0.5)
    found = [time_sensitive_score(tuple(series[max(0, h - 23) : h + 1]), h, policy).score for h in range(24, len(kl))]
    return np.array(found, dtype=float)


def onsets(is_above: NDArray[np.bool_]) -> int:
    return int(is_above[0]) + int(np.sum(is_above[1:] & ~is_above[:-1]))


@pytest.fixture(scope="module")
def alarm_threshold() -> float:
    """The least score with at most one onset in 30 quiet days, from 300 of them; the gate takes no part in it."""
    scores = scores_of(hourly_kl(windows_of(np.random.default_rng(11), 300 * 24)))
    budget = scores.size / ONE_ALARM_PER_HOURS
    grid = np.quantile(scores, np.linspace(0.9, 1, 400))
    return float(next(threshold for threshold in grid if onsets(scores > threshold) <= budget))


def test_the_creep_is_missed_by_the_static_limit_and_found_by_ours(alarm_threshold: float) -> None:
    categories = np.array(["answer", "refusal", "tool"])
    reference = CategoryCounts.from_values(np.repeat(categories, REFERENCE_COUNTS))
    hour = Frame("chat", "kl_divergence(r)", (), HOUR_MS, HOUR_MS, "sha256:c", "sha256:r", "sha256:m")
    policy = DivergencePolicy("kl_divergence", NAIVE_LIMIT_NATS)
    judge = ReferenceDivergence(hour, "r", BinnedCategories(reference), policy)
    creep_from, after = 48, 24
    counts = windows_of(np.random.default_rng(12), creep_from + WEEK_HOURS + after, creep_from=creep_from)
    verdicts = []
    for at, row in enumerate(counts):
        sketch = judge.sketch(np.repeat(categories, row).astype(object))
        verdicts += judge.judge([], EPOCH_MS + at * HOUR_MS, [sketch])
    kl = [verdict.statistic for verdict in verdicts if verdict.statistic is not None]
    assert np.mean(kl[-24:]) - np.mean(kl[:24]) == pytest.approx(0.08, abs=0.01)
    assert max(kl) < NAIVE_LIMIT_NATS
    assert not any(verdict.drifted for verdict in verdicts)
    said = followed(verdicts, TimeSensitivePolicy(alarm_threshold=alarm_threshold))
    drifted = [verdict.drifted for verdict in said]
    assert not any(drifted[:creep_from])
    # Found within three of the seven days, when the share has moved by less than half, and held until the end.
    assert drifted.index(True) < creep_from + 3 * 24
    assert all(drifted[creep_from + 4 * 24 :])


def test_quiet_weeks_alarm_no_more_often_than_was_said(alarm_threshold: float) -> None:
    """40 other quiet weeks: at most one onset in 30 days, with room for three standard errors of a Poisson count."""
    rng = np.random.default_rng(13)
    hours = 40 * WEEK_HOURS
    said = followed(hourly(hourly_kl(windows_of(rng, hours))), TimeSensitivePolicy(alarm_threshold=alarm_threshold))
    drifted = np.array([verdict.drifted is True for verdict in said])
    expected = hours / ONE_ALARM_PER_HOURS
    assert onsets(drifted) <= expected + 3 * np.sqrt(expected)
    # The published gate alone, as an alarm, is above in about a tenth of them: onsets every other day.
    gated = np.array([v.statistic > v.evidence["gate"] for v in said if v.statistic and v.evidence["gate"]])
    assert 0.05 < gated.mean() < 0.2
    assert onsets(gated) > 20 * expected
