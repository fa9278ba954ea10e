"""Which spans go on at once and which wait for others of their trace."""

import base64

import orjson
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.otlp import message
from tests.unit.test_otlp_tree import CHAT, CLIENT, END_MS, INTERNAL, SERVER, span
from udfs.flink_ingest import dead_letter_from_line
from udfs.telemetry.batch import REQUEST_INDEX_AT, REQUEST_SPAN_AT, REQUEST_TIME_AT, REQUEST_TRACE_AT, ingest_lines
from udfs.telemetry.waiting_line import WaitingSpan, read_waiting_line

TOLD = CHAT | {"gen_ai.server.ttft": 1}
ELSEWHERE = 99


def kinds(*spans: Span, joins: bool = True) -> str:
    """The kinds of the lines behind the books, in order."""
    (text,) = ingest_lines([message(list(spans))], [END_MS], joins=joins)
    return "".join(line[0] for line in text.split("\n")[1:])


SETTLED = {
    "a server that knows its first token": [span(1, kind=SERVER, attributes=TOLD)],
    "a server below a root that is no request": [span(1, kind=SERVER), span(2, 1, kind=SERVER, attributes=TOLD)],
    "a server told by a phase below": [span(1, kind=SERVER, attributes=CHAT), span(2, 1, name="queue")],
    "a server told by an attribute below": [
        span(1, kind=SERVER, attributes=CHAT), span(2, 1, attributes={"gen_ai.latency.time_in_queue": 0})
    ],
    "a client with its server": [span(1, kind=CLIENT, attributes=CHAT), span(2, 1, kind=SERVER, attributes=TOLD)],
    "two traces in one message": [
        span(1, kind=SERVER, attributes=TOLD), span(2, kind=SERVER, attributes=TOLD, trace=2)
    ],
}  # fmt: skip
WAITING = {
    "a server that knows nothing of it": [span(1, kind=SERVER, attributes=CHAT)],
    "a server below something elsewhere": [span(1, ELSEWHERE, kind=SERVER, attributes=TOLD)],
    "a client whose server is elsewhere": [span(1, kind=CLIENT, attributes=TOLD)],
    "an inner call whose server is elsewhere": [span(1, kind=INTERNAL, attributes=TOLD)],
    "a try whose server is elsewhere": [
        span(1, kind=CLIENT, attributes=CHAT), span(2, 1, kind=SERVER, attributes=TOLD),
        span(3, 1, kind=CLIENT, attributes=CHAT)
    ],
}  # fmt: skip


@pytest.mark.parametrize("spans", SETTLED.values(), ids=SETTLED)
def test_what_lacks_nothing_goes_on_at_once(spans: list[Span]) -> None:
    assert set(kinds(*spans)) == {"R"}


@pytest.mark.parametrize("spans", WAITING.values(), ids=WAITING)
def test_what_lacks_something_waits_with_all_that_is_linked_to_it(spans: list[Span]) -> None:
    assert kinds(*spans) == "W" * len(spans)
    assert set(kinds(*spans, joins=False)) == {"R"}


def test_a_span_below_something_elsewhere_waits_and_other_spans_are_children() -> None:
    assert kinds(span(1, ELSEWHERE, name="queue"), span(2, 1)) == "CC"
    assert kinds(span(1), span(2, 1)) == ""


def test_one_trace_that_waits_holds_up_no_other() -> None:
    spans = [span(1, kind=CLIENT, attributes=CHAT), span(1, kind=SERVER, attributes=TOLD, trace=2), span(2, 1)]
    assert kinds(*spans) == "RWC"


def test_a_waiting_line_has_the_head_of_a_request_and_the_span_alone() -> None:
    spans = [span(1, kind=SERVER), span(7, 3, name="decode", error=True, seconds=2, attributes={"tenant": "a\nb"})]
    (text,) = ingest_lines([message(spans)], [END_MS])
    line = text.split("\n")[1]
    assert line[:REQUEST_TRACE_AT] == "C"
    assert line[REQUEST_TRACE_AT:REQUEST_SPAN_AT] == (1).to_bytes(16, "big").hex()
    assert line[REQUEST_SPAN_AT:REQUEST_TIME_AT] == (7).to_bytes(8, "big").hex()
    assert (line[REQUEST_TIME_AT:REQUEST_INDEX_AT], line[REQUEST_INDEX_AT:][:8]) == (f"{END_MS:015d}", "00000001")
    read = read_waiting_line(line)
    start_ns = END_MS * 1_000_000 - 2_000_000_000
    assert read == WaitingSpan(False, "decode", start_ns, END_MS * 1_000_000, read.fields)
    assert (read.fields["tenant"], read.fields["is_error"], "attempts" in read.fields) == ("a\nb", True, False)


def test_the_name_of_a_waiting_span_is_carried_only_if_it_is_a_phase() -> None:
    (text,) = ingest_lines([message([span(1, ELSEWHERE, name="tell Ada")])], [END_MS])
    assert read_waiting_line(text.split("\n")[1]).phase == ""
    assert "Ada" not in text


def test_a_waiting_span_may_be_skewed_like_any_other() -> None:
    spans = [span(1, kind=CLIENT, attributes=CHAT), span(2, ELSEWHERE)]
    (text,) = ingest_lines([message(spans)], [END_MS - 400_000])
    assert [line[0] for line in text.split("\n")] == ["B", "D", "D"]
    assert orjson.loads(text.split("\n")[0][1:]) == {"spans": 2, "child": 0, "dead": 2}


def test_the_dead_letter_of_a_late_waiting_span_holds_its_request() -> None:
    (text,) = ingest_lines([message([span(1, kind=CLIENT, attributes=CHAT)])], [END_MS])
    letter = orjson.loads(dead_letter_from_line(text.split("\n")[1], "t", 0, 5, END_MS))
    assert (letter["reason"], letter["index"]) == ("late", 0)
    assert orjson.loads(base64.b64decode(letter["payload_base64"]))["span_id"] == (1).to_bytes(8, "big").hex()
