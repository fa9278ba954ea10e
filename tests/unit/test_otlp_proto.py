"""What the protobuf reader does with messages and spans it can't use."""

import subprocess
import sys

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from tests.otlp import child_spans, message, request_span
from udfs.telemetry.otlp import SPAN_SCHEMA, decode_spans
from udfs.telemetry.otlp_proto import MAX_GROUP_STARTS

END_MS = 1_700_000_000_000


def changed(number: int = 1, **changes: object) -> Span:
    span = request_span(number, END_MS)
    for name, value in changes.items():
        setattr(span, name, value)
    return span


def test_an_unknown_encoding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="otlp_proto, otlp_json"):
        decode_spans([], "otlp_xml")


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_no_messages_give_an_empty_table_of_the_full_schema(encoding: str) -> None:
    table, dead = decode_spans([], encoding)
    assert table.schema.equals(SPAN_SCHEMA)
    assert (table.num_rows, dead) == (0, [])


@pytest.mark.parametrize("poisoned", [[0], [7], [39], [3, 4, 20], list(range(40))])
def test_only_the_poisoned_messages_of_a_batch_are_lost(poisoned: list[int]) -> None:
    messages = [message([request_span(number, END_MS)]) for number in range(40)]
    for number in poisoned:
        messages[number] = messages[number][:-3]
    table, dead = decode_spans(messages, "otlp_proto")
    assert sorted(letter.message_index for letter in dead) == poisoned
    assert {(letter.reason, letter.span_index) for letter in dead} == {(Reason.MALFORMED_PROTO, WHOLE_MESSAGE)}
    assert all(letter.payload == messages[letter.message_index] for letter in dead)
    left = [number for number in range(40) if number not in poisoned]
    assert table.column("message_index").to_pylist() == left
    assert table.column("input_tokens").to_pylist() == [100 + number for number in left]


FAULTS = {
    "short trace id": (changed(trace_id=b"1234"), Reason.BAD_ID),
    "no trace id": (changed(trace_id=b""), Reason.BAD_ID),
    "zero trace id": (changed(trace_id=bytes(16)), Reason.BAD_ID),
    "long span id": (changed(span_id=b"123456789"), Reason.BAD_ID),
    "zero span id": (changed(span_id=bytes(8)), Reason.BAD_ID),
    "short parent": (changed(parent_span_id=b"1"), Reason.BAD_ID),
    "no end": (changed(end_time_unix_nano=0), Reason.BAD_TIME),
    "end in 1970": (changed(start_time_unix_nano=0, end_time_unix_nano=999_999), Reason.BAD_TIME),
    "end before start": (changed(end_time_unix_nano=1_000_000), Reason.BAD_TIME),
    "end overflows": (changed(end_time_unix_nano=2**64 - 1), Reason.BAD_TIME),
    "start overflows": (changed(start_time_unix_nano=2**63), Reason.BAD_TIME),
    "id before time": (changed(trace_id=b"", end_time_unix_nano=0), Reason.BAD_ID),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_span_is_a_dead_letter_alone_with_its_own_bytes(fault: str) -> None:
    span, reason = FAULTS[fault]
    good, other = request_span(7, END_MS), request_span(8, END_MS)
    table, (letter,) = decode_spans([message([other]), message([good, span, other])], "otlp_proto")
    assert (letter.reason, letter.message_index, letter.span_index) == (reason, 1, 1)
    assert letter.payload == span.SerializeToString()
    assert table.column("message_index").to_pylist() == [0, 1, 1]
    assert table.column("span_index").to_pylist() == [0, 0, 2]
    assert table.column("input_tokens").to_pylist() == [108, 107, 108]


def test_details_name_the_field_at_fault() -> None:
    spans = [span for span, _ in FAULTS.values()]
    dead = decode_spans([message(spans)], "otlp_proto")[1]
    assert [letter.detail.split()[0] for letter in dead[:6]] == ["trace_id"] * 3 + ["span_id"] * 2 + ["parent_span_id"]
    assert len({letter.detail for letter in dead}) == 8


def test_an_absent_start_is_the_end() -> None:
    (row,) = decode_spans([message([changed(start_time_unix_nano=0)])], "otlp_proto")[0].to_pylist()
    assert (row["start_time_ms"], row["event_time_ms"], row["end_to_end_seconds"]) == (END_MS, END_MS, 0.0)


def test_empty_messages_hold_no_spans() -> None:
    table, dead = decode_spans([b"", message([]), b""], "otlp_proto")
    assert (table.num_rows, dead) == (0, [])


def test_span_indices_go_on_across_scopes_and_resources() -> None:
    one, two = message([request_span(1, END_MS), *child_spans(1, END_MS, 2)]), message([request_span(2, END_MS)], "b")
    table = decode_spans([b"", one + two, two], "otlp_proto")[0]  # protobuf messages merge by concatenation
    assert table.column("span_index").to_pylist() == [0, 1, 2, 3, 0]
    assert table.column("message_index").to_pylist() == [1, 1, 1, 1, 2]
    assert table.column("service_name").to_pylist() == ["chat", "chat", "chat", "b", "b"]


def test_a_span_of_two_megabytes_is_a_span() -> None:
    span = request_span(1, END_MS, filler_bytes=2_000_000)
    table, dead = decode_spans([message([span, request_span(2, END_MS)])], "otlp_proto")
    assert (table.column("input_tokens").to_pylist(), dead) == ([101, 102], [])


def test_text_that_is_no_utf8_poisons_its_message_only() -> None:
    span = request_span(1, END_MS)
    broken = message([span]).replace(b"test-model", b"\xff\xfe\xfd-model")
    table, (letter,) = decode_spans([broken, message([span])], "otlp_proto")
    assert (table.num_rows, letter.reason, letter.message_index) == (1, Reason.MALFORMED_PROTO, 0)


BOMBS = """
from tests.otlp import message, request_span
from udfs.telemetry.otlp import decode_spans
bomb = bytes([0x13]) * 3_000_000 + bytes([0x14]) * 3_000_000
good = message([request_span(1, 1_700_000_000_000)])
table, dead = decode_spans([good, bomb, good], "otlp_proto")
assert (table.num_rows, [letter.message_index for letter in dead]) == (2, [1]), (table.num_rows, dead)
"""


def test_a_bomb_of_nested_groups_does_not_end_the_process() -> None:
    # In a process of its own: what this guards against is a stack overrun, which no test could report.
    subprocess.run([sys.executable, "-c", BOMBS], check=True, timeout=120)


def test_a_large_message_with_many_group_like_bytes_is_read() -> None:
    span = request_span(1, END_MS, filler_bytes=10)
    span.attributes[-1].value.string_value = "{" * (MAX_GROUP_STARTS + 1)  # 0x7B has wire type 3
    table, dead = decode_spans([message([span])], "otlp_proto")
    assert (table.num_rows, dead) == (1, [])


def test_lists_nested_deep_are_stepped_over() -> None:
    value = b"\x0a\x01x"
    for _ in range(20_000):
        value = field(5, field(1, value))
    span = request_span(1, END_MS).SerializeToString() + field(9, field(1, b"deep") + field(2, value))
    nested = field(1, field(2, field(2, span)))
    table, dead = decode_spans([nested], "otlp_proto")
    assert (table.column("input_tokens").to_pylist(), dead) == ([101], [])


def field(number: int, payload: bytes) -> bytes:
    length, size = len(payload), b""
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + payload
