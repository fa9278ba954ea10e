"""The lines that the ingest job cuts: their format, the books, clock skew, and that nothing in a batch ever raises."""

import base64
import math
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from schemas.request_headers import request_headers
from tests.otlp import child_spans, export, ids, json_message, message, request_span
from tests.otlp_encodings import encode
from udfs.telemetry import batch
from udfs.telemetry.batch import (
    REQUEST_INDEX_AT,
    REQUEST_LABELS_AT,
    REQUEST_LENGTH_AT,
    REQUEST_NUMBERS_AT,
    REQUEST_SPAN_AT,
    REQUEST_TIME_AT,
    REQUEST_TRACE_AT,
    encoding_of,
    ingest_lines,
    request_of_line,
)

END_MS = 1_700_000_000_000
SPANS = [request_span(1, END_MS), *child_spans(1, END_MS, 3), request_span(2, END_MS + 5)]


def books(text: str) -> dict[str, int]:
    first, *rest = text.split("\n")
    kinds = Counter(line[0] for line in rest)
    counts: dict[str, int] = orjson.loads(first[1:])
    assert first[0] == "B"
    assert set(kinds) <= {"R", "W", "C", "D"}
    assert counts["dead"] == kinds["D"]
    assert counts["spans"] == counts["child"] + counts["dead"] + kinds["R"] + kinds["W"] + kinds["C"]
    return counts


def letters(text: str) -> list[dict[str, Any]]:
    return [orjson.loads(line[1:]) for line in text.split("\n") if line[0] == "D"]


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_a_request_line_is_cut_at_fixed_places(encoding: str) -> None:
    (text,) = ingest_lines([encode(export(SPANS), encoding)], [END_MS])
    assert books(text) == {"spans": 5, "child": 3, "dead": 0}
    _, first, second = text.split("\n")
    trace_id, span_id = ids(2)
    assert second[REQUEST_TRACE_AT:REQUEST_SPAN_AT] == trace_id.hex()
    assert second[REQUEST_SPAN_AT:REQUEST_TIME_AT] == span_id.hex()
    assert second[REQUEST_TIME_AT:REQUEST_INDEX_AT] == f"{END_MS + 5:015d}"
    assert second[REQUEST_INDEX_AT:REQUEST_NUMBERS_AT] == "00000004"
    request = orjson.loads(request_of_line(second))
    assert (request["trace_id"], request["input_tokens"]) == (trace_id.hex(), 102)
    assert orjson.loads(request_of_line(first))["child_span_count"] == 3


def test_lines_are_ascii_up_to_the_payload_and_text_may_be_anything() -> None:
    text = ingest_lines([message([request_span(1, END_MS)], "line\nbreak \U0001f600 \u2028")], [END_MS])[0]
    assert len(text.split("\n")) == 2
    assert orjson.loads(request_of_line(text.split("\n")[1]))["service_name"] == "line\nbreak \U0001f600 \u2028"


def test_a_line_has_the_headers_of_its_request() -> None:
    numbers = {
        "gen_ai.usage.input_tokens": 0,
        "slacktide.perplexity": math.inf,
        "gen_ai.usage.output_tokens": 2**62 + 1,
    }
    span = request_span(1, END_MS, **numbers)
    values = [message([span, *SPANS], 'a "quoted"\n\U0001f600 name'), json_message(SPANS)]
    lines = [line for text in ingest_lines(values, [END_MS] * 2) for line in text.split("\n") if line[0] == "R"]
    assert len(lines) > 2
    for line in lines:
        length = int(line[REQUEST_LENGTH_AT:REQUEST_LABELS_AT])
        numbers_header = bytes.fromhex(line[REQUEST_NUMBERS_AT:REQUEST_LENGTH_AT])
        labels_header = line[REQUEST_LABELS_AT : REQUEST_LABELS_AT + length].encode()
        headers = dict(request_headers(orjson.loads(request_of_line(line))))
        assert (numbers_header, labels_header) == (headers["numbers_v1"], headers["labels_v1"])


def test_each_message_is_judged_by_itself_and_keeps_its_place() -> None:
    values = [message(SPANS), None, b"", b"garbage", json_message(SPANS), b"{", b'{"resourceSpans":[]}', message([])]
    texts = ingest_lines(values, [END_MS] * len(values))
    assert [books(text)["spans"] for text in texts] == [5, 1, 0, 1, 5, 1, 0, 0]
    assert [[letter["reason"] for letter in letters(text)] for text in texts] == [
        [], ["no_value"], [], ["malformed_proto"], [], ["malformed_json"], [], []
    ]  # fmt: skip
    assert texts[0] == texts[4]
    assert base64.b64decode(letters(texts[3])[0]["payload_base64"]) == b"garbage"


def test_a_dead_letter_line_has_its_place_and_bytes() -> None:
    faulty = request_span(3, END_MS)
    faulty.span_id = b""
    (letter,) = letters(ingest_lines([message([SPANS[0], faulty])], [END_MS])[0])
    assert (letter["reason"], letter["index"], letter["event_time_ms"]) == ("bad_id", 1, None)
    assert base64.b64decode(letter["payload_base64"]) == faulty.SerializeToString()
    assert "span_id" in letter["detail"]


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_a_span_too_far_ahead_of_kafka_is_a_dead_letter_with_its_bytes(encoding: str) -> None:
    ahead = request_span(3, END_MS + 300_001)
    value = encode(export([SPANS[0], ahead, *child_spans(3, END_MS + 300_601, 1)]), encoding)
    (text,) = ingest_lines([value], [END_MS])
    assert books(text) == {"spans": 3, "child": 0, "dead": 2}
    first, second = letters(text)
    assert (first["reason"], first["index"], first["event_time_ms"]) == (Reason.CLOCK_SKEW, 1, END_MS + 300_001)
    assert (second["reason"], second["index"]) == (Reason.CLOCK_SKEW, 2)
    payload = base64.b64decode(first["payload_base64"])
    assert payload == ahead.SerializeToString() or orjson.loads(payload)["spanId"] == ahead.span_id.hex()


