"""From the close of the window that fires to the alert on Kafka, through the drift and the alert job; and in a storm.

Run with `python -m tests.bench.bench_alert_latency`. Requests are written to topic `requests` as they happen. Their
features change and come back every `PHASE_SECONDS`, so each series fires anew in every phase. The latency of an alert
is the instant at which a consumer that reads committed records has it, less its `startsAt` (the end of the Nth drifted
window), both of this machine's clock. P95 may be the watermark bound and 6 s: a window waits for the bound, its verdict
for the drift job's checkpoint, the transition for `hold_seconds` and for the alert job's checkpoint.

The storm: 10,000 series breach in windows that close now. The page is the first notification of the incident.

Exits with 1 when either takes longer, or an alert is missing. It ends by itself within four minutes: what did not come
by then is a row without a figure.
"""

import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from confluent_kafka import Producer

from infra.follow import follow
from schemas.request_headers import request_headers
from schemas.times import epoch_ms
from tests.alert_verdicts import DRIFTED
from tests.bench.bench_drift_job import FEATURES, write_monitors
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_most, print_table, progress
from tests.bench.time_limit import OutOfTimeError, time_limit
from tests.bench.trace_requests import TraceRequest, trace_requests

RATE_PER_SECOND = 500
SECONDS, WARM_UP_SECONDS, PHASE_SECONDS = 80, 20, 20
ALERTS_LIMIT_SECONDS, STORM_LIMIT_SECONDS = 130, 90  # with jobs that start
WINDOW_SECONDS, BOUND_SECONDS, CHECKPOINT_SECONDS, ALLOWANCE_SECONDS = 5, 2, 1, 6
FACTOR = 4.0  # what the features are multiplied by while they drift
N_STORM, STORM_WAIT_SECONDS = 10_000, 60.0
ALERTS = "close of the Nth window to the alert, P95"
STORM = f"{N_STORM:,} series at once: close of the windows to the page"
TICK_SECONDS = 0.01
RULES = """
default: {firing_after_windows: 2, resolved_after_windows: 2, flap_firings: 0}
"""
STORM_RULES = "default: {firing_after_windows: 1, resolved_after_windows: 1}\n"

Arrival = tuple[float, dict[str, Any]]


def watch(bench: Engines, topic: str) -> list[Arrival]:
    """Note the records of a topic as they come, for ever, with the instant of each."""
    arrived: list[Arrival] = []

    def follow_it() -> None:
        arrived.extend((time.time(), orjson.loads(message.value())) for message in follow(bench.kafka, topic))

    threading.Thread(target=follow_it, daemon=True).start()
    return arrived


def start(bench: Engines, name: str, rules: str, monitors: Path | None = None) -> tuple[str, list[str]]:
    """Make the topics, start the alert job (and the drift job, where there are monitors); return prefix and job ids."""
    prefix = f"{name}-"
    bench.broker.create_topics(prefix=prefix)
    file = bench.folder / f"{name}.yaml"
    file.write_text(rules)
    common = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix, f"--name-suffix=-{name}"]
    common += ["--checkpoint-interval-seconds", str(CHECKPOINT_SECONDS)]
    running = [bench.flink.run("jobs.alert", [*common, "--rules", str(file)])]
    if monitors is not None:
        running.append(bench.flink.run("jobs.drift", [*common, "--monitors", str(monitors)]))
    return prefix, running


def send_requests(bench: Engines, prefix: str, like: list[TraceRequest]) -> None:
    """Write requests that happen now, spread evenly over each second; their features drift in every other phase."""
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "linger.ms": 5})
    bodies = [(request.trace_id, orjson.loads(request.value)) for request in like]
    figures = [{feature: body[feature] for feature in FEATURES} for _, body in bodies]
    chosen, began, sent, seed = cycle(bodies), time.time(), 0, random.Random(1)
    while (elapsed := time.time() - began) < SECONDS:
        factor = FACTOR if int(elapsed / PHASE_SECONDS) % 2 else 1.0
        for trace_id, body in (next(chosen) for _ in range(round(elapsed * RATE_PER_SECOND) - sent)):
            # Every tenant draws from the same figures as the reference, so that a quiet phase is quiet.
            drawn = seed.choice(figures)
            body |= {name: None if value is None else type(value)(value * factor) for name, value in drawn.items()}
            body["event_time_ms"] = int(time.time() * 1000)
            producer.produce(prefix + "requests", orjson.dumps(body), trace_id, headers=request_headers(body))
            sent += 1
        producer.poll(0)
        time.sleep(TICK_SECONDS)
    producer.flush(30)


