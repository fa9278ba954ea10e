"""From a request's event time to its verdict on Kafka, at 2,000 requests a second.

Run with `python -m tests.bench.bench_latency`; it takes three and a half minutes. Ingest and drift job run, and two
ways are taken one after the other: requests written to topic `requests` as they happen (the drift job alone), and the
replay's OTLP messages through the ingest job (the whole way). In both, event time is the time of sending.

A request's verdict is that of the first window that holds it: of its series, ending at the end of its slice. It has
come when a consumer that reads committed records has the last of the features. The latency is that instant less the
request's event time, both of this machine's clock; P95 is over all requests that were sent between the end of the
warm-up and the last windows that could close. It may take a slide (the slice fills), the watermark bound, a checkpoint
interval (the verdict waits for its transaction) and 3 s. Exits with 1 when it takes longer or a verdict is missing;
the notes say of which windows, and where the time went.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import orjson
from confluent_kafka import Producer

from infra.follow import follow
from infra.replay import ReplayPlan, Snapshot, replay
from jobs.kafka_client import KafkaClient
from schemas.request_headers import request_headers
from schemas.times import epoch_ms, rfc3339
from tests.bench.bench_drift_job import FEATURES, write_monitors
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_most, elapsed_seconds, print_table, progress
from tests.bench.time_limit import OutOfTimeError, time_limit
from tests.bench.trace_requests import TraceRequest, trace_requests

RATE_PER_SECOND = 2000
SECONDS, WARM_UP_SECONDS = 60, 15
# A slide that is no multiple of the checkpoint interval: every window end meets the checkpoints in another place.
WINDOW_SECONDS, SLIDE_SECONDS, BOUND_SECONDS, CHECKPOINT_SECONDS, ALLOWANCE_SECONDS = 60, 12, 2, 5, 3
# A request waits for ingest's transaction too, which the limit has no time for (docs/operations.md, Latency).
INGEST_CHECKPOINT_SECONDS = 2
LIMIT_SECONDS = SLIDE_SECONDS + BOUND_SECONDS + CHECKPOINT_SECONDS + ALLOWANCE_SECONDS
# Engines and jobs are up after 50 s, and gone within 15 s; in all, four minutes.
END_AFTER_SECONDS = 220
TICK_SECONDS, TELL_SECONDS = 0.01, 10
PREFIX = "latency-"
LABELS = ("service_name", "model", "tenant")
FEW = 5

Series = tuple[str, ...]
Window = tuple[Series, int]


@dataclass
class Arrivals:
    """When the verdicts of each window came: for each feature the seconds at which it was written, and read."""

    came: dict[Window, dict[str, tuple[float, float]]] = field(default_factory=dict)
    failure: Exception | None = None

    def watch(self, kafka: KafkaClient, topic: str) -> None:
        """Note verdicts as they come, for ever."""
        try:
            for message in follow(kafka, topic):
                now = time.time()
                body = orjson.loads(message.value())
                window = (tuple(body["series"][label] for label in LABELS), epoch_ms(body["window_end"]))
                self.came.setdefault(window, {})[body["feature"]] = message.timestamp()[1] / 1000, now
        except Exception as error:  # kept for the thread that measures
            self.failure = error

    def whole(self, window: Window) -> bool:
        """Whether the verdicts on all features of a window are there."""
        return len(self.came.get(window, ())) == len(FEATURES)


class Teller:
    """Says now and then how far the sending is."""

    def __init__(self, way: str, arrivals: Arrivals) -> None:
        self._way, self._arrivals, self._next = way, arrivals, time.time() + TELL_SECONDS

    def tell(self, sent: int) -> None:
        """Say it, if it is time."""
        if time.time() >= self._next:
            self._next += TELL_SECONDS
            progress(f"{self._way}: {sent:,} requests sent, verdicts on {len(self._arrivals.came):,} windows read")


def send_requests(bench: Engines, like: list[TraceRequest], teller: Teller) -> None:
    """Write requests that happen now, spread evenly over each second."""
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "linger.ms": 5})
    bodies = cycle([(request.trace_id, orjson.loads(request.value)) for request in like])
    start, sent = time.time(), 0
    while (elapsed := time.time() - start) < SECONDS:
        for trace_id, body in (next(bodies) for _ in range(round(elapsed * RATE_PER_SECOND) - sent)):
            body["event_time_ms"] = int(time.time() * 1000)
            producer.produce(PREFIX + "requests", orjson.dumps(body), trace_id, headers=request_headers(body))
            sent += 1
        producer.poll(0)
        teller.tell(sent)
        time.sleep(TICK_SECONDS)
    producer.flush(30)


def replay_spans(bench: Engines, _like: list[TraceRequest], teller: Teller) -> None:
    """Send OTLP spans that end now."""

    def told(snapshot: Snapshot) -> None:
        teller.tell(snapshot.requests)

    plan = ReplayPlan(
        start="now", rate_per_second=RATE_PER_SECOND, duration_seconds=SECONDS, topic=PREFIX + "otlp_spans"
    )
    report = replay(plan, bench.kafka, told)
    if not report.complete:
        raise RuntimeError("the broker did not take all spans")


@dataclass(frozen=True)
class Way:
    """One way to a verdict: its name, and what sends at its beginning."""

    name: str
    send: Callable[[Engines, list[TraceRequest], Teller], None]


WAYS = (Way("drift", send_requests), Way("ingest and drift", replay_spans))


@dataclass(frozen=True)
class Sent:
    """What was sent one way: event time of each measured request, the window it waits for, and the record's time."""

    way: Way
    events: list[tuple[int, Window, int]]

    @property
    def windows(self) -> set[Window]:
        """The windows whose verdicts are waited for."""
        return {window for _, window, _ in self.events}


