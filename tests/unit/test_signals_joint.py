"""Joint confidence (spec D5): levels, weights and their adaptation, by hand."""

import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import orjson
import pytest

from schemas.verdicts import Verdict
from tests.signal_verdicts import EPOCH_MS, window
from udfs.signals.follow import History
from udfs.signals.joint_confidence import JointConfidence, JointPolicy, decode
from udfs.signals.signal_level import level, limit_ratio
from udfs.signals.versioned_state import UnknownStateVersionError

MINUTE_MS = 60_000
POLICY = JointPolicy(("tokens",), "e", "helpful", false_alarms_per_window=0.0)


def drift(at: int, log10_p: float | None, feature: str = "tokens", **changes: Any) -> Verdict:
    statistic = None if log10_p is None else 0.1
    found = window("ks_two_sample", feature, at * MINUTE_MS, statistic, window_ms=MINUTE_MS)
    p_value = None if log10_p is None else 10.0**log10_p
    return replace(
        found, log10_p_value=log10_p, p_value=p_value, effect=statistic, **{"alpha": 0.01, "min_effect": 0.0} | changes
    )


def decay(at: int, drop: float | None, **evidence: Any) -> Verdict:
    """The reference's mean cosine is 0.9, the limit a drop of 0.1."""
    mean = None if drop is None else 0.9 - drop
    found = window("embedding_decay", "embedding_decay(e)", at * MINUTE_MS, mean, window_ms=MINUTE_MS)
    return replace(found, effect=drop, threshold=0.8, evidence={"reference_mean_cosine": 0.9} | evidence)


def feedback(at: int, drop: float | None, **evidence: Any) -> Verdict:
    """The baseline is 0.8, the limit a drop of 0.2."""
    mean = None if drop is None else 0.8 - drop
    found = window(
        "feedback", "feedback(helpful)", at * MINUTE_MS, mean, window_ms=60 * MINUTE_MS, reference_digest=None
    )
    return replace(found, effect=drop, threshold=0.6, evidence={"baseline": 0.8} | evidence)


def followed(verdicts: list[Verdict], policy: JointPolicy = POLICY) -> list[Verdict]:
    return History([JointConfidence("chat", policy)]).take(verdicts)


def weights(verdict: Verdict) -> list[float]:
    signals = verdict.evidence["signals"]
    return [signals[name]["weight"] for name in ("distribution", "embedding", "feedback")]


# Levels.


def test_a_p_value_is_taken_by_its_logarithm() -> None:
    assert limit_ratio(drift(0, -2.0)) == 1.0
    assert limit_ratio(drift(0, -400.0)) == 200.0
    assert limit_ratio(drift(0, 0.0)) == 0.0
    # The effect has its own limit: the smaller of both.
    assert limit_ratio(drift(0, -4.0, min_effect=0.2)) == 0.5
    assert limit_ratio(drift(0, -1.0, min_effect=0.05)) == 0.5


def test_a_quiet_p_value_has_a_low_level() -> None:
    p = np.random.default_rng(1).uniform(size=20_000)
    ratios = np.array([limit_ratio(drift(0, math.log10(one))) for one in p[:5000]], dtype=float)
    assert ratios.mean() == pytest.approx(1 / math.log(100), rel=0.05)
    assert np.mean(ratios > 0.5) == pytest.approx(0.1, abs=0.02)


def test_a_threshold_and_a_fall() -> None:
    assert limit_ratio(replace(drift(0, -9.0), alpha=None, threshold=0.2)) == 0.5
    assert limit_ratio(decay(0, 0.05), usual="reference_mean_cosine") == pytest.approx(0.5)
    assert limit_ratio(decay(0, -0.05), usual="reference_mean_cosine") == 0.0
    assert [level(ratio, full_at=2.0) for ratio in (0.0, 1.0, 2.0, 9.0)] == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    "verdict",
    [drift(0, None), replace(drift(0, -2.0), log10_p_value=None), replace(drift(0, -2.0), alpha=None, threshold=0.0)],
)
def test_what_has_no_limit_has_no_ratio(verdict: Verdict) -> None:
    assert limit_ratio(verdict) is None
    assert limit_ratio(replace(decay(0, 0.1), evidence={}), usual="reference_mean_cosine") is None


