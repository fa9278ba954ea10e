"""The ingest job in Flink, spans a second end to end, beside a Flink job that only reads the bytes of its topic.

    python -m tests.bench.bench_ingest_job

Two topics: requests that are whole in their message, and traces that must be joined: a client's span, and the phases
below it in a message of their own, which wait for each other in keyed state. The rate of the ingest job is that of its
own books, which count what was read every two seconds; the first windows, in which the JVM compiles, and the last one
are left out. The peer reads a topic once and another that holds the same messages several times; the difference is
free of its start-up. Parallelism 1, all on one machine. The figures promise nothing: they are there to be watched.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from confluent_kafka import Producer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from infra.follow import follow
from infra.replay import ReplayPlan
from infra.replay.generate import Generator
from infra.replay.resolve import resolve
from schemas.books import IngestKind
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, elapsed_seconds, print_table, progress
from tests.bench.time_limit import OutOfTimeError, time_limit

WHOLE_REQUESTS, JOINED_REQUESTS, SPANS_A_TRACE = 240_000, 12_000, 3
RATE_PER_SECOND = 2000  # of event time and Kafka's time: it says how much waits while the join does
JOIN_SECONDS, WATERMARK_SECONDS = 5, 5
PARTITIONS, COPIES = 2, 4
WARM_UP_WINDOWS = 2
END_AFTER_SECONDS = 165
PEER = Path(__file__).with_name("read_bytes_job.py")
WHOLE, JOINED, COPIED = "whole-", "joined-", "copied-"


@dataclass
class Measured:
    """What is known so far: the peer's spans a second, bytes a span, and by prefix the spans read in each window."""

    peer: float | None = None
    bytes_a_span: float = 0.0
    read: dict[str, Counter[int]] = field(default_factory=dict)


Record = tuple[bytes, int]  # value, Kafka's timestamp in milliseconds


def whole_messages(start_ms: int) -> Iterator[Record]:
    """Requests, 16 a message, as the replay sends them."""
    plan = ReplayPlan(rate_per_second=RATE_PER_SECOND, limit=WHOLE_REQUESTS, start=start_ms)
    for message in Generator(resolve(plan), PARTITIONS).messages():
        yield message.value, start_ms + message.due_ns // 1_000_000


def joined_messages(start_ms: int) -> Iterator[Record]:
    """The same as seen by a client, and the phases below each in a second message."""
    plan = ReplayPlan(rate_per_second=RATE_PER_SECOND, limit=JOINED_REQUESTS, start=start_ms, children=True)
    for message in Generator(resolve(plan), PARTITIONS).messages():
        calls, phases = (ExportTraceServiceRequest.FromString(message.value) for _ in range(2))
        spans = list(calls.resource_spans[0].scope_spans[0].spans)
        for request, below in ((calls, False), (phases, True)):
            kept = request.resource_spans[0].scope_spans[0].spans
            del kept[:]
            kept.extend(span for span in spans if bool(span.parent_span_id) is below)
        for span in calls.resource_spans[0].scope_spans[0].spans:
            span.kind = Span.SPAN_KIND_CLIENT
        at_ms = start_ms + message.due_ns // 1_000_000
        yield calls.SerializeToString(), at_ms
        yield phases.SerializeToString(), at_ms


def load(bench: Engines, prefix: str, records: Iterable[Record]) -> int:
    """Write to a new topic, and behind it a message without spans that moves Kafka's time on; return the bytes."""
    bench.broker.create_topics(prefix=prefix)
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "compression.type": "lz4",
                         "linger.ms": 5, "queue.buffering.max.kbytes": 131_072})  # fmt: skip
    size, at_ms = 0, 0

    def send(value: bytes, partition: int, at_ms: int) -> None:
        while True:
            try:
                producer.produce(prefix + "otlp_spans", value, partition=partition, timestamp=at_ms)
                producer.poll(0)
                return
            except BufferError:
                producer.poll(0.1)

    for number, (value, at_ms) in enumerate(records):
        send(value, number % PARTITIONS, at_ms)
        size += len(value)
    at_ms += (JOIN_SECONDS + 2 * WATERMARK_SECONDS) * 1000
    for partition in range(PARTITIONS):
        send(b"", partition, at_ms)
    if producer.flush(60):
        raise RuntimeError("the broker did not take all messages")
    return size


