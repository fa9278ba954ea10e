"""Whole replays without Kafka: the same bytes from the same seed, and books that an independent reading confirms."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import orjson
import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from infra.replay import Drift, FaultShares, Position, ReplayPlan, Sent, Slowdown
from infra.replay.generate import FLUSH_REQUESTS_PER_PARTITION, Generator
from infra.replay.message import Message
from infra.replay.report import ReplayReport
from infra.replay.resolve import resolve
from infra.replay.sender import empty_report
from schemas.books import ingest_balance

START_MS = 1_700_000_000_000
NOW_NS = (START_MS + 4_000_000) * 1_000_000
FAULTS = FaultShares(duplicates=0.02, malformed=0.02, late=0.02, skew=0.005)
PLAN = ReplayPlan(seed=3, start=START_MS, limit=8_000, shares=FAULTS)


def generated(plan: ReplayPlan, partitions: int = 2) -> tuple[list[Message], ReplayReport]:
    generator = Generator(resolve(plan, NOW_NS), partitions)
    report = empty_report(generator)
    messages = []
    for message in generator.messages():
        report.count(message)
        messages.append(message)
    report.requests = generator.tally.requests
    return messages, report


def sent_bytes(plan: ReplayPlan) -> list[tuple[int | None, bytes | None, bytes]]:
    return [(message.partition, message.key, message.value) for message in generated(plan)[0]]


def test_same_seed_and_start_same_bytes() -> None:
    plan = replace(PLAN, limit=2_000, shares=replace(FAULTS, late=0.0), children=True, flush_seconds=60)
    once = sent_bytes(plan)
    assert once == sent_bytes(plan)
    assert once != sent_bytes(replace(plan, seed=4))
    assert once != sent_bytes(replace(plan, start=START_MS + 1))


def test_another_start_moves_times_and_ids_only() -> None:
    """So that a second replay is no duplicate of the first, and yet has the same values."""
    early, moved = (
        spans_of(generated(replace(PLAN, start=START_MS + by, limit=300, shares=FaultShares()))[0]) for by in (0, 5_000)
    )
    assert [span["attributes"] for span in early] == [span["attributes"] for span in moved]
    assert not {span["id"] for span in early} & {span["id"] for span in moved}
    assert {b["end"] - a["end"] for a, b in zip(early, moved, strict=True)} == {5_000_000_000}


def test_a_fault_changes_no_other_request() -> None:
    clean = {span["end"]: span["attributes"] for span in spans_of(generated(replace(PLAN, shares=FaultShares()))[0])}
    faulty = [m for m in generated(PLAN)[0] if m.sent is Sent.CLEAN]
    assert len(faulty) > 400
    assert all(clean[span["end"]] == span["attributes"] for span in spans_of(faulty))


def spans_of(messages: list[Message]) -> list[dict[str, Any]]:
    requests = (ExportTraceServiceRequest.FromString(message.value) for message in messages)
    return [
        {
            "id": (span.trace_id, span.span_id),
            "end": span.end_time_unix_nano,
            "start": span.start_time_unix_nano,
            "root": not span.parent_span_id,
            "attributes": {attribute.key: attribute.value.SerializeToString() for attribute in span.attributes},
        }
        for request in requests
        for span in request.resource_spans[0].scope_spans[0].spans
    ]


def books_by_reading(messages: list[Message], encoding: str) -> tuple[Counter[str], Counter[str]]:
    """Ingest's rules of schemas.books and docs, applied message by message with nothing of the replay's own."""
    books: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    newest: defaultdict[int, int] = defaultdict(int)
    seen: set[Any] = set()
    for message in messages:
        assert message.partition is not None
        try:
            spans = read(message.value, encoding)
        except (DecodeError, orjson.JSONDecodeError):
            books["spans"] += 1
            letters["malformed_" + encoding.removeprefix("otlp_")] += 1
            continue
        for trace_id, span_id, parent, start_ns, end_ns in spans:
            books["spans"] += 1
            event_ms = end_ns // 1_000_000
            if parent:
                books["child"] += 1
            elif len(trace_id) != 16 or len(span_id) != 8:
                letters["bad_id"] += 1
            elif end_ns < start_ns:
                letters["bad_time"] += 1
            elif event_ms > NOW_NS // 1_000_000 + 300_000:
                letters["clock_skew"] += 1
            elif event_ms < newest[message.partition] - 600_000:
                letters["late"] += 1
            else:
                newest[message.partition] = max(newest[message.partition], event_ms)
                books["duplicate" if (trace_id, span_id) in seen else "requests"] += 1
                seen.add((trace_id, span_id))
    books["late"] = letters["late"]
    books["dead"] = sum(letters.values()) - letters["late"]
    return books, letters


def read(value: bytes, encoding: str) -> list[tuple[bytes, bytes, bytes, int, int]]:
    if encoding == "otlp_json":
        spans = orjson.loads(value)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        ids = [[bytes.fromhex(s.get(name, "")) for name in ("traceId", "spanId", "parentSpanId")] for s in spans]
        times = [(int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"])) for s in spans]
        return [(trace, span, parent, *both) for (trace, span, parent), both in zip(ids, times, strict=True)]
    [resource] = ExportTraceServiceRequest.FromString(value).resource_spans
    return [
        (s.trace_id, s.span_id, s.parent_span_id, s.start_time_unix_nano, s.end_time_unix_nano)
        for s in resource.scope_spans[0].spans
    ]


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("children", [False, True])
def test_the_report_says_what_ingest_must_count(encoding: str, partitions: int, children: bool) -> None:
    plan = replace(PLAN, encoding=encoding, children=children, flush_seconds=120)
    messages, report = generated(plan, partitions)
    books, letters = books_by_reading(messages, encoding)
    expected = report.expected_books()
    assert dict(expected) == {kind: books[kind] for kind in expected}
    assert report.expected_dead_letters() == dict(letters)
    assert ingest_balance(expected) == 0
    assert report.requests == 8_000 + FLUSH_REQUESTS_PER_PARTITION * partitions
    faults = sum(
        counts.requests for kind, counts in report.sent.items() if kind is not Sent.DUPLICATE and kind.is_fault
    )
    assert expected["requests"] + faults == report.requests
    assert all(report.sent[kind].requests > 15 for kind in Sent)


def test_faults_take_no_other_span_with_them_and_everything_goes_in_the_order_of_its_time() -> None:
    messages, _ = generated(replace(PLAN, flush_seconds=60))
    assert [message.due_ns for message in messages] == sorted(message.due_ns for message in messages)
    for message in messages:
        if message.sent is not Sent.CLEAN:
            assert (message.requests, message.children) == (1, 0)


def test_messages_are_batched_like_the_collectors() -> None:
    messages, _ = generated(replace(PLAN, shares=FaultShares(), batch_spans=7, batch_seconds=0.5, children=True))
    assert max(message.requests + message.children for message in messages) == 6  # whole requests, of three spans
    for message in messages:
        ends = [span["end"] for span in spans_of([message]) if span["root"]]
        assert ends == sorted(ends)
        assert ends[-1] - ends[0] <= 500_000_000
    assert sum(message.requests for message in messages) == 8_000
    firsts = [message.first_event_ns for message in messages]
    assert firsts == sorted(firsts)


def test_partitions_take_turns_and_keyed_messages_hold_one_trace() -> None:
    messages, _ = generated(replace(PLAN, limit=500, shares=FaultShares()), partitions=3)
    assert [message.partition for message in messages] == [i % 3 for i in range(len(messages))]
    keyed, _ = generated(replace(PLAN, limit=500, shares=FaultShares(), keyed=True, children=True))
    assert len(keyed) == 500
    for message in keyed:
        [trace_id] = {span["id"][0] for span in spans_of([message])}
        assert (message.key, message.partition) == (trace_id.hex().encode(), None)


def test_at_a_steady_rate_events_come_at_that_rate() -> None:
    messages, report = generated(
        ReplayPlan(start=START_MS, rate_per_second=1_000, limit=5_000, speed_up=1.0, shares=FaultShares())
    )
    ends = [span["end"] for span in spans_of(messages)]
    assert ends == [(START_MS + i) * 1_000_000 for i in range(5_000)]
    assert (report.first_event_ms, report.last_event_ms) == (START_MS, START_MS + 4_999)


def test_by_default_the_last_request_ends_now() -> None:
    _, report = generated(ReplayPlan(limit=3_000))
    assert report.last_event_ms is not None
    assert 0 <= NOW_NS // 1_000_000 - report.last_event_ms <= 1


def test_flush_reaches_ahead_on_every_partition() -> None:
    plan = replace(PLAN, limit=1_000, shares=FaultShares(), flush_seconds=120)
    messages, _ = generated(plan, partitions=3)
    last_ns = max(message.last_event_ns for message in messages if message.sent is Sent.CLEAN)
    flushes = messages[-FLUSH_REQUESTS_PER_PARTITION * 3 :]
    assert {message.sent for message in flushes} == {Sent.FLUSH}
    assert {message.last_event_ns for message in flushes} == {last_ns + 120_000_000_000}
    assert Counter(message.partition for message in flushes) == dict.fromkeys(range(3), FLUSH_REQUESTS_PER_PARTITION)


def test_drift_and_slow_episodes_hit_what_they_should() -> None:
    half = Position(share=0.5)
    plan = replace(PLAN, limit=2_000, shares=FaultShares())
    plain = Generator(resolve(plan, NOW_NS), 1)
    drifting = Generator(resolve(replace(plan, drifts=(Drift("prompt_entropy", half),)), NOW_NS), 1)
    list(drifting.messages())
    [(drift, at_ns)] = drifting.resolved.drifts
    assert at_ns == pytest.approx(plain.resolved.source.last_ns / 2, abs=1)
    ends = list(plain.messages())
    touched = sum(span["end"] >= START_MS * 1_000_000 + at_ns for span in spans_of(ends))
    assert drifting.tally.drifted[drift] == touched > 500

    slow, _ = generated(replace(plan, slowdowns=(Slowdown(4.0, half),)))
    took = [(s["start"] - START_MS * 1_000_000, s["end"] - s["start"]) for s in spans_of(slow)]
    before, after = ([d for at, d in took if (at >= at_ns) is late] for late in (False, True))
    assert sum(after) / len(after) > 3 * sum(before) / len(before)