def test_the_skew_is_allowed_to_the_millisecond_and_unknown_kafka_times_check_nothing() -> None:
    value = message([request_span(1, END_MS + 300_000)])
    texts = ingest_lines([value, value, value], [END_MS, END_MS - 1, -1])
    assert [books(text)["dead"] for text in texts] == [0, 1, 0]
    assert books(ingest_lines([value], [END_MS], max_skew_ms=299_999)[0])["dead"] == 1


def test_a_stated_encoding_is_not_second_guessed() -> None:
    values = [message(SPANS), json_message(SPANS)]
    as_proto = ingest_lines(values, [END_MS] * 2, encoding="otlp_proto")
    as_json = ingest_lines(values, [END_MS] * 2, encoding="otlp_json")
    assert [books(text)["dead"] for text in as_proto + as_json] == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="auto, otlp_proto, otlp_json"):
        ingest_lines([], [], encoding="avro")


def test_lenient_reaches_the_reader() -> None:
    value = json_message([SPANS[0]]).replace(b'"kind":2', b'"kind":"SPAN_KIND_SERVER"')
    strict, lenient = ingest_lines([value], [END_MS]), ingest_lines([value], [END_MS], lenient=True)
    assert [letter["reason"] for letter in letters(strict[0])] == ["enum_name"]
    assert books(lenient[0]) == {"spans": 1, "child": 0, "dead": 0}


def test_a_protobuf_message_whose_length_looks_like_a_brace_is_no_json() -> None:
    for size in range(300):
        value = message([request_span(1, END_MS, filler_bytes=size)])
        assert encoding_of(value) == "otlp_proto"
    tail = b"\x12" + bytes([0x7B - 2]) + bytes([0x12, 0x7B - 4, 0x1A, 0x7B - 6]) + b"x" * (0x7B - 6)
    looks_like_json = b"\x0a\x7b" + tail
    assert looks_like_json[:2] == b"\n{"
    assert books(ingest_lines([looks_like_json], [END_MS])[0])["dead"] == 1  # read as protobuf: a span without ids
    assert letters(ingest_lines([looks_like_json], [END_MS])[0])[0]["reason"] == "bad_id"


@pytest.mark.parametrize("value", [b'\n{"resourceSpans":[]}', b"\r\n {}", b"\xef\xbb\xbf{}", b"[]", b"\t[", b"{"])
def test_what_begins_like_json_is_json(value: bytes) -> None:
    assert encoding_of(value) == "otlp_json"


def test_large_batches_are_decoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [message([request_span(number, END_MS)]) for number in range(20)]
    whole = ingest_lines(values, [END_MS] * 20)
    monkeypatch.setattr(batch, "MAX_CHUNK_BYTES", 3 * len(values[0]))
    assert ingest_lines(values, [END_MS] * 20) == whole


def test_no_messages_give_no_texts() -> None:
    assert ingest_lines([], []) == []


VALID = [message(SPANS), json_message(SPANS), message(SPANS) + message([request_span(9, END_MS)], "other")]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid message, cut or with bytes changed, put in or taken out."""
    data = bytearray(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data) - 1))
        how = draw(st.integers(0, 3))
        if how == 0:
            data[place] = draw(st.integers(0, 255))
        elif how == 1:
            data[place:place] = draw(st.binary(max_size=3))
        elif how == 2:
            del data[place : place + draw(st.integers(1, 9))]
        else:
            data[place] ^= 1 << draw(st.integers(0, 7))
        if not data:
            break
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


MEMBERS = [
    "resourceSpans", "resource", "scopeSpans", "spans", "attributes", "traceId", "spanId", "key", "value", "status",
    "code", "kind", "endTimeUnixNano", "stringValue", "intValue", "arrayValue", "values",
]  # fmt: skip
JSON_PARTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4)),
    max_leaves=12,
)
ODD_JSON = st.one_of(
    JSON_PARTS.map(lambda part: orjson.dumps({"resourceSpans": part})),
    JSON_PARTS.map(lambda part: orjson.dumps({"resourceSpans": [{"resource": part, "scopeSpans": [part]}]})),
    JSON_PARTS.map(lambda part: orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [part, part]}]}]})),
)
VALUES = st.one_of(st.none(), st.binary(max_size=40), damaged(), ODD_JSON)


@settings(max_examples=120, deadline=None)
@given(st.lists(VALUES, max_size=6), st.booleans())
def test_whatever_comes_no_batch_raises_every_book_balances_and_no_message_touches_another(
    values: list[bytes | None], lenient: bool
) -> None:
    texts = ingest_lines(values, [END_MS] * len(values), lenient=lenient)
    assert len(texts) == len(values)
    for value, text in zip(values, texts, strict=True):
        books(text)
        for letter in letters(text):
            assert letter["reason"] in set(Reason)
            if letter["index"] == WHOLE_MESSAGE:
                assert base64.b64decode(letter["payload_base64"]) == (value or b"")
        assert [text] == ingest_lines([value], [END_MS], lenient=lenient)