def sent_between(bench: Engines, way: Way, begin_ms: int, end_ms: int) -> Sent:
    """Read from topic `requests` what is measured of the requests that happened in a time."""
    events = []
    # What stands in a slice that had the bound, and as much again, to be passed by other requests.
    first_ms, last_ms = begin_ms + WARM_UP_SECONDS * 1000, end_ms - 2 * BOUND_SECONDS * 1000
    for message in follow(bench.kafka, PREFIX + "requests", since_ms=first_ms, to_end=True):
        request = orjson.loads(message.value())
        at_ms = request["event_time_ms"]
        closes_ms = at_ms - at_ms % (SLIDE_SECONDS * 1000) + SLIDE_SECONDS * 1000
        if first_ms <= at_ms and closes_ms <= last_ms:
            events.append((at_ms, (tuple(request[label] for label in LABELS), closes_ms), message.timestamp()[1]))
    return Sent(way, events)


def start_jobs(bench: Engines, like: list[TraceRequest]) -> list[str]:
    """Make topics and monitors, start both jobs, and return their ids."""
    bench.broker.create_topics(prefix=PREFIX)
    monitors = write_monitors(
        bench.folder, like, window_seconds=WINDOW_SECONDS, slide_seconds=SLIDE_SECONDS, bound_seconds=BOUND_SECONDS
    )
    common = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", PREFIX]
    own = {
        "jobs.ingest": ["--checkpoint-interval-seconds", str(INGEST_CHECKPOINT_SECONDS)],
        "jobs.drift": ["--checkpoint-interval-seconds", str(CHECKPOINT_SECONDS), "--monitors", str(monitors)],
    }
    running = []
    for job, options in own.items():
        running.append(bench.flink.run(job, common + options))
        progress(f"{job} runs")
    return running


def run_ways(bench: Engines, like: list[TraceRequest], arrivals: Arrivals, done: list[Sent]) -> None:
    """Send one way after the other, wait for the verdicts, and put what was sent into `done`."""
    running = start_jobs(bench, like)
    threading.Thread(target=arrivals.watch, args=(bench.kafka, PREFIX + "verdicts"), daemon=True).start()
    for way in WAYS:
        begin_ms = int(time.time() * 1000)
        progress(f"{way.name}: {RATE_PER_SECOND:,} requests a second for {SECONDS} s")
        way.send(bench, like, Teller(way.name, arrivals))
        end_ms = int(time.time() * 1000)
        # A transaction of ingest later, what it has read is in `requests`.
        time.sleep(CHECKPOINT_SECONDS + ALLOWANCE_SECONDS)
        done.append(sent_between(bench, way, begin_ms, end_ms))
        progress(f"{way.name}: {len(done[-1].events):,} requests of {len(done[-1].windows):,} windows are measured")
    wait_for_verdicts(arrivals, {window for sent in done for window in sent.windows})
    for job in running:
        bench.flink.cancel(job)