def ingest(bench: Engines, prefix: str, spans: int, read: Counter[int]) -> None:
    """Run the job until its books have all spans; `read` tells how many, by the end of the window in milliseconds."""
    common = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix]
    common += [f"--name-suffix=-{prefix}", "--join-seconds", str(JOIN_SECONDS), "--max-skew-seconds", "3600"]
    job = bench.flink.run("jobs.ingest", common)
    progress(f"ingest of {prefix}otlp_spans runs")
    for message in follow(bench.kafka, prefix + "books"):
        entry = orjson.loads(message.value())
        if entry["kind"] == IngestKind.SPANS:
            read[entry["window_end_ms"]] += entry["count"]
            progress(f"{prefix}: {read.total():,} of {spans:,} spans are read")
        if read.total() >= spans:
            break
    bench.flink.cancel(job)


def steady_rate(read: Counter[int]) -> float | None:
    """Return spans a second from the end of the warm-up to the last whole window; None where there are too few.

    By time and not by windows: while the job stands still, there is none.
    """
    ends = sorted(read)
    kept = ends[WARM_UP_WINDOWS:-1]
    if not kept:
        return None
    return sum(read[end] for end in kept) / ((kept[-1] - ends[WARM_UP_WINDOWS - 1]) / 1000)


def measure(bench: Engines, measured: Measured) -> None:
    """Fill in `measured`, the rows that matter most first."""
    start_ms = int(time.time() * 1000) - 600_000
    whole = list(whole_messages(start_ms))
    size = load(bench, WHOLE, whole)
    measured.bytes_a_span = size / WHOLE_REQUESTS
    progress(f"{WHOLE_REQUESTS:,} spans in {len(whole):,} messages are on Kafka")
    ingest(bench, WHOLE, WHOLE_REQUESTS, measured.read.setdefault(WHOLE, Counter()))
    load(bench, COPIED, (record for _ in range(COPIES) for record in whole))
    del whole
    once, several = (peer_seconds(bench, prefix) for prefix in (WHOLE, COPIED))
    measured.peer = (COPIES - 1) * WHOLE_REQUESTS / max(several - once, 1e-3)
    progress(f"peer: {once:.1f} s for the topic, {several:.1f} s for {COPIES} times as much")
    load(bench, JOINED, joined_messages(start_ms))
    ingest(bench, JOINED, JOINED_REQUESTS * SPANS_A_TRACE, measured.read.setdefault(JOINED, Counter()))


def peer_seconds(bench: Engines, prefix: str) -> float:
    """How long the peer takes for a topic, its start-up included."""
    arguments = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix]
    return bench.run_to_end(PEER, [*arguments, f"--name-suffix=-{prefix}"])


def main() -> int:
    """Measure, print, and return the exit status."""
    measured, is_whole = Measured(), True
    try:
        with engines() as bench, time_limit(END_AFTER_SECONDS - elapsed_seconds()):
            progress("Kafka and Flink run")
            measure(bench, measured)
    except OutOfTimeError:
        is_whole = False
    names = {
        WHOLE: ("ingest job, requests whole in a message", WHOLE_REQUESTS),
        JOINED: ("ingest job, traces of two messages joined", JOINED_REQUESTS * SPANS_A_TRACE),
    }
    rows, notes = [], []
    for prefix, (name, spans) in names.items():
        read = measured.read.get(prefix)
        ours = steady_rate(read) if read else None
        ratio = None if ours is None or measured.peer is None else ours / measured.peer
        rows.append(Row(name, "spans/s", ours, measured.peer, None, ratio))
        notes.append(f"{name}: {read.total() if read else 0:,} of {spans:,} spans were read")
    notes += [
        f"peer: a Flink job that only reads the bytes, {measured.bytes_a_span:,.0f} a span; its figure is that of whole"
        " requests",
        f"parallelism 1; the join waits {JOIN_SECONDS} s of Kafka's time, in which {JOIN_SECONDS * RATE_PER_SECOND:,}"
        " traces come",
        *(
            []
            if is_whole
            else [f"broken off after {END_AFTER_SECONDS} s: the last rate is of what was read until then"]
        ),
    ]
    print_table("Ingest job on Kafka", rows, notes=notes)
    return 0 if all(row.us is not None and row.peer is not None for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
