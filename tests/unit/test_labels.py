"""What a person says of an alert: which firing it speaks of, and the record it becomes."""

from importlib.resources import files

import orjson
import pytest
from jsonschema import Draft202012Validator

from infra.labels import FiredAlert, Word, alert_label, newest_firing
from schemas.feedback import MAX_NOTE_CHARACTERS, decode_feedback
from schemas.record_fields import UnreadableRecordError

SCHEMA = Draft202012Validator(orjson.loads(files("schemas").joinpath("feedback.schema.json").read_bytes()))
START_MS = 1_700_000_000_000
FIRED = FiredAlert("d3b971819376d835", START_MS, "chat", "f", "FeatureDrift", {"tenant": "acme"})


@pytest.mark.parametrize(
    ("word", "score", "value"),
    [
        (Word.ACKNOWLEDGED, "acknowledged", 1.0),
        (Word.FALSE_ALARM, "alert", 0.0),
        (Word.TRUE_ALARM, "alert", 1.0),
    ],
)
def test_a_label_is_a_record_of_topic_feedback(word: Word, score: str, value: float) -> None:
    label = alert_label(FIRED, word, at_ms=START_MS + 90_000, note="load test")
    SCHEMA.validate(orjson.loads(label.to_json()))
    read = decode_feedback(label.to_json())
    assert read == label
    assert (read.score, read.value, read.key, read.note) == (score, value, FIRED.fingerprint, "load test")
    assert (read.event_time_ms, read.label_time_ms, read.delay_seconds) == (START_MS, START_MS + 90_000, 90.0)


def test_each_word_has_an_id_of_its_own_and_the_same_word_at_the_same_time_the_same() -> None:
    said = [alert_label(FIRED, word, at_ms=at) for word in Word for at in (START_MS, START_MS + 1)]
    assert len({label.feedback_id for label in said}) == 6
    assert alert_label(FIRED, Word.ACKNOWLEDGED, at_ms=START_MS, note="x").feedback_id == said[0].feedback_id


def test_a_clock_that_is_behind_makes_no_label_that_is_refused() -> None:
    label = alert_label(FIRED, Word.TRUE_ALARM, at_ms=START_MS - 3_600_000)
    assert decode_feedback(label.to_json()).delay_seconds == 0


def test_a_note_is_bounded_and_stands_only_where_there_is_one() -> None:
    assert b"note" not in alert_label(FIRED, Word.TRUE_ALARM, at_ms=START_MS).to_json()
    longest = alert_label(FIRED, Word.TRUE_ALARM, at_ms=START_MS, note="x" * MAX_NOTE_CHARACTERS)
    assert decode_feedback(longest.to_json()) == longest
    too_long = alert_label(FIRED, Word.TRUE_ALARM, at_ms=START_MS, note="x" * (MAX_NOTE_CHARACTERS + 1))
    with pytest.raises(UnreadableRecordError, match="note is longer"):
        decode_feedback(too_long.to_json())
    assert not SCHEMA.is_valid(orjson.loads(too_long.to_json()))


def test_the_newest_firing_is_meant_unless_one_is_named() -> None:
    earlier = FiredAlert(FIRED.fingerprint, START_MS - 1000, "chat", "f", "FeatureDrift", {})
    other = FiredAlert("0" * 16, START_MS + 1000, "chat", "f", "FeatureDrift", {})
    firings = [FIRED, None, earlier, other]
    assert newest_firing(firings, FIRED.fingerprint) == FIRED
    assert newest_firing(firings, FIRED.fingerprint, START_MS - 1000) == earlier
    assert newest_firing(firings, FIRED.fingerprint, 0) is None
