"""The ingest job on spans from Kafka: requests that need no other message, and requests that wait for one.

Run with `python -m tests.bench.bench_ingest_job`. Both kinds are read twice, with the join and without
(`--join-seconds 0`: every message is taken for whole), by the same job on one standalone cluster at parallelism 1, to
the end of the topic. Start-up is told by a topic of a few messages, and taken off. Exits with 1 when requests that
wait for nothing pay more than 15 % for the join.
"""

import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psutil
from confluent_kafka import Producer

from tests.bench.bench_decode import SPANS, exports
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_least, print_table

MESSAGES, FEW, DISTINCT = 6_000, 20, 200
ROUNDS = 2  # the least of these is taken: other processes only ever add time
TARGET = 0.85
JOB = Path(__file__).with_name("ingest_to_end_job.py")
SETTLED, WAITING = "settled", "waiting"
_runs = count()


def messages(kind: str, number: int) -> Iterator[bytes]:
    """Yield messages of 64 server spans of 17 attributes, all traces distinct; what waits has a parent elsewhere."""
    draw = random.Random(number)
    distinct = exports(DISTINCT)
    for at in range(number):
        request = distinct[at % DISTINCT]
        for span in request.resource_spans[0].scope_spans[0].spans:
            span.trace_id, span.span_id = draw.randbytes(16), draw.randbytes(8)
            span.parent_span_id = draw.randbytes(8) if kind == WAITING else b""
        yield request.SerializeToString()


def load(bench: Engines, prefix: str, kind: str, number: int) -> None:
    """Write a topic; Kafka's time goes on by a minute in it, so that what waits goes out while it is read."""
    bench.broker.create_topics(prefix=prefix)
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "compression.type": "lz4"})
    start_ms = int(time.time() * 1000)
    for at, value in enumerate(messages(kind, number)):
        while True:
            try:
                producer.produce(
                    prefix + "otlp_spans", value, partition=at % 2, timestamp=start_ms + at * 60_000 // number
                )
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise RuntimeError("the broker did not take all messages")


def measured(bench: Engines, kind: str, join_seconds: int) -> tuple[float, float]:
    """Spans a second, and microseconds of CPU a span (TaskManager with its Python workers), start-up apart."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for size in ("few", "many"):
            found = _run(bench, f"{kind}-{size}-", join_seconds)
            best[size] = min(best.get(size, found), found)
    spans = (MESSAGES - FEW) * SPANS
    (few_seconds, few_cpu), (many_seconds, many_cpu) = best["few"], best["many"]
    return spans / (many_seconds - few_seconds), (many_cpu - few_cpu) / spans * 1e6


def _run(bench: Engines, prefix: str, join_seconds: int) -> tuple[float, float]:
    arguments = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix]
    arguments += ["--join-seconds", str(join_seconds), f"--name-suffix=-{next(_runs)}"]
    before = _cpu_seconds(bench)
    seconds = bench.run_to_end(JOB, arguments)
    return seconds, _cpu_seconds(bench) - before


def _cpu_seconds(bench: Engines) -> float:
    """CPU time of the TaskManager and of all its Python workers, ended ones among them."""
    service = bench.flink.taskmanager.process()
    if service is None:
        raise RuntimeError("there is no TaskManager")
    family = [psutil.Process(service.pid), *psutil.Process(service.pid).children(recursive=True)]
    times = [process.cpu_times() for process in family]
    return float(sum(t.user + t.system + t.children_user + t.children_system for t in times))


def main() -> int:
    """Measure, print, and return the exit status."""
    with engines() as bench:
        for kind in (SETTLED, WAITING):
            load(bench, f"{kind}-few-", kind, FEW)
            load(bench, f"{kind}-many-", kind, MESSAGES)
        _run(bench, f"{SETTLED}-many-", 30)  # the JVM compiles what is hot
        rows, costs = [], []
        for kind in (SETTLED, WAITING):
            (ours, cpu), (peer, peer_cpu) = (measured(bench, kind, seconds) for seconds in (30, 0))
            target, reached = at_least(ours / peer, TARGET) if kind == SETTLED else ("", None)
            rows.append(Row(f"ingest job, requests {kind}", "spans/s", ours, peer, None, ours / peer, target, reached))
            costs.append(f"{kind} {cpu:.1f} (without the join {peer_cpu:.1f})")
        notes = [
            f"{MESSAGES:,} messages of {SPANS} spans of 17 attributes, parallelism 1, start-up taken off",
            "peer: the same job on the same topic with --join-seconds 0",
            f"microseconds of CPU a span, JVM and Python: {'; '.join(costs)}",
        ]
        return 0 if print_table("Ingest job on Kafka", rows, notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main())