# The vote.


def test_the_vote_by_hand() -> None:
    """Levels 1 (p of 1e-4 at 0.01), 0.25 (half of the drop) and 0.5; base weights add up to 1."""
    (verdict,) = followed([drift(1, -4.0), decay(1, 0.05), feedback(1, 0.2)])
    assert verdict.statistic == pytest.approx(0.40 * 1 + 0.35 * 0.25 + 0.25 * 0.5)
    assert weights(verdict) == pytest.approx([0.40, 0.35, 0.25])
    assert (verdict.feature, verdict.kind, verdict.threshold, verdict.drifted) == (
        "joint_confidence",
        "signal",
        0.5,
        True,
    )
    assert verdict.window_end_ms == EPOCH_MS + MINUTE_MS
    assert verdict.reference_digest is None
    assert verdict.evidence["signals"]["embedding"]["limit_ratio"] == pytest.approx(0.5)


def test_a_missing_signal_leaves_its_weight_to_the_others() -> None:
    cases = [
        ([drift(1, -4.0), decay(1, 0.05)], [0.40 / 0.75, 0.35 / 0.75, 0.0]),
        ([drift(1, -4.0)], [1.0, 0.0, 0.0]),
        ([decay(1, 0.05), feedback(1, 0.2)], [0.0, 0.35 / 0.60, 0.25 / 0.60]),
        ([drift(1, None), decay(1, 0.05), feedback(1, 0.2)], [0.0, 0.35 / 0.60, 0.25 / 0.60]),
    ]
    for verdicts, expected in cases:
        first = followed([*verdicts, drift(2, 0.0)])[0]
        assert weights(first) == pytest.approx(expected)
        assert first.statistic is not None
    assert first.evidence["signals"]["distribution"]["statuses"] == ["insufficient_data"]


def test_no_signal_is_no_pass() -> None:
    (verdict,) = followed([drift(1, None), decay(1, None), feedback(1, None)])
    assert (verdict.status, verdict.statistic, verdict.drifted) == ("insufficient_data", None, None)
    assert weights(verdict) == [0.0, 0.0, 0.0]


def test_false_alarms_weigh_the_first_signal_down() -> None:
    """k / (k + f) with k = 0.1: f = 0.1 halves it."""
    policy = replace(POLICY, false_alarms_per_window=0.1)
    (verdict,) = followed([drift(1, -4.0), decay(1, 0.05), feedback(1, 0.2)], policy)
    assert weights(verdict) == pytest.approx([0.20 / 0.80, 0.35 / 0.80, 0.25 / 0.80])
    # What the verdicts say themselves goes before the policy, summed over features.
    two = replace(policy, distribution_features=("tokens", "more"))
    said = replace(drift(1, -4.0), evidence={"false_alarms_per_window": 0.2})
    more = replace(drift(1, -1.0, "more"), evidence={"false_alarms_per_window": 0.1})
    (verdict,) = followed([said, more, decay(1, 0.05), feedback(1, 0.2)], two)
    signal = verdict.evidence["signals"]["distribution"]
    assert (signal["factor"], signal["false_alarms_per_window"]) == (pytest.approx(0.25), pytest.approx(0.3))
    assert (signal["feature"], signal["level"]) == ("tokens", 1.0)


def test_what_people_called_false_goes_before_what_was_promised() -> None:
    said = replace(drift(1, -4.0), evidence={"false_alarms_per_window": 0.001})
    policy = replace(POLICY, labelled_false_alarms_per_window=0.1)
    (verdict,) = followed([said, decay(1, 0.05), feedback(1, 0.2)], policy)
    assert weights(verdict) == pytest.approx([0.20 / 0.80, 0.35 / 0.80, 0.25 / 0.80])
    signal = verdict.evidence["signals"]["distribution"]
    assert (signal["factor"], signal["false_alarms_per_window"]) == (pytest.approx(0.5), 0.1)
    quiet = replace(POLICY, labelled_false_alarms_per_window=0.0)
    (none,) = followed([said, decay(1, 0.05), feedback(1, 0.2)], quiet)
    assert none.evidence["signals"]["distribution"]["factor"] == 1.0
    with pytest.raises(ValueError, match="0 or more"):
        replace(POLICY, labelled_false_alarms_per_window=-0.1)


