"""OTLP/JSON: what is tolerated, what is a dead letter, and that the rest of a message is used either way."""

import math
from typing import Any

import orjson
import pytest

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from udfs.telemetry.any_value import any_value
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.otlp_json import span_payloads

END = "1700000000000000000"


def span(number: int = 1, **members: Any) -> dict[str, Any]:
    return {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "x", "endTimeUnixNano": END} | members


def body(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def decode(*values: Any, lenient: bool = False) -> tuple[list[dict[str, Any]], list[tuple[Reason, int, int]]]:
    messages = [value if isinstance(value, bytes) else orjson.dumps(value) for value in values]
    table, dead = decode_spans(messages, "otlp_json", lenient=lenient)
    return table.to_pylist(), [(letter.reason, letter.message_index, letter.span_index) for letter in dead]


NOT_JSON = {
    "cut": b'{"resourceSpans": [',
    "protobuf": b"\x0a\x10\x12\x0e\x12\x0c",
    "bare NaN": b'{"resourceSpans": [{"x": NaN}]}',
    "lone surrogate": b'{"resourceSpans": ["\\ud800"]}',
    "no utf-8": b'{"a": "\xff"}',
    "too deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "two documents": b"{}{}",
    "a list": b"[]",
    "a number": b"5",
    "a text": b'"resourceSpans"',
    "null": b"null",
    "resourceSpans is a number": b'{"resourceSpans": 5}',
    "resourceSpans is an object": b'{"resourceSpans": {}}',
}


@pytest.mark.parametrize("name", NOT_JSON)
def test_an_unreadable_message_is_one_dead_letter(name: str) -> None:
    rows, dead = decode(body(span()), NOT_JSON[name], body(span()))
    assert [row["message_index"] for row in rows] == [0, 2]
    assert dead == [(Reason.MALFORMED_JSON, 1, WHOLE_MESSAGE)]


TOLERATED = {
    "empty": b"",
    "byte order mark": b"\xef\xbb\xbf{}",
    "blanks": b" \n {} ",
    "null entries": {"resourceSpans": [None, {"scopeSpans": None}, {"scopeSpans": [None, {"spans": [None]}]}]},
    "null resource": {"resourceSpans": [{"resource": None, "scopeSpans": []}]},
    "null resource attributes": {"resourceSpans": [{"resource": {"attributes": None}}]},
    "unknown members": {"futureSpans": 3, "resourceSpans": [{"schemaUrl": "x", "entityRefs": [1]}]},
    "snake case, which is another unknown member": {"resource_spans": [{"scope_spans": [{"spans": [span()]}]}]},
}


@pytest.mark.parametrize("name", TOLERATED)
def test_what_may_be_absent_may_be_null(name: str) -> None:
    assert decode(TOLERATED[name]) == ([], [])


PLAIN_SPANS = {
    "nulls": span(
        attributes=None, status=None, kind=None, name=None, parentSpanId=None, events=None, startTimeUnixNano=None
    ),
    "empty values": span(attributes=[None, {"key": "a"}, {"key": "a", "value": None}, {"key": "a", "value": {}}]),
    "null key": span(attributes=[{"key": None, "value": {"intValue": "1"}}]),
    "no key": span(attributes=[{"value": {"intValue": "1"}}]),
    "empty status": span(status={}),
    "null status code": span(status={"code": None}),
    "empty parent": span(parentSpanId=""),
    "zero parent": span(parentSpanId="0" * 16),
    "numbers for times": span(startTimeUnixNano=1_699_999_999_000_000_000, endTimeUnixNano=int(END)),
    "unknown enums": span(kind=99, status={"code": 99}),
    "newer value kinds": span(attributes=[{"key": "a", "value": {"stringValueStrindex": 3}}]),
    "twice the same member": orjson.loads(orjson.dumps(span()).replace(b'"name":"x"', b'"name":"y","name":"x"')),
}


@pytest.mark.parametrize("name", PLAIN_SPANS)
def test_a_span_with_little_is_a_span(name: str) -> None:
    (row,), dead = decode(body(PLAIN_SPANS[name]))
    assert dead == []
    assert (row["parent_span_id"], row["status"], row["kind"]) == (None, "UNSET", "UNSPECIFIED")


FAULTY_SPANS = {
    "a text": ("span", Reason.MALFORMED_JSON),
    "a number": (7, Reason.MALFORMED_JSON),
    "a list": ([], Reason.MALFORMED_JSON),
    "attributes no list": (span(attributes={"a": 1}), Reason.MALFORMED_JSON),
    "attribute no object": (span(attributes=["a"]), Reason.MALFORMED_JSON),
    "key no text": (span(attributes=[{"key": 1, "value": {"intValue": 1}}]), Reason.MALFORMED_JSON),
    "value no object": (span(attributes=[{"key": "a", "value": 1}]), Reason.MALFORMED_JSON),
    "name no text": (span(name=5), Reason.MALFORMED_JSON),
    "status no object": (span(status=2), Reason.MALFORMED_JSON),
    "kind a boolean": (span(kind=True), Reason.MALFORMED_JSON),
    "kind a name": (span(kind="SPAN_KIND_CLIENT"), Reason.ENUM_NAME),
    "status a name": (span(status={"code": "STATUS_CODE_ERROR"}), Reason.ENUM_NAME),
    "no trace id": ({"spanId": "1" * 16, "endTimeUnixNano": END}, Reason.BAD_ID),
    "null trace id": (span(traceId=None), Reason.BAD_ID),
    "a number as id": (span(spanId=12), Reason.BAD_ID),
    "hex with blanks": (span(spanId="aa bb cc dd ee f"), Reason.BAD_ID),
    "hex too long": (span(spanId="1" * 18), Reason.BAD_ID),
    "no hex": (span(spanId="g" * 16), Reason.BAD_ID),
    "zero trace id": (span(traceId="0" * 32), Reason.BAD_ID),
    "bad parent": (span(parentSpanId="abc"), Reason.BAD_ID),
    "no end": (span(endTimeUnixNano=None), Reason.BAD_TIME),
    "negative end": (span(endTimeUnixNano=-5), Reason.BAD_TIME),
    "negative end in text": (span(endTimeUnixNano="-5"), Reason.BAD_TIME),
    "end before start": (span(startTimeUnixNano=END, endTimeUnixNano="1000000"), Reason.BAD_TIME),
    "end overflows": (span(endTimeUnixNano=str(2**63)), Reason.BAD_TIME),
    "end of many digits": (span(endTimeUnixNano="9" * 6000), Reason.BAD_TIME),
    "end a float": (span(endTimeUnixNano=1.7e18), Reason.BAD_TIME),
    "end a date": (span(endTimeUnixNano="2026-01-01T00:00:00Z"), Reason.BAD_TIME),
}


@pytest.mark.parametrize("name", FAULTY_SPANS)
def test_a_faulty_span_is_a_dead_letter_alone(name: str) -> None:
    faulty, reason = FAULTY_SPANS[name]
    message = orjson.dumps(body(span(1), faulty, span(2)))
    table, (letter,) = decode_spans([message], "otlp_json")
    assert table.column("span_index").to_pylist() == [0, 2]
    assert (letter.reason, letter.span_index, letter.payload) == (reason, 1, orjson.dumps(faulty))
    assert span_payloads(message)[1] == letter.payload


@pytest.mark.parametrize(
    "part",
    [
        {"resourceSpans": ["x", *body(span())["resourceSpans"]]},
        {"resourceSpans": [{"scopeSpans": "x"}, *body(span())["resourceSpans"]]},
        {"resourceSpans": [{"resource": "x", "scopeSpans": []}, *body(span())["resourceSpans"]]},
        {"resourceSpans": [{"scopeSpans": ["x", {"spans": [span()]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": 5}, {"spans": [span()]}]}]},
    ],
)
def test_what_cannot_hold_spans_counts_as_one_and_the_rest_is_used(part: dict[str, Any]) -> None:
    rows, dead = decode(part)
    assert [row["span_index"] for row in rows] == [1]
    assert dead == [(Reason.MALFORMED_JSON, 0, 0)]
    assert len(span_payloads(orjson.dumps(part))) == 2


def test_a_faulty_span_too_deep_to_write_again_keeps_its_whole_message() -> None:
    deep = orjson.loads(b'{"a":' * 400 + b"1" + b"}" * 400)
    message = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"]}]}]}"
    assert orjson.loads(message)["resourceSpans"][0]["scopeSpans"][0]["spans"] == [deep]
    (letter,) = decode_spans([message], "otlp_json")[1]
    assert (letter.reason, letter.payload) == (Reason.BAD_ID, message)


def test_lenient_takes_names_and_base64_but_no_unknown_name() -> None:
    good = span(1, kind="SPAN_KIND_CLIENT", status={"code": "STATUS_CODE_ERROR"}, parentSpanId="FcpNz02EdAs=")
    rows, dead = decode(body(good, span(2, kind="SERVER")), lenient=True)
    assert [(row["kind"], row["is_error"], row["parent_span_id"]) for row in rows] == [
        ("CLIENT", True, "15ca4dcf4d84740b")
    ]
    assert dead == [(Reason.ENUM_NAME, 0, 1)]


VALUES = {
    "intValue": [("7", 7), (7, 7), (7.0, 7), ("+7", 7), (True, None), ("7 ", None), (str(2**63), None), ([], None)],
    "doubleValue": [(0, 0.0), ("0.5", 0.5), ("Infinity", math.inf), ("inf", None), ({}, None), ("1_0", None)],
    "stringValue": [("a", "a"), (1, None), (["a"], None)],
    "boolValue": [(False, False), ("true", None), (0, None)],
    "bytesValue": [("aGk=", b"hi"), ("!", None), (1, None)],
    "arrayValue": [({}, []), ({"values": None}, []), ({"values": 1}, None), ([], None)],
    "kvlistValue": [({}, {}), ({"values": [{"key": "a", "value": {"intValue": 1}}, 5]}, {"a": 1}), (5, None)],
}


@pytest.mark.parametrize(("member", "content", "value"), [(m, c, v) for m, cases in VALUES.items() for c, v in cases])
def test_any_value_reads_each_kind_or_none(member: str, content: object, value: object) -> None:
    read = any_value({member: content})
    assert read == value
    assert type(read) is type(value)


def test_any_value_of_nan_and_of_deep_nesting() -> None:
    nan = any_value({"doubleValue": "NaN"})
    assert isinstance(nan, float)
    assert math.isnan(nan)
    deep: dict[str, Any] = {"intValue": 1}
    for _ in range(340):
        deep = {"arrayValue": {"values": [deep]}}
    assert isinstance(any_value(orjson.loads(b'{"arrayValue":{"values":[' * 340 + b"{}" + b"]}}" * 340)), list)
    assert isinstance(any_value(deep), list)
