"""The metrics job on a real broker and cluster, stopped and resumed half way: measurements, dead letters and books."""

import math
import time
from collections import Counter
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer
from jsonschema import Draft202012Validator

from infra.books import read_books
from infra.broker import Broker
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from infra.replay import ReplayPlan, replay
from jobs.kafka_client import KafkaClient
from schemas.books import metric_balance
from schemas.measurements import Measurement, json_schema
from tests.otlp_metrics import as_proto, at, attribute, counter, histogram, metrics_json
from udfs.telemetry.measurement_histogram import histogram_of

pytestmark = pytest.mark.engine
PREFIX = "metrics-test-"
NOW = int(time.time()) - 3600
START = NOW - 60  # young enough for first reports to count from zero
LONG_AGO = NOW - 86_400


def tokens(second: float, holds: int, start: float = START, pod: str = "0") -> bytes:
    point = at(NOW + second, start, asInt=str(holds), attributes=[attribute("pod", pod)])
    return metrics_json(counter("vllm:prompt_tokens_total", point))


def first_token(second: float, *counts: int) -> bytes:
    buckets = {"count": str(sum(counts)), "sum": float(sum(counts)), "bucketCounts": list(map(str, counts))}
    return metrics_json(
        histogram("vllm:time_to_first_token_seconds", at(NOW + second, START, explicitBounds=[1, 2.5], **buckets))
    )


BEFORE = [
    tokens(0, 100),
    as_proto(tokens(15, 130)),
    as_proto(tokens(15, 130)),  # delivered twice
    tokens(30, 40),  # began anew
    first_token(0, 2, 1, 0),
    as_proto(first_token(15, 4, 2, 1)),
    tokens(0, 7_000_000, start=LONG_AGO, pod="old"),  # where it stands, not what it added
    metrics_json({"name": "vllm:num_requests_waiting", "gauge": {"dataPoints": [at(NOW, asInt=3), at(NOW, flags=1)]}}),
    metrics_json(counter("c", at(NOW, asInt="1"), at(NOW + 1, asInt="2"), temporality=0)),
    tokens(5, 105),  # late: the counter reported since
    tokens(15, 131),  # another value for a time that had one
    tokens(8 * 3600, 1, pod="ahead"),
    b"\xff\xfe garbage",
    b"",
    None,
]  # fmt: skip
AFTER = [tokens(45, 50), first_token(30, 4, 2, 5), tokens(15, 7_000_010, start=LONG_AGO, pod="old"), tokens(30, 40)]
BOOKS = {
    "points": 20,
    "measurements": 3 + 2 + 1 + 3,
    "baseline": 1,
    "empty": 1,
    "duplicate": 1 + 1,
    "late": 1,
    "dead": 2 + 1 + 1 + 2,
}


def test_counters_become_deltas_through_resets_copies_garbage_and_a_restart(
    broker: Broker, flink: FlinkCluster
) -> None:
    broker.create_topics(prefix=PREFIX)
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX,
                 "--checkpoint-interval-seconds", "1", "--name-suffix=-test"]  # fmt: skip
    job = flink.run("jobs.ingest_metrics", arguments)
    send(broker, BEFORE)
    wait_for_points(broker, BOOKS["points"] - len(AFTER))
    job = flink.run("jobs.ingest_metrics", arguments, flink.savepoint_and_stop(job))
    send(broker, AFTER)
    books = wait_for_points(broker, BOOKS["points"])
    assert (books, metric_balance(books)) == (BOOKS, 0)

    records = read_all(broker, "measurements")
    for _, value in records:
        Draft202012Validator(json_schema()).validate(orjson.loads(value))
    found = [Measurement.from_json(value) for _, value in records]
    assert [key.decode() for key, _ in records] == [m.series_id for m in found]
    assert len({m.measurement_id for m in found}) == len(found)
    assert deltas(found, "input_tokens", "0") == [(0, 100, ()), (15, 30, ()), (30, 40, ("reset",)), (45, 10, ())]
    assert deltas(found, "input_tokens", "old") == [(15, 10, ())]
    assert deltas(found, "requests_waiting", None) == [(0, 3.0, ())]
    ratios = [histogram_of(m).counts for m in sorted(found, key=lambda m: m.event_time_ms) if m.count is not None]
    assert ratios == [(2, 1, 0), (2, 1, 1), (0, 0, 4)]

    letters = [orjson.loads(value) for _, value in read_all(broker, "dead_letters")]
    assert Counter(letter["reason"] for letter in letters) == {
        "temporality_unspecified": 2, "late": 1, "conflict": 1, "clock_skew": 1, "malformed_proto": 1, "no_value": 1,
    }  # fmt: skip
    assert len({letter["dead_letter_id"] for letter in letters}) == len(letters)

    topics = {"topic": PREFIX + "otlp_spans", "metrics_topic": PREFIX + "otlp_metrics"}
    plan = ReplayPlan(limit=600, speed_up=math.inf, metrics=True, **topics)
    report = replay(plan, KafkaClient(broker.bootstrap_servers))
    replayed = report.expected_metric_books()
    assert replayed["points"] > 100
    books = wait_for_points(broker, BOOKS["points"] + replayed["points"])
    assert Counter(books) == Counter(BOOKS) + Counter({str(kind): n for kind, n in replayed.items()})
    flink.cancel(job)


def deltas(found: list[Measurement], name: str, pod: str | None) -> list[tuple[int, Any, tuple[str, ...]]]:
    """Return (seconds after NOW, value, flags) of one series in order of time."""
    of = [m for m in found if m.name == name and m.labels.get("pod") == pod]
    return sorted((m.event_time_ms // 1000 - NOW, m.value, m.data_quality) for m in of)


def send(broker: Broker, messages: list[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for message in messages:
        producer.produce(PREFIX + "otlp_metrics", message, partition=0)
    assert producer.flush(30) == 0


def wait_for_points(broker: Broker, points: int, timeout_seconds: float = 90) -> dict[str, int]:
    deadline = time.monotonic() + timeout_seconds
    counts: dict[str, int] = {}
    while time.monotonic() < deadline and (counts.get("points") != points or metric_balance(counts)):
        counts = read_books(KafkaClient(broker.bootstrap_servers), topic_prefix=PREFIX).get("ingest-metrics", {})
        time.sleep(0.5)
    return counts


def read_all(broker: Broker, topic: str) -> list[tuple[bytes, bytes]]:
    """Every committed record of a topic, as (key, value)."""
    messages = follow(KafkaClient(broker.bootstrap_servers), PREFIX + topic, to_end=True)
    return [(message.key(), message.value()) for message in messages]