def test_embeddings_weigh_more_the_more_often_they_come() -> None:
    factors = []
    for updates in (0.0, 1.0, 24.0, 2880.0):
        (verdict,) = followed([drift(1, -4.0), decay(1, 0.05, updates_per_day=updates), feedback(1, 0.2)])
        factors.append(verdict.evidence["signals"]["embedding"]["factor"])
    assert factors == pytest.approx([0.0, 2 / 25, 1.0, 5760 / 2904])


def test_feedback_weighs_less_the_later_it_comes() -> None:
    factors = []
    for delay in (0.0, 86_400.0, 7 * 86_400.0):
        (verdict,) = followed([drift(1, -4.0), decay(1, 0.05), feedback(1, 0.2, mean_delay_seconds=delay)])
        factors.append(verdict.evidence["signals"]["feedback"]["factor"])
        assert sum(weights(verdict)) == pytest.approx(1)
    assert factors == pytest.approx([1.0, 0.5, 1 / 8])


def test_weights_that_are_all_gone_are_no_vote() -> None:
    (first, *_) = followed([decay(1, 0.5, updates_per_day=0.0), decay(2, 0.5)])
    assert (first.status, first.drifted) == ("insufficient_data", None)


# Windows.


def test_the_order_within_a_window_changes_nothing() -> None:
    of_window = [drift(1, -4.0), decay(1, 0.05), feedback(1, 0.2)]
    said = {followed(list(order))[0].to_json() for order in permutations(of_window)}
    assert len(said) == 1
    two = [drift(1, -4.0), feedback(1, 0.2)]
    assert len({followed([*order, decay(2, 0.0)])[0].to_json() for order in permutations(two)}) == 1


def test_of_two_verdicts_on_one_window_one_stays_whatever_the_order() -> None:
    """As when a monitor was edited: both configurations judge the window in which it was."""
    both = [drift(1, -4.0), drift(1, -1.0, config_digest="sha256:c1")]
    said = [followed([*order, drift(2, 0.0)])[0].to_json() for order in (both, both[::-1])]
    assert said[0] == said[1]


def test_a_window_is_closed_by_a_later_one_and_said_once() -> None:
    verdicts = [drift(1, -4.0), decay(1, 0.05), drift(2, -4.0), decay(2, 0.05), drift(3, -1.0)]
    said = followed(verdicts)
    assert [(v.window_end_ms - EPOCH_MS) // MINUTE_MS for v in said] == [1, 2]
    assert followed([*verdicts, *verdicts]) == said
    assert followed([verdicts[0], *verdicts]) == said


def test_feedback_counts_for_its_hour() -> None:
    said = followed([feedback(0, 0.2), *(drift(at, -4.0) for at in range(1, 63))])
    present = [(v.window_end_ms - EPOCH_MS) // MINUTE_MS for v in said if weights(v)[2] > 0]
    assert present == list(range(61))
    assert said[30].evidence["signals"]["feedback"]["age_seconds"] == 1800.0


def test_series_vote_apart_and_others_are_not_asked() -> None:
    joint = JointConfidence("chat", POLICY)
    other = replace(drift(1, -4.0), series={"model": "m2"})
    assert joint.key(other) != joint.key(drift(1, -4.0)) == joint.key(decay(1, 0.1))
    for stranger in (replace(other, monitor="x"), replace(other, feature="more")):
        assert not joint.accepts(stranger)


@pytest.mark.parametrize("wrong", [{"distribution_features": ()}, {"feedback_weight": 0.0}, {"full_at": 0.0}])
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        JointPolicy(**{"distribution_features": ("tokens",)} | wrong)


def test_a_newer_state_is_refused() -> None:
    joint = JointConfidence("chat", POLICY)
    state, _ = joint.step(None, drift(1, -4.0))
    assert decode(state).open_end_ms == EPOCH_MS + MINUTE_MS
    with pytest.raises(UnknownStateVersionError):
        joint.step(orjson.dumps(orjson.loads(state) | {"version": 2}), drift(1, -4.0))
