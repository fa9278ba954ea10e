"""The drift job on one million requests from Kafka, beside a Flink job that only reads and parses them.

Run with `python -m tests.bench.bench_drift_job`, or with the names of the loads to measure: `tenants` has a monitor as
people have them, `series` 200 series of 6 features at 20,000 requests a second of event time. Both jobs are submitted
with `flink run` to one standalone cluster, read one topic to its end, and run at the same parallelism. Start-up is told
by a run over a topic of half a million requests, and taken off a run over a million more: so submission, the first
Python worker, the last checkpoint, and the JVM's compiling of each job's own generated code are apart. Requests have
the headers that ingest gives them; the peer parses their JSON, the drift job reads the headers. Exits with 1 when the
drift job has less of the other's rate than its target.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import orjson
from confluent_kafka import Producer

from infra.follow import follow
from jobs.monitors import load_monitors
from schemas.model_card import CARDS_FOLDER
from schemas.request_headers import request_headers
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_least, print_table, progress
from tests.bench.trace_requests import TraceRequest, shifted, trace_requests
from udfs.references.profile import ReferenceProfile

REQUESTS, WARM_UP, DISTINCT = 1_000_000, 500_000, 100_000
START_MS = 1_750_000_200_000  # on a slice's edge
FEATURES = ("input_tokens", "output_tokens", "time_to_first_token_seconds", "time_per_output_token_seconds")
ROUNDS = 2  # the least of these is taken: other processes only ever add time
PEER = Path(__file__).with_name("read_only_job.py")
_runs = count()


@dataclass(frozen=True)
class Load:
    """What is sent and watched; `target` is the least share of the peer's rate (issue: the pipeline, the engine)."""

    name: str
    rate_per_second: int
    features: tuple[str, ...]
    target: float
    tenants: int | None = None  # None: those of the trace

    @property
    def large(self) -> str:
        """Prefix of the topics of the measured runs."""
        return f"{self.name}-large-"

    @property
    def small(self) -> str:
        """Prefix of the topics of the runs that tell start-up."""
        return f"{self.name}-small-"

    def requests(self) -> list[TraceRequest]:
        """The distinct requests."""
        found = list(trace_requests(DISTINCT, self.rate_per_second, START_MS))
        if self.tenants is None:
            return found
        return [_of_tenant(request, number % self.tenants) for number, request in enumerate(found)]


LOADS = (
    Load("tenants", 1000, FEATURES, 0.6),
    Load("series", 20_000, (*FEATURES, "end_to_end_seconds", "queue_seconds"), 0.5, tenants=200),
)


def _of_tenant(request: TraceRequest, number: int) -> TraceRequest:
    body = orjson.loads(request.value) | {"tenant": f"tenant-{number}", "service_name": "chat", "model": "model"}
    return TraceRequest(request.event_time_ms, request.trace_id, orjson.dumps(body))


def send(bench: Engines, prefix: str, requests: Iterator[TraceRequest]) -> None:
    """Write the requests to the topic, keyed as ingest keys them."""
    bench.broker.create_topics(prefix=prefix)
    producer = Producer(
        {"bootstrap.servers": bench.broker.bootstrap_servers, "compression.type": "lz4", "linger.ms": 5,
         "queue.buffering.max.messages": 200_000}
    )  # fmt: skip
    for request in requests:
        while True:
            try:
                producer.produce(
                    prefix + "requests",
                    request.value,
                    request.trace_id,
                    headers=request_headers(orjson.loads(request.value)),
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("the broker did not take all requests")


def repeated(distinct: list[TraceRequest], times: int, rate_per_second: int) -> Iterator[TraceRequest]:
    """Yield the requests over and over, each time where the time before ended."""
    period_ms = round(len(distinct) / rate_per_second * 1000)
    for repetition in range(times):
        for request in distinct:
            yield shifted(request, repetition * period_ms)


def write_monitors(
    folder: Path,
    sample: list[TraceRequest],
    *,
    window_seconds: int = 300,
    slide_seconds: int = 30,
    bound_seconds: int = 10,
    features: tuple[str, ...] = FEATURES,
) -> Path:
    """One monitor as people have them: a few features, a series a tenant; five minutes sliding by half a minute."""
    bodies = [orjson.loads(request.value) for request in sample]
    columns = {feature: [body[feature] for body in bodies] for feature in features}
    reference = ReferenceProfile.build("bench", columns, source="the bench").save(folder)
    card = next(iter(sorted(CARDS_FOLDER.glob("*.json"))))
    monitor = {
        "name": "bench",
        "group_by": ["service_name", "model", "tenant"],
        "features": list(features),
        "window_seconds": window_seconds,
        "slide_seconds": slide_seconds,
        "reference": reference.name,
        "model_card": str(card),
    }
    file = folder / "monitors.yaml"
    file.write_bytes(orjson.dumps({"watermark_bound_seconds": bound_seconds, "monitors": [monitor]}))  # JSON is YAML
    return file


def seconds(bench: Engines, job: str | Path, prefix: str, monitors: Path, parallelism: int) -> float:
    """How long one run takes that reads the topic from its beginning to its end."""
    arguments = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix]
    arguments += ["--monitors", str(monitors), "--parallelism", str(parallelism), f"--name-suffix=-{next(_runs)}"]
    return bench.run_to_end(job, [*arguments, "--until-now"])


