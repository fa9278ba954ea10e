"""From a request's event time to its verdict on Kafka, at 2,000 requests a second.

Run with `python -m tests.bench.bench_latency`. Two ways, one after the other: requests written to topic `requests` as
they happen (the drift job alone), and the replay's OTLP messages through the ingest job (the whole way). In both, event
time is the time of sending.

A request's verdict is that of the first window that holds it: of its series, ending at the end of its slice. It has
come when a consumer that reads committed records has the last of the features. The latency is that instant less the
request's event time, both of this machine's clock; P95 is over all requests that were sent between the end of the
warm-up and the last windows that could close. It may take a slide (the slice fills), the watermark bound, a checkpoint
interval (the verdict waits for its transaction) and 3 s. Exits with 1 when it takes longer or a verdict is missing.
"""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy as np
import orjson
from confluent_kafka import Producer
from numpy.typing import NDArray

from infra.follow import follow
from infra.replay import ReplayPlan, replay
from jobs.kafka_client import KafkaClient
from schemas.requests import event_time_header
from schemas.times import epoch_ms
from tests.bench.bench_drift_job import FEATURES, write_monitors
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_most, print_table
from tests.bench.trace_requests import TraceRequest, trace_requests

RATE_PER_SECOND = 2000
SECONDS, WARM_UP_SECONDS = 110, 25
WINDOW_SECONDS, SLIDE_SECONDS, BOUND_SECONDS, CHECKPOINT_SECONDS, ALLOWANCE_SECONDS = 60, 10, 2, 5, 3
LIMIT_SECONDS = SLIDE_SECONDS + BOUND_SECONDS + CHECKPOINT_SECONDS + ALLOWANCE_SECONDS
TICK_SECONDS = 0.01
LABELS = ("service_name", "model", "tenant")

Series = tuple[str, ...]


@dataclass
class Arrivals:
    """When the verdicts of each window came: by (series, window end), a time for each feature."""

    came: dict[tuple[Series, int], list[float]] = field(default_factory=dict)

    def watch(self, kafka: KafkaClient, topic: str) -> None:
        """Note verdicts as they come, for ever."""
        for message in follow(kafka, topic):
            now = time.time()
            body = orjson.loads(message.value())
            window = (tuple(body["series"][label] for label in LABELS), epoch_ms(body["window_end"]))
            self.came.setdefault(window, []).append(now)


def send_requests(bench: Engines, prefix: str, like: list[TraceRequest]) -> None:
    """Write requests that happen now, spread evenly over each second."""
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "linger.ms": 5})
    bodies = cycle([(request.trace_id, orjson.loads(request.value)) for request in like])
    start, sent = time.time(), 0
    while (elapsed := time.time() - start) < SECONDS:
        for trace_id, body in (next(bodies) for _ in range(round(elapsed * RATE_PER_SECOND) - sent)):
            body["event_time_ms"] = now_ms = int(time.time() * 1000)
            producer.produce(prefix + "requests", orjson.dumps(body), trace_id, headers=[event_time_header(now_ms)])
            sent += 1
        producer.poll(0)
        time.sleep(TICK_SECONDS)
    producer.flush(30)


def replay_spans(bench: Engines, prefix: str, _: list[TraceRequest]) -> None:
    """Send OTLP spans that end now."""
    plan = ReplayPlan(
        start="now", rate_per_second=RATE_PER_SECOND, duration_seconds=SECONDS, topic=prefix + "otlp_spans"
    )
    report = replay(plan, bench.kafka)
    if not report.complete:
        raise RuntimeError("the broker did not take all spans")