def wait_for_verdicts(arrivals: Arrivals, windows: set[Window]) -> None:
    """Return when all are there, or none can come any more."""
    give_up = time.time() + LIMIT_SECONDS
    while (lacking := sum(not arrivals.whole(window) for window in windows)) and time.time() < give_up:
        if arrivals.failure is not None:
            raise arrivals.failure
        time.sleep(0.1)
    progress(f"verdicts on {lacking:,} of {len(windows):,} windows are missing")


def judged(sent: Sent, arrivals: Arrivals) -> tuple[Row, list[str]]:
    """Return the row of one way, and the notes that say what it is made of."""
    name = f"event time to verdict, P95, through {sent.way.name}"
    came = {window: arrivals.came[window].values() for window in sent.windows if arrivals.whole(window)}
    waited = [(at_ms, written, window) for at_ms, window, written in sent.events if window in came]
    notes = _missing(sent, arrivals)
    if not waited:
        return Row(name, "s", None, limit=LIMIT_SECONDS, target=f"<= {LIMIT_SECONDS}", reached=False), notes
    read = {window: max(at for _, at in times) for window, times in came.items()}
    seconds = np.array([read[window] - at_ms / 1000 for at_ms, _, window in waited])
    p50, p95, p99 = np.percentile(seconds, [50, 95, 99])
    target, reached = at_most(float(p95), LIMIT_SECONDS)
    row = Row(name, "s", float(p95), limit=LIMIT_SECONDS, target=target, reached=reached and not notes)
    figures = (
        f"{len(seconds):,} requests: P50 {p50:.2f} s, P95 {p95:.2f} s, P99 {p99:.2f} s, longest {seconds.max():.2f} s"
    )
    stages = {
        "event to its record": [written / 1000 - at_ms / 1000 for at_ms, written, _ in waited],
        "window's end to verdict": [max(at for at, _ in came[w]) - w[1] / 1000 for w in came],
        "verdict to its commit": [read[w] - max(at for at, _ in came[w]) for w in came],
    }
    told = [f"{stage} {np.median(times):.2f} s (at most {max(times):.2f})" for stage, times in stages.items()]
    return row, [f"{sent.way.name}: {figures}", f"    medians: {'; '.join(told)}", *notes]


def _missing(sent: Sent, arrivals: Arrivals) -> list[str]:
    """Say which verdicts did not come."""
    requests = Counter(window for _, window, _ in sent.events if not arrivals.whole(window))
    lines = [
        f"    {'/'.join(series)}, window to {rfc3339(end_ms)}: {len(arrivals.came.get((series, end_ms), ()))} of"
        f" {len(FEATURES)} verdicts, {requests[series, end_ms]:,} requests wait"
        for series, end_ms in sorted(requests)[:FEW]
    ]
    if not lines:
        return []
    return [
        f"{sent.way.name}: {requests.total():,} requests of {len(requests)} windows have no verdict, such as",
        *lines,
    ]


def main() -> int:
    """Measure both ways, print, and return the exit status."""
    arrivals = Arrivals()
    done: list[Sent] = []
    failed: list[str] = []
    progress("making requests")
    like = list(trace_requests(20_000, RATE_PER_SECOND, int(time.time() * 1000)))
    progress("starting Kafka and Flink")
    try:
        with engines() as bench:
            with time_limit(END_AFTER_SECONDS - elapsed_seconds()):
                run_ways(bench, like, arrivals, done)
            dead = sum(1 for _ in follow(bench.kafka, PREFIX + "dead_letters", to_end=True))
            failed += [f"{dead} dead letters"] if dead else []
    except OutOfTimeError:
        failed.append(f"not done after {END_AFTER_SECONDS} s")
    done += [Sent(way, []) for way in WAYS[len(done) :]]
    measured = [judged(sent, arrivals) for sent in done]
    notes = [
        f"ingest commits every {INGEST_CHECKPOINT_SECONDS} s, drift every {CHECKPOINT_SECONDS} s",
        f"limit: slide {SLIDE_SECONDS} + watermark bound {BOUND_SECONDS} + checkpoint interval {CHECKPOINT_SECONDS}"
        f" + {ALLOWANCE_SECONDS} s, at {RATE_PER_SECOND:,} requests/s, {len(FEATURES)} features, a series a tenant",
        *(line for _, lines in measured for line in lines),
        *(f"FAILED: {problem}" for problem in failed),
    ]
    reached = print_table("Latency of a verdict", [row for row, _ in measured], notes=notes)
    return 0 if reached and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
