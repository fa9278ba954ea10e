"""What goes out when, of spans of one trace that came in several messages."""

from typing import Any

import orjson
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.otlp import message
from tests.unit.test_otlp_tree import CHAT, CLIENT, END_MS, SERVER, span
from udfs.telemetry.batch import ingest_lines
from udfs.telemetry.trace_join import Entry, decode_entry, encode_entry, release

CALL = span(1, kind=CLIENT, attributes=CHAT)
ENGINE = span(2, 1, kind=SERVER, attributes=CHAT | {"gen_ai.server.ttft": 0})
QUEUE = span(3, 2, name="queue", seconds=0.25)


def came(at_ms: int, *spans: Span) -> list[Entry]:
    """What waits of one message."""
    (text,) = ingest_lines([message(list(spans))], [END_MS])
    return [Entry(at_ms, line) for line in text.split("\n")[1:]]


def requests(entries: list[Entry], arrived_by_ms: int | None = None) -> list[dict[str, Any]]:
    return [orjson.loads(request.json) for request in release(entries, arrived_by_ms).requests]


def test_a_client_and_its_server_and_a_phase_are_one_request_whatever_came_first() -> None:
    entries = came(1, QUEUE) + came(2, ENGINE) + came(3, CALL)
    (request,) = requests(entries)
    assert request["span_id"] == (1).to_bytes(8, "big").hex()
    assert (request["time_to_first_token_seconds"], request["queue_seconds"]) == (0, 0.25)
    assert (request["attempts"], request["child_span_count"]) == (1, 2)
    assert requests(entries[::-1]) == [request]


def test_a_request_waits_its_own_time_and_holds_what_lies_below_it() -> None:
    entries = came(10, QUEUE) + came(20, ENGINE)
    assert release(entries, 19) == release(entries, 9)
    assert release(entries, 19).waiting == tuple(entries)
    out = release(entries, 20)
    assert (len(out.requests), out.children, out.waiting) == (1, 1, ())


def test_a_span_without_a_request_is_a_child_when_its_time_is_over() -> None:
    out = release(came(10, QUEUE) + came(20, CALL), 10)
    assert (out.requests, out.children) == ((), 1)
    assert out.waiting == tuple(came(20, CALL))


def test_one_of_two_requests_goes_and_the_other_waits_on() -> None:
    entries = came(10, CALL) + came(30, span(8, kind=CLIENT, attributes=CHAT))
    out = release(entries, 20)
    assert [orjson.loads(r.json)["span_id"] for r in out.requests] == [(1).to_bytes(8, "big").hex()]
    assert out.waiting == tuple(entries[1:])


def test_retries_in_messages_of_their_own_are_attempts() -> None:
    tries = [span(number, 1, kind=CLIENT, attributes=CHAT, error=number < 7) for number in (5, 6, 7)]
    entries = came(1, CALL) + [entry for one in tries for entry in came(2, one)]
    (request,) = requests(entries)
    assert (request["attempts"], request["child_span_count"]) == (3, 3)


def test_attempts_that_a_span_states_are_kept() -> None:
    (request,) = requests(came(1, span(1, kind=CLIENT, attributes=CHAT | {"slacktide.attempts": 4})))
    assert request["attempts"] == 4


def test_a_second_copy_is_a_child_and_changes_nothing() -> None:
    entries = came(1, CALL) + came(2, QUEUE, ENGINE) + came(5, QUEUE) + came(9, QUEUE)
    out = release(entries, None)
    assert (len(out.requests), out.children) == (1, 4)
    assert requests(entries) == requests(entries[:3])


def test_a_child_gives_what_the_request_lacks_the_good_one_before_the_failed_then_the_first_to_start() -> None:
    def child(number: int, tenant: str, seconds: float, *, error: bool = False) -> Span:
        return span(number, 1, seconds=seconds, error=error, attributes={"tenant": tenant})

    children = [child(5, "failed", 9, error=True), child(6, "second", 1), child(7, "first", 2), child(8, "tie", 2)]
    entries = came(1, CALL) + [entry for each in children for entry in came(1, each)]
    assert requests(entries)[0]["tenant"] == "first"
    own = span(1, kind=CLIENT, attributes=CHAT | {"tenant": "own"})
    assert requests(came(1, own) + entries[1:])[0]["tenant"] == "own"


def test_a_failed_try_below_a_good_request_gives_it_no_error() -> None:
    failed = span(5, 1, error=True, attributes={"error.type": "timeout"})
    assert "error_type" not in requests(came(1, CALL) + came(1, failed))[0]
    broken = span(1, kind=CLIENT, error=True, attributes=CHAT)
    assert requests(came(1, broken) + came(1, failed))[0]["error_type"] == "timeout"


def test_parents_in_a_circle_are_none_and_deep_trees_are_no_trouble() -> None:
    circle = [span(5, 6, kind=CLIENT, attributes=CHAT), span(6, 5), span(7, 6)]
    assert [r["child_span_count"] for r in requests([e for s in circle for e in came(1, s)])] == [0]
    depth = 3000
    chain = [CALL, *(span(number, number - 1) for number in range(2, depth + 1))]
    entries = [Entry(1, line) for line in ingest_lines([message(chain[::-1])], [END_MS])[0].split("\n")[1:]]
    assert requests(entries)[0]["child_span_count"] == depth - 1


def test_state_is_versioned() -> None:
    entry = Entry(END_MS, "W" + "0" * 110 + "{}", look=7)
    assert encode_entry(entry)[:26] == "2001700000000000" + "0000000007"
    assert decode_entry(encode_entry(entry)) == entry
    with pytest.raises(ValueError, match="version '1'; this code reads version 2"):
        decode_entry("1" + encode_entry(entry)[1:])
