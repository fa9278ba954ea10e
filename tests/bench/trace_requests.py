"""Requests as the ingest job writes them to topic `requests`, for the benches of the jobs behind it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import orjson

from infra.replay import ReplayPlan
from infra.replay.generate import Generator
from infra.replay.resolve import resolve
from udfs.telemetry.batch import REQUEST_INDEX_AT, REQUEST_TIME_AT, ingest_lines, request_of_line

MESSAGES_A_BATCH = 500


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request: its event time, its Kafka key, and its value."""

    event_time_ms: int
    trace_id: str
    value: bytes


def trace_requests(count: int, rate_per_second: float, start_ms: int) -> Iterator[TraceRequest]:
    """Yield `count` requests of the replayed trace at a steady rate, in the order in which their spans are sent.

    They pass through the replay's encoder and ingest's decoder, so every byte is as ingest writes it. About 60
    microseconds each.
    """
    plan = ReplayPlan(rate_per_second=rate_per_second, limit=count, start=start_ms)
    messages = (message.value for message in Generator(resolve(plan), partitions=1).messages())
    while batch := list(islice(messages, MESSAGES_A_BATCH)):
        texts = ingest_lines(batch, [start_ms] * len(batch), encoding="otlp_proto", lenient=False, max_skew_ms=10**12)
        for line in "\n".join(texts).split("\n"):
            if line.startswith("R"):
                event_time_ms = int(line[REQUEST_TIME_AT:REQUEST_INDEX_AT])
                yield TraceRequest(event_time_ms, line[1:33], request_of_line(line).encode())


def shifted(request: TraceRequest, by_ms: int) -> TraceRequest:
    """Return the request as it would come `by_ms` later."""
    body = orjson.loads(request.value)
    body["event_time_ms"] += by_ms
    body["start_time_ms"] += by_ms
    return TraceRequest(request.event_time_ms + by_ms, request.trace_id, orjson.dumps(body))