def measure_alerts(bench: Engines, like: list[TraceRequest]) -> tuple[Row, str]:
    """The latency of alerts behind the drift job."""
    monitors = write_monitors(
        bench.folder, like, window_seconds=WINDOW_SECONDS, slide_seconds=WINDOW_SECONDS, bound_seconds=BOUND_SECONDS
    )
    progress("alerts: the drift and the alert job start")
    prefix, running = start(bench, "alerts", RULES, monitors)
    progress(f"alerts: {RATE_PER_SECOND} requests/s for {SECONDS} s")
    arrived = watch(bench, prefix + "alerts")
    began_ms = time.time() * 1000
    send_requests(bench, prefix, like)
    time.sleep(BOUND_SECONDS + ALLOWANCE_SECONDS)
    for job in running:
        bench.flink.cancel(job)
    firing = [(at, body) for at, body in arrived if body["state"] == "firing"]
    late = [
        at - epoch_ms(body["startsAt"]) / 1000
        for at, body in firing
        if epoch_ms(body["startsAt"]) > began_ms + WARM_UP_SECONDS * 1000
    ]
    if not late:
        return missing(ALERTS), "no alert fired after the warm-up"
    p50, p95, p99 = np.percentile(late, [50, 95, 99])
    limit = BOUND_SECONDS + ALLOWANCE_SECONDS
    target, reached = at_most(float(p95), limit)
    row = Row(ALERTS, "s", float(p95), limit=limit, target=target, reached=reached)
    note = f"{len(late)} alerts of {len({body['fingerprint'] for _, body in firing})} series: P50 {p50:.2f} s, "
    return row, note + f"P95 {p95:.2f} s, P99 {p99:.2f} s, longest {max(late):.2f} s"


def measure_storm(bench: Engines) -> tuple[Row, str]:
    """The first page and the last alert when very many series breach at once."""
    progress("storm: the alert job starts")
    prefix, running = start(bench, "storm", STORM_RULES)
    pages, alerts = watch(bench, prefix + "incidents"), watch(bench, prefix + "alerts")
    time.sleep(10)  # the job's own start is not what is measured
    progress(f"storm: {N_STORM:,} verdicts")
    began_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "linger.ms": 5})
    for number in range(N_STORM):
        series = {"service.name": "chat", "pod": f"pod-{number}"}
        judged = replace(DRIFTED, series=series, window_start_ms=began_ms - 60_000, window_end_ms=began_ms)
        producer.produce(prefix + "verdicts", judged.to_json(), judged.series_key)
        producer.poll(0)
    producer.flush(30)
    deadline = time.time() + STORM_WAIT_SECONDS
    while len(alerts) < N_STORM and time.time() < deadline:
        time.sleep(0.2)
    for job in running:
        bench.flink.cancel(job)
    if not pages or not alerts:
        return missing(STORM), f"storm: {len(alerts):,} alerts and {len(pages)} pages came"
    page_seconds = min(at for at, _ in pages) - began_ms / 1000
    last_seconds = max(at for at, _ in alerts) - began_ms / 1000
    opened = sum(body["event"] == "opened" for _, body in pages)
    limit = BOUND_SECONDS + ALLOWANCE_SECONDS
    target, reached = at_most(page_seconds, limit)
    row = Row(
        STORM,
        "s",
        page_seconds,
        limit=limit,
        target=target,
        reached=reached and opened == 1 and len(alerts) == N_STORM,
    )
    incidents = len({body["incident_id"] for _, body in pages})
    note = f"storm: {len(alerts):,} alerts, the last after {last_seconds:.1f} s, in {incidents} incident, {opened} page"
    return row, note


def missing(name: str) -> Row:
    """The row of what did not come."""
    limit = BOUND_SECONDS + ALLOWANCE_SECONDS
    return Row(name, "s", None, limit=limit, target=f"<= {limit:g}", reached=False)


def within(seconds: float, name: str, measure: Callable[[], tuple[Row, str]]) -> tuple[Row, str]:
    """What `measure` returns, or a row without a figure when it takes longer."""
    try:
        with time_limit(seconds):
            return measure()
    except OutOfTimeError as error:
        return missing(name), f"{name}: {error}"


def main() -> int:
    """Measure both, print, and return the exit status."""
    like = list(trace_requests(5_000, RATE_PER_SECOND, int(time.time() * 1000)))
    with engines() as bench:
        measured = [
            within(ALERTS_LIMIT_SECONDS, ALERTS, lambda: measure_alerts(bench, like)),
            within(STORM_LIMIT_SECONDS, STORM, lambda: measure_storm(bench)),
        ]
    notes = [
        f"limit: watermark bound {BOUND_SECONDS} + {ALLOWANCE_SECONDS} s; windows of {WINDOW_SECONDS} s, N = 2, "
        f"{RATE_PER_SECOND} requests/s, both jobs' checkpoints every {CHECKPOINT_SECONDS} s",
        *(note for _, note in measured),
    ]
    return 0 if print_table("Latency of an alert", [row for row, _ in measured], notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main())
