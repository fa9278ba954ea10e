"""Late labels (spec D4): the record at the door, and the weighted mean over sliding windows of label time."""

import math
from dataclasses import replace
from importlib.resources import files
from itertools import permutations
from typing import Any

import numpy as np
import orjson
import pytest
from jsonschema import Draft202012Validator

from schemas.dead_letters import Reason
from schemas.feedback import Feedback, decode_feedback
from schemas.record_fields import UnreadableRecordError
from schemas.verdicts import Verdict, VerdictKind
from tests.signal_verdicts import DAY_MS, EPOCH_MS, HOUR_MS
from udfs.judging.frame import Frame
from udfs.signals.feedback import (
    STATE_VERSION,
    FeedbackPolicy,
    FeedbackScore,
    FeedbackState,
    decode,
    encode,
    weighted_summary,
)
from udfs.signals.versioned_state import UnknownStateVersionError

SCHEMA = Draft202012Validator(orjson.loads(files("schemas").joinpath("feedback.schema.json").read_bytes()))

BODY: dict[str, Any] = {
    "schema_version": 1,
    "feedback_id": "f1",
    "trace_id": "0af7651916cd43dd8448eb211c80319c",
    "score": "helpful",
    "value": 0.25,
    "confidence": 0.9,
    "label_time": "2026-01-31T14:00:00.000Z",
    "event_time": "2026-01-31T12:00:00.000Z",
    "source": "thumb",
    "series": {"model": "m1", "a": "b"},
}


# The record.


def test_a_label_comes_back_from_its_bytes() -> None:
    label = decode_feedback(orjson.dumps(BODY))
    assert decode_feedback(label.to_json()) == label
    assert (label.value, label.confidence, label.delay_seconds, label.key) == (0.25, 0.9, 7200.0, BODY["trace_id"])
    SCHEMA.validate(BODY)
    SCHEMA.validate(orjson.loads(label.to_json()))


def test_an_alert_is_judged_by_its_fingerprint_and_a_class_is_a_value() -> None:
    body = {k: v for k, v in BODY.items() if k not in ("trace_id", "value")} | {"fingerprint": "d3b9", "label": "bad"}
    SCHEMA.validate(body)
    label = decode_feedback(orjson.dumps(body))
    assert (label.value, label.key, label.trace_id) == (0.0, "d3b9", None)
    assert decode_feedback(label.to_json()) == label


def test_a_field_not_known_here_is_left_alone() -> None:
    body = BODY | {"comment": "from a newer sender"}
    SCHEMA.validate(body)
    assert decode_feedback(orjson.dumps(body)).feedback_id == "f1"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema_version": 2}, Reason.BAD_VALUE),
        ({"feedback_id": ""}, Reason.BAD_ID),
        ({"feedback_id": None}, Reason.BAD_ID),
        ({"trace_id": None}, Reason.BAD_ID),
        ({"trace_id": 7}, Reason.BAD_ID),
        ({"fingerprint": "d3b9"}, Reason.BAD_ID),
        ({"value": 1.01}, Reason.BAD_VALUE),
        ({"value": -0.1}, Reason.BAD_VALUE),
        ({"value": True}, Reason.BAD_VALUE),
        ({"value": "0.5"}, Reason.BAD_VALUE),
        ({"value": None}, Reason.BAD_VALUE),
        ({"label": "good"}, Reason.BAD_VALUE),
        ({"value": None, "label": "fine"}, Reason.BAD_VALUE),
        ({"value": None, "label": ["good"]}, Reason.BAD_VALUE),
        ({"confidence": 2}, Reason.BAD_VALUE),
        ({"confidence": None}, Reason.BAD_VALUE),
        ({"label_time": "2026-01-31T14:00:00"}, Reason.BAD_TIME),
        ({"label_time": 1_700_000_000}, Reason.BAD_TIME),
        ({"event_time": None}, Reason.BAD_TIME),
        ({"label_time": "2026-01-31T11:54:59Z"}, Reason.CLOCK_SKEW),
        ({"source": 3}, Reason.BAD_VALUE),
        ({"score": None}, Reason.BAD_VALUE),
        ({"series": ["m1"]}, Reason.BAD_VALUE),
        ({"series": {"model": 1}}, Reason.BAD_VALUE),
    ],
)
def test_a_bad_field_is_named_and_never_quoted(change: dict[str, Any], reason: Reason) -> None:
    with pytest.raises(UnreadableRecordError) as caught:
        decode_feedback(orjson.dumps(BODY | change))
    assert caught.value.reason is reason
    assert (
        next(iter(change)) in caught.value.detail or "trace_id" in caught.value.detail or "label" in caught.value.detail
    )
    for secret in ("m1", "0af7", "fine"):
        assert secret not in caught.value.detail


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, Reason.NO_VALUE),
        (b"", Reason.NO_VALUE),
        (b"{", Reason.MALFORMED_JSON),
        (b"\xff", Reason.MALFORMED_JSON),
        (b"[]", Reason.MALFORMED_JSON),
        (b'{"value": NaN}', Reason.MALFORMED_JSON),
        (orjson.dumps(BODY)[:-1] + b',"value":0.5}', Reason.MALFORMED_JSON),
        (b"[" * 100_000, Reason.MALFORMED_JSON),
    ],
)
def test_what_is_no_label_is_refused(payload: bytes | None, reason: Reason) -> None:
    with pytest.raises(UnreadableRecordError) as caught:
        decode_feedback(payload)
    assert caught.value.reason is reason


