"""Messages of topics `changes` and `silences`: what is read, and what becomes a dead letter for which reason."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.changes import ChangeKind, decode_change
from schemas.matchers import MatcherError, parse_matcher
from schemas.record_fields import UnreadableRecordError
from schemas.silences import decode_silence

EVENT = {
    "specversion": "1.0",
    "id": "4711",
    "source": "urn:ci:chat",
    "type": "slacktide.change.rollout_step",
    "time": "2026-01-31T12:00:00Z",
    "subject": "chat",
    "datacontenttype": "application/json",
    "traceparent": "an extension",
    "data": {"summary": "25 %", "labels": {"version": "1.8"}, "duration_seconds": 60, "hf.model_id": "m"},
}
SILENCE = {
    "id": "s1",
    "matchers": [{"name": "service_name", "value": "chat|search", "isRegex": True, "isEqual": True}],
    "startsAt": "2026-01-31T12:00:00.000Z",
    "endsAt": "2026-01-31T14:00:00.000Z",
    "updatedAt": "2026-01-31T12:00:00.000Z",
    "createdBy": "ann",
    "comment": "load test",
}
MATCHER = SILENCE["matchers"][0]  # type: ignore[index]


def encoded(body: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in body.items() if value is not ...}).encode()


def test_a_change_is_read() -> None:
    change = decode_change(encoded(EVENT))
    assert (change.kind, change.service, change.summary) == (ChangeKind.ROLLOUT_STEP, "chat", "25 %")
    assert change.labels == {"version": "1.8"}
    assert change.ends_ms is not None
    assert change.ends_ms - change.time_ms == 60_000
    assert decode_change(change.to_json()) == change


def test_the_identity_of_a_change_is_its_source_and_id() -> None:
    one, same = decode_change(encoded(EVENT)), decode_change(encoded({**EVENT, "subject": "other"}))
    assert one.change_id == same.change_id
    assert one.change_id != decode_change(encoded({**EVENT, "source": "urn:ci:search"})).change_id


def test_a_change_without_a_time_happened_when_kafka_took_it() -> None:
    assert decode_change(encoded({**EVENT, "time": ...}), kafka_timestamp_ms=77).time_ms == 77
    with pytest.raises(UnreadableRecordError, match="bad_time: time"):
        decode_change(encoded({**EVENT, "time": ...}))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"specversion": "0.3"}, "bad_value: specversion"),
        ({"specversion": ...}, "bad_value: specversion"),
        ({"id": ""}, "bad_id: id"),
        ({"id": 4711}, "bad_id: id"),
        ({"source": ...}, "bad_id: source"),
        ({"type": "deploy"}, "bad_value: type"),
        ({"type": "slacktide.change.party"}, "bad_value: type"),
        ({"time": "yesterday"}, "bad_time: time"),
        ({"time": "2026-01-31T12:00:00"}, "bad_time: time"),
        ({"subject": ...}, "bad_value: subject"),
        ({"data": []}, "bad_value: data"),
        ({"data_base64": "e30="}, "bad_value: data_base64"),
        ({"data": {"labels": {"version": 1.8}}}, "bad_value: data.labels"),
        ({"data": {"duration_seconds": 0}}, "bad_value: data.duration_seconds"),
        ({"data": {"duration_seconds": True}}, "bad_value: data.duration_seconds"),
        ({"data": {"duration_seconds": 1e999}}, "malformed_json"),
        ({"data": {"ends_at": "2026-01-31T11:00:00Z"}}, "bad_time: data.ends_at"),
        ({"data": {"ends_at": "9999-12-31T23:59:59-14:00"}}, "bad_time: data.ends_at"),
        ({"time": "0001-01-01T00:00:00+14:00"}, "bad_time: time"),
        ({"data": {"service": ["chat"]}}, "bad_value: data.service"),
    ],
)
def test_a_wrong_change_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableRecordError, match=reason):
        decode_change(encoded({**EVENT, **changed}))


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "0999-06-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
def test_the_first_and_the_last_instant_can_be_written(time: str) -> None:
    change = decode_change(encoded({**EVENT, "time": time}))
    assert decode_change(change.to_json()) == change
    silence = decode_silence(
        encoded({**SILENCE, "startsAt": "0001-01-01T00:00:00Z", "endsAt": "9999-12-31T23:59:59.999Z"})
    )
    assert decode_silence(silence.to_json()) == silence


def test_a_silence_is_read() -> None:
    silence = decode_silence(encoded(SILENCE))
    assert silence.silences({"service_name": "search"}, silence.starts_ms)
    assert not silence.silences({"service_name": "search"}, silence.ends_ms)
    assert not silence.silences({"service_name": "searching"}, silence.starts_ms)
    assert decode_silence(silence.to_json()) == silence


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": ...}, "bad_id: id"),
        ({"matchers": []}, "no matcher"),
        ({"matchers": {}}, "bad_value: matchers"),
        ({"matchers": [3]}, r"matchers\[0\] is not an object"),
        ({"matchers": [{**MATCHER, "name": "a-b"}]}, r"matchers\[0\]: the name"),
        ({"matchers": [{**MATCHER, "value": "("}]}, r"matchers\[0\]: the regular expression"),
        ({"matchers": [{**MATCHER, "value": "(?=a)b"}]}, r"matchers\[0\]: the regular expression"),
        ({"matchers": [{**MATCHER, "value": "a" * 1001}]}, "more than 1000"),
        ({"matchers": [{**MATCHER, "isRegex": "yes"}]}, r"matchers\[0\] has not"),
        ({"matchers": [{**MATCHER, "value": ".*"}]}, "every alert would be silenced"),
        ({"matchers": [{**MATCHER, "value": "chat", "isRegex": False, "isEqual": False}]}, "every alert would be"),
        ({"startsAt": 5}, "bad_time: startsAt"),
        ({"endsAt": "2026-01-31T11:00:00Z"}, "bad_time: endsAt"),
        ({"updatedAt": ...}, "bad_time: updatedAt"),
        ({"createdBy": " "}, "bad_value: createdBy"),
    ],
)
def test_a_wrong_silence_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableRecordError, match=reason):
        decode_silence(encoded({**SILENCE, **changed}))


@pytest.mark.parametrize(
    "payload", [None, b"", b"\xff", b"[1]", b'{"id": 1, "id": 2}', b'{"id": "\\ud800"}', b"[" * 9999]
)
def test_what_is_no_record_is_refused(payload: bytes | None) -> None:
    for decode in (decode_change, decode_silence):
        with pytest.raises(UnreadableRecordError):
            decode(payload)


@settings(max_examples=60)
@given(st.binary(max_size=80) | st.recursive(st.none() | st.text() | st.floats(), st.lists).map(repr).map(str.encode))
def test_no_bytes_stop_the_job(payload: bytes) -> None:
    for decode in (decode_change, decode_silence):
        with pytest.raises(UnreadableRecordError):
            decode(payload)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=1", {"a": "1"}, True),
        ('a = "1"', {"a": "1"}, True),
        ("a!=1", {}, True),
        ("a=~1|2", {"a": "2"}, True),
        ("a=~1|2", {"a": "22"}, False),
        ('a!~"x.*"', {"a": "xyz"}, False),
        ('a="say \\"hi\\""', {"a": 'say "hi"'}, True),
        ('a="x=~y,{}"', {"a": "x=~y,{}"}, True),
        ("a=", {}, True),
        ("a=~(x+x+)+y", {"a": "x" * 5000}, False),  # exponential for a backtracking engine
    ],
)
def test_matchers_mean_what_alertmanagers_do(text: str, labels: dict[str, str], expected: bool) -> None:
    matcher = parse_matcher(text)
    assert matcher.matches(labels) is expected
    assert parse_matcher(str(matcher)) == matcher


@pytest.mark.parametrize("text", ["", "a", "=b", '"a"=b', 'a="b', 'a=b"', "a=~(", "1a=b"])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(MatcherError):
        parse_matcher(text)