def rates(bench: Engines, load: Load, monitors: Path, parallelism: int) -> tuple[float, float]:
    """Requests a second of the drift job and of its peer, start-up apart; runs take turns."""
    found: dict[tuple[str | Path, str], list[float]] = {}
    for _ in range(ROUNDS):
        for job in (PEER, "jobs.drift"):
            for prefix in (load.small, load.large):
                progress(f"{load.name}: {Path(job).stem} at parallelism {parallelism} over {prefix}requests")
                found.setdefault((job, prefix), []).append(seconds(bench, job, prefix, monitors, parallelism))
    least = {run: min(times) for run, times in found.items()}
    ours, peers = (REQUESTS / (least[job, load.large] - least[job, load.small]) for job in ("jobs.drift", PEER))
    return ours, peers


def verdicts_of_one_run(bench: Engines, load: Load) -> int:
    """How many verdicts a run wrote; every run must have written the same."""
    messages = follow(bench.kafka, load.large + "verdicts", to_end=True)
    times = Counter(orjson.loads(message.value())["verdict_id"] for message in messages)
    if len(set(times.values())) != 1:
        raise RuntimeError("the runs judged different windows")
    return len(times)


def measured(bench: Engines, load: Load) -> tuple[list[Row], str]:
    """The rows of one load, and a note on what it was."""
    progress(f"{load.name}: {2 * WARM_UP + REQUESTS:,} requests go to Kafka")
    distinct = load.requests()
    monitors = write_monitors(bench.folder, distinct[:20_000], features=load.features)
    send(bench, load.small, repeated(distinct, WARM_UP // DISTINCT, load.rate_per_second))
    send(bench, load.large, repeated(distinct, (WARM_UP + REQUESTS) // DISTINCT, load.rate_per_second))
    seconds(bench, PEER, load.small, monitors, parallelism=2)  # the JVM compiles what is not a job's own
    rows = []
    for parallelism in (1, 2):
        ours, peer = rates(bench, load, monitors, parallelism)
        target, reached = at_least(ours / peer, load.target)
        name = f"{load.name}: drift job, {REQUESTS:,} requests, parallelism {parallelism}"
        rows.append(Row(name, "requests/s", ours, peer, None, ours / peer, target, reached))
    n_judges = len(load_monitors(monitors).monitors[0].judges)
    tenants = load.tenants or "the trace's"
    note = (
        f"{load.name}: {n_judges} features, window 300 s, slide 30 s, a series for each of {tenants} tenants,"
        f" {load.rate_per_second:,} requests/s of event time, {len(distinct[0].value)} bytes a request;"
        f" {verdicts_of_one_run(bench, load):,} verdicts"
    )
    return rows, note


def main(names: list[str]) -> int:
    """Measure, print, and return the exit status."""
    if unknown := set(names) - {load.name for load in LOADS}:
        print(f"no such load: {', '.join(sorted(unknown))}; there are {', '.join(load.name for load in LOADS)}")
        return 2
    with engines() as bench:
        found = [measured(bench, load) for load in LOADS if not names or load.name in names]
    notes = ["peer: a Flink job that reads and parses the same columns of the same topic; start-up taken off both"]
    rows = [row for of_load, _ in found for row in of_load]
    return 0 if print_table("Drift job on Kafka", rows, notes=[*notes, *(note for _, note in found)]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
