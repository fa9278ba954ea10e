"""The ingest job on a real broker and cluster: what hostile and careless senders send, and the books after it."""

import time
from collections import Counter

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from infra.books import read_books
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from schemas.books import ingest_balance
from schemas.request_headers import request_headers
from tests import otlp

pytestmark = pytest.mark.engine
NOW_MS = int(time.time() * 1000)
PREFIX = "ingest-test-"


def hostile_messages() -> list[tuple[int, bytes | None]]:
    """(partition, message) in sending order."""
    good = otlp.message([otlp.request_span(i, NOW_MS + i) for i in range(50)])
    family = otlp.message([otlp.request_span(100, NOW_MS), *otlp.child_spans(100, NOW_MS, count=2)])
    return [
        (0, good),
        (1, good),  # every span a second time, on another partition
        (0, family),
        (0, otlp.message([otlp.request_span(101, NOW_MS), otlp.request_span(101, NOW_MS)])),  # twice in one message
        (0, otlp.json_message([otlp.request_span(102, NOW_MS)])),
        (0, b"\xff\xfe garbage \x00"),
        (0, b""),
        (0, None),
        (0, b'{"resourceSpans": null}'),
        (0, b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}'),
        (0, otlp.message([otlp.request_span(103, NOW_MS, filler_bytes=2_000_000)])),
        (0, otlp.message([otlp.request_span(104, NOW_MS + 86_400_000)])),  # a clock a day ahead
        (0, otlp.message([otlp.request_span(105, NOW_MS - 600_000 - 1_000)])),  # late on its partition
        (0, otlp.message([otlp.request_span(106, NOW_MS - 500_000)])),  # old, but within the allowed lateness
    ]


EXPECTED_BOOKS = {
    # 50 + 50 + 3 + 2 + 1 + garbage + 0 + tombstone + 0 + bad id + 1 + 1 + 1 + 1
    "spans": 113,
    "requests": 50 + 1 + 1 + 1 + 1 + 1,
    "child": 2,
    "duplicate": 50 + 1,
    "late": 1,
    "dead": 4,
}


def test_hostile_input_balances_and_the_job_stays_up(broker, flink) -> None:
    kafka = KafkaClient(broker.bootstrap_servers)
    broker.create_topics(prefix=PREFIX)
    job = flink.run("jobs.ingest", ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX,
                               "--checkpoint-interval-seconds", "1", "--name-suffix=-test"])  # fmt: skip
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 4_000_000})
    for partition, message in hostile_messages():
        producer.produce(PREFIX + "otlp_spans", message, partition=partition)
        producer.flush()
    books = _wait_for_books(kafka, EXPECTED_BOOKS)
    assert books == EXPECTED_BOOKS
    assert ingest_balance(books) == 0
    assert flink.state(job) == "RUNNING"

    requests = [orjson.loads(value) for _, value in read_topic(broker, PREFIX + "requests")]
    assert len(requests) == EXPECTED_BOOKS["requests"]
    assert len({(r["trace_id"], r["span_id"]) for r in requests}) == len(requests)
    sent = list(follow(KafkaClient(broker.bootstrap_servers), PREFIX + "requests", to_end=True))
    for message in sent:
        assert sorted(message.headers()) == sorted(request_headers(orjson.loads(message.value())))
    assert {key for key, _ in read_topic(broker, PREFIX + "requests")} == {r["trace_id"].encode() for r in requests}
    letters = [orjson.loads(value) for _, value in read_topic(broker, PREFIX + "dead_letters")]
    reasons = Counter(letter["reason"] for letter in letters)
    assert reasons == {"malformed_proto": 1, "no_value": 1, "bad_id": 1, "clock_skew": 1, "late": 1}
    assert len({letter["dead_letter_id"] for letter in letters}) == len(letters)
    places = {(letter["topic"], letter["partition"]) for letter in letters}
    assert places == {(PREFIX + "otlp_spans", 0)}
    flink.cancel(job)


def _wait_for_books(kafka: KafkaClient, expected: dict[str, int], timeout_seconds: float = 90) -> dict[str, int]:
    deadline = time.monotonic() + timeout_seconds
    counts: dict[str, int] = {}
    while time.monotonic() < deadline and counts != expected:
        counts = read_books(kafka, topic_prefix=PREFIX).get("ingest", {})
        time.sleep(0.5)
    return counts


def read_topic(broker, topic: str) -> list[tuple[bytes, bytes]]:
    """Every committed record of a topic, as (key, value)."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "isolation.level": "read_committed",
         "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    )  # fmt: skip
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    records, ended = [], set()
    while len(ended) < len(partitions):
        message = consumer.poll(10)
        if message is None:
            raise AssertionError(f"no end of {topic}")
        if message.error():
            ended.add(message.partition())
        else:
            records.append((message.key(), message.value()))
    consumer.close()
    return records