# The weighted mean.


def test_the_summary_is_numpys_average() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.uniform(0, 1, 500), rng.uniform(0, 1, 500)
    summary = weighted_summary(list(zip(values.tolist(), weights.tolist(), strict=True)))
    assert summary.mean == pytest.approx(np.average(values, weights=weights), rel=1e-12)
    assert summary.effective_n == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)


def test_the_standard_error_is_how_far_means_lie_apart() -> None:
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.1, 1, 200)
    samples = [
        weighted_summary(list(zip((rng.random(200) < 0.3).astype(float).tolist(), weights.tolist(), strict=True)))
        for _ in range(1500)
    ]
    spread = np.std([one.mean for one in samples if one.mean is not None])
    said = np.mean([one.standard_error for one in samples if one.standard_error is not None])
    assert said == pytest.approx(spread, rel=0.08)


@pytest.mark.parametrize("weighted", [[], [(1.0, 0.0)], [(0.5, 0.0), (0.2, 0.0)]])
def test_no_weight_is_no_mean(weighted: list[tuple[float, float]]) -> None:
    summary = weighted_summary(weighted)
    assert (summary.mean, summary.effective_n, summary.standard_error) == (None, 0.0, None)


def test_tiny_weights_keep_their_digits() -> None:
    summary = weighted_summary([(0.0, 5e-324), (1.0, 5e-324)])
    assert (summary.mean, summary.effective_n) == (0.5, 2.0)


# The windows: a day, sliding by an hour.

FRAME = Frame(
    "chat", "feedback(helpful)", ("model",), DAY_MS, HOUR_MS, "sha256:c", None, "sha256:m", VerdictKind.SIGNAL
)
POLICY = FeedbackPolicy(baseline=0.8, min_effective_n=2.0)


def label(name: str, at_ms: int, value: float = 1.0, delay_ms: int = 0, confidence: float = 1.0) -> Feedback:
    at_ms += EPOCH_MS
    return Feedback(name, "helpful", value, confidence, at_ms, at_ms - delay_ms, "thumb", {"model": "m1"}, trace_id="t")


def windows(labels: list[Feedback], policy: FeedbackPolicy = POLICY, until_ms: int = 3 * DAY_MS) -> list[Verdict]:
    """What a job says whose watermark follows the labels: windows close when a label passes their end."""
    score, state, said = FeedbackScore(FRAME, "helpful", policy), FeedbackState(), []
    end_of_time = label("end", until_ms)
    for one in [*labels, end_of_time]:
        while (end_ms := score.next_end_ms(state)) is not None and end_ms <= one.label_time_ms:
            state, verdicts = score.close(decode(encode(state)), ("m1",), end_ms)
            said += verdicts
        if one is not end_of_time:
            state = score.add(state, one)
    return said


def test_a_label_weighs_by_confidence_and_delay() -> None:
    """By hand: weights 1, 0.5 (half sure) and 0.25 (two half-lives late): (1 + 0 + 0.25) / 1.75."""
    late_ms = round(2 * POLICY.half_life_seconds * 1000)
    first = windows([label("a", 0), label("b", 1, 0.0, confidence=0.5), label("c", 2, delay_ms=late_ms)])[0]
    assert first.statistic == pytest.approx(1.25 / 1.75)
    assert first.evidence["effective_n"] == pytest.approx(1.75**2 / (1 + 0.25 + 0.0625))
    assert first.evidence["mean_delay_seconds"] == pytest.approx(6 * 86_400 / 2.5)
    assert first.evidence["standard_error"] > 0
    assert first.n_window == 3
    assert first.threshold == pytest.approx(0.7)
    assert first.effect == pytest.approx(0.8 - 1.25 / 1.75)
    assert (first.feature, first.kind, first.drifted) == ("feedback(helpful)", "signal", False)
    assert first.window_end_ms == EPOCH_MS + HOUR_MS


def test_a_fall_is_seen_and_few_labels_are_no_pass() -> None:
    bad = [label(str(i), i * 1000, 0.0 if i % 2 else 1.0) for i in range(40)]
    assert windows(bad)[0].drifted is True
    (few, *_) = windows([label("a", 0)])
    assert (few.status, few.statistic, few.drifted) == ("insufficient_data", None, None)


