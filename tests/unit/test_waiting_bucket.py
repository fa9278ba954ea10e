"""What of a bucket of traces goes out, by event time and by the looks at the watermark."""

from collections import Counter

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.otlp import message
from tests.unit.test_otlp_tree import CHAT, CLIENT, END_MS, span
from udfs.telemetry.batch import ingest_lines
from udfs.telemetry.trace_join import Entry, encode_entry
from udfs.telemetry.waiting_bucket import bucket_of, release_due
from udfs.telemetry.wall_clock import MAX_LOOKS, Cutoff, Look, cutoff

WAIT_MS = 1000


def call(trace: int) -> Span:
    """A client's span alone in its trace: a request, once its time is over."""
    result = span(1, kind=CLIENT, attributes=CHAT)
    result.trace_id = trace.to_bytes(16, "big")
    return result


def text(spans: Span, at_ms: int, look: int = 0) -> str:
    """The entry of a span."""
    (line,) = ingest_lines([message([spans])], [END_MS])[0].split("\n")[1:]
    return encode_entry(Entry(at_ms, line, look))


def traces_out(texts: list[str], at: Cutoff) -> list[int]:
    return [int(request.trace_id, 16) for request in release_due(texts, at).requests]


def test_each_trace_of_a_bucket_goes_in_its_own_time() -> None:
    texts = [text(call(7), 10), text(call(8), 20), text(call(9), 20), text(call(9), 15)]
    out = release_due(texts, Cutoff(15))
    assert ([int(r.trace_id, 16) for r in out.requests], out.children) == ([7, 9], 1)  # the copy is a child
    assert out.waiting == (texts[1],)


def test_where_nothing_is_due_nothing_is_to_be_written() -> None:
    below = span(3, 1, name="queue")
    below.trace_id = (7).to_bytes(16, "big")
    held = [text(below, 5), text(call(7), 20)]  # due, but its request is not
    for texts in ([], [text(call(7), 20)], held):
        assert release_due(texts, Cutoff(15)) == release_due([], Cutoff(0))
    assert release_due(held, Cutoff(15)).waiting is None


def test_while_the_watermark_stands_still_a_trace_goes_at_its_third_look() -> None:
    """In a bucket that never is empty, looks have long been made when a span comes."""
    texts = [text(call(7), 10, look=40), text(call(8), 10, look=41), text(call(9), 9500, look=40)]
    at = [cutoff(Look(8000 + n * WAIT_MS, 5, 41 + n), Look(9000 + n * WAIT_MS, 5, 42 + n), WAIT_MS) for n in range(3)]
    assert [traces_out(texts, each) for each in at] == [[], [7], [7, 8, 9]]


def test_while_the_watermark_creeps_a_trace_goes_after_the_tenth_look_with_all_that_came() -> None:
    below = span(3, 1, name="queue")
    below.trace_id = (7).to_bytes(16, "big")
    texts = [text(call(7), 90_000, look=40), text(below, 95_000, look=45), text(call(8), 90_000, look=41)]
    before, last = Look(1000, 5, 40 + MAX_LOOKS), Look(2000, 6, 41 + MAX_LOOKS)
    assert traces_out(texts, cutoff(None, before, WAIT_MS)) == []
    out = release_due(texts, cutoff(before, last, WAIT_MS))
    assert ([int(r.trace_id, 16) for r in out.requests], out.children, out.waiting) == ([7], 1, (texts[2],))


def test_buckets_are_evenly_filled_also_where_the_ids_of_traces_begin_alike() -> None:
    for start in (0, 0x6567_8900 << 96):
        filled = Counter(bucket_of(f"{start + number:032x}", 128) for number in range(12_800))
        assert set(filled) == set(range(128))
        assert max(filled.values()) < 200