def latencies(bench: Engines, prefix: str, arrivals: Arrivals) -> tuple[NDArray[np.float64], int]:
    """Latency in seconds of each measured request that has a verdict, and how many have none."""
    requests = [orjson.loads(message.value()) for message in follow(bench.kafka, prefix + "requests", to_end=True)]
    times = [request["event_time_ms"] for request in requests]
    # What stands in a slice that had the bound, and as much again, to be passed by other requests.
    last_ms = max(times) - 2 * BOUND_SECONDS * 1000
    found, missing = [], 0
    for request, at_ms in zip(requests, times, strict=True):
        end_ms = at_ms - at_ms % (SLIDE_SECONDS * 1000) + SLIDE_SECONDS * 1000
        if at_ms < min(times) + WARM_UP_SECONDS * 1000 or end_ms > last_ms:
            continue
        came = arrivals.came.get((tuple(request[label] for label in LABELS), end_ms), [])
        if len(came) == len(FEATURES):
            found.append(max(came) - at_ms / 1000)
        else:
            missing += 1
    return np.array(found), missing


@dataclass(frozen=True)
class Way:
    """One way to a verdict: the jobs on it, and what sends at its beginning."""

    name: str
    jobs: tuple[str, ...]
    send: Callable[[Engines, str, list[TraceRequest]], None]


WAYS = (
    Way("drift-alone", ("jobs.drift",), send_requests),
    Way("whole-way", ("jobs.ingest", "jobs.drift"), replay_spans),
)


def measure(bench: Engines, way: Way, monitors: Path, like: list[TraceRequest]) -> tuple[Row, str]:
    """Run the jobs, send, and return the row and a note that says what it is made of."""
    prefix = f"{way.name}-"
    bench.broker.create_topics(prefix=prefix)
    common = [
        "--bootstrap-servers",
        bench.broker.bootstrap_servers,
        "--topic-prefix",
        prefix,
        f"--name-suffix=-{way.name}",
    ]
    common += ["--checkpoint-interval-seconds", str(CHECKPOINT_SECONDS)]
    own = {"jobs.ingest": [], "jobs.drift": ["--monitors", str(monitors)]}
    running = [bench.flink.run(job, common + own[job]) for job in way.jobs]
    arrivals = Arrivals()
    threading.Thread(target=arrivals.watch, args=(bench.kafka, prefix + "verdicts"), daemon=True).start()
    way.send(bench, prefix, like)
    time.sleep(LIMIT_SECONDS)
    seconds, missing = latencies(bench, prefix, arrivals)
    late = sum(1 for _ in follow(bench.kafka, prefix + "dead_letters", to_end=True))
    for job in running:
        bench.flink.cancel(job)
    p95 = float(np.percentile(seconds, 95))
    target, reached = at_most(p95, LIMIT_SECONDS)
    through = " and ".join(job.removeprefix("jobs.") for job in way.jobs)
    row = Row(
        f"event time to verdict, P95, through {through}",
        "s",
        p95,
        limit=LIMIT_SECONDS,
        ratio=p95 / LIMIT_SECONDS,
        target=target,
        reached=reached and not missing,
    )
    p50, p99 = np.percentile(seconds, [50, 99])
    note = (
        f"{way.name}: {len(seconds):,} requests; P50 {p50:.2f} s, P99 {p99:.2f} s, longest {seconds.max():.2f} s;"
        f" without a verdict {missing}, dead letters {late}"
    )
    return row, note


def main() -> int:
    """Measure both ways, print, and return the exit status."""
    like = list(trace_requests(20_000, RATE_PER_SECOND, int(time.time() * 1000)))
    with engines() as bench:
        monitors = write_monitors(
            bench.folder, like, window_seconds=WINDOW_SECONDS, slide_seconds=SLIDE_SECONDS, bound_seconds=BOUND_SECONDS
        )
        measured = [measure(bench, way, monitors, like) for way in WAYS]
    notes = [
        f"limit: slide {SLIDE_SECONDS} + watermark bound {BOUND_SECONDS} + checkpoint interval {CHECKPOINT_SECONDS}"
        f" + {ALLOWANCE_SECONDS} s, at {RATE_PER_SECOND:,} requests/s, {len(FEATURES)} features, a series a tenant",
        *(note for _, note in measured),
    ]
    return 0 if print_table("Latency of a verdict", [row for row, _ in measured], notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main())