def test_a_label_counts_in_the_windows_of_its_day_and_then_leaves() -> None:
    said = windows([label("a", 0), label("b", 0)])
    assert [v.n_window for v in said] == [2] * 24 + [0]
    assert (said[-1].status, said[-1].statistic) == ("no_data", None)
    # Silence, then labels again: no windows are made up in between.
    again = windows([label("a", 0), label("b", 2 * DAY_MS + 90 * 60_000)], until_ms=4 * DAY_MS)
    ends = [(v.window_end_ms - EPOCH_MS) // HOUR_MS for v in again]
    assert ends == [*range(1, 26), *range(50, 75)]


def test_the_same_id_counts_once_and_a_changed_mind_counts_last() -> None:
    once = windows([label("a", 0), label("b", 1, 0.0)])
    twice = windows([label("a", 0), label("a", 0), label("b", 1, 0.0), label("b", 1, 0.0)])
    assert [v.statistic for v in twice] == [v.statistic for v in once]
    assert [v.n_window for v in twice] == [v.n_window for v in once]
    assert twice[0].evidence["n_repeated"] == 2
    changed = windows([label("a", 0), label("b", 1), label("a", 2, 0.0)])
    assert changed[0].statistic == 0.5


def test_late_labels_count_in_the_windows_still_open() -> None:
    said = windows([label("a", 0), label("b", 5 * HOUR_MS), label("late", HOUR_MS), label("c", 8 * HOUR_MS)])
    by_end = {(v.window_end_ms - EPOCH_MS) // HOUR_MS: v for v in said}
    assert [by_end[end].n_window for end in (2, 5, 6, 9, 24, 25)] == [1, 1, 3, 4, 4, 3]
    assert (by_end[6].evidence["n_late"], by_end[9].evidence["n_late"]) == (1, 0)
    too_late = windows([label("a", 0), label("b", 30 * HOUR_MS), label("late", 2 * HOUR_MS)])
    assert max(v.n_window for v in too_late) == 1
    assert sum(v.evidence["n_late"] for v in too_late) == 1


def test_a_label_too_late_for_any_window_opens_none() -> None:
    score, state = FeedbackScore(FRAME, "helpful", POLICY), score_after_silence()
    late = score.add(state, label("late", 0))
    assert (late.labels, late.n_late, score.next_end_ms(late)) == ((), 1, None)


def score_after_silence() -> FeedbackState:
    score, state = FeedbackScore(FRAME, "helpful", POLICY), FeedbackState()
    state = score.add(state, label("a", 0))
    while (end_ms := score.next_end_ms(state)) is not None:
        state, _ = score.close(state, ("m1",), end_ms)
    return state


def test_the_order_within_a_window_changes_nothing() -> None:
    labels = [
        label("a", 0, 0.1),
        label("b", 5, 0.3, DAY_MS),
        label("c", 3, 0.7),
        label("a", 9, 1.0),
        label("d", 4, confidence=0.2),
    ]
    policy = replace(POLICY, max_labels=3)
    score = FeedbackScore(FRAME, "helpful", policy)
    found = set()
    for order in permutations(labels):
        state = FeedbackState()
        for one in order:
            state = score.add(state, one)
        found.add(state.labels)
    assert len(found) == 1


def test_memory_is_bounded_by_a_random_sample() -> None:
    policy = replace(POLICY, max_labels=200)
    score, state = FeedbackScore(FRAME, "helpful", policy), FeedbackState()
    for i in range(1500):
        state = score.add(state, label(f"label {i}", i, float(i % 5 == 0)))
    assert (len(state.labels), state.n_not_kept) == (200, 1300)
    assert len(encode(state)) < 200 * 150
    _, (verdict,) = score.close(state, ("m1",), EPOCH_MS + HOUR_MS)
    assert verdict.statistic == pytest.approx(0.2, abs=3 * math.sqrt(0.2 * 0.8 / 200))
    assert verdict.evidence["n_not_kept"] == 1300


def test_whose_label_it_is() -> None:
    score = FeedbackScore(FRAME, "helpful", POLICY)
    ours = label("a", 0)
    assert score.accepts(ours)
    assert score.key(ours) == '["chat","feedback(helpful)",{"model":"m1"}]'
    assert not score.accepts(replace(ours, score="grounded"))
    # As a request without the field, it is of the series whose label is empty.
    assert score.labels(replace(ours, series={"region": "eu"})) == ("",)


def test_a_window_is_closed_once() -> None:
    score = FeedbackScore(FRAME, "helpful", POLICY)
    state, said = score.close(score.add(FeedbackState(), label("a", 0)), ("m1",), EPOCH_MS + HOUR_MS)
    assert len(said) == 1
    assert score.close(state, ("m1",), EPOCH_MS + HOUR_MS) == (state, [])


def test_a_newer_state_is_refused() -> None:
    with pytest.raises(UnknownStateVersionError):
        decode(orjson.dumps(orjson.loads(encode(FeedbackState())) | {"version": STATE_VERSION + 1}))
