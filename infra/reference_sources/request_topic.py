"""Reference values from topic `requests`: the requests whose event time lies in a range."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from infra.reference_sources.wanted import ATTRIBUTES, CATEGORIES, Columns, Wanted, as_categories, as_text
from jobs.kafka_client import ConfigurationError, KafkaClient
from schemas.times import rfc3339

# An event may lie 5 minutes after its Kafka timestamp (ingest's limit); the rest is for clocks that differ.
MARGIN_MS = 600_000
BATCH, BATCH_SECONDS = 1000, 0.1  # a batch is waited for until it is full or this long
BROKER_TIMEOUT_SECONDS = 5.0
TIMEOUT_SECONDS = 30.0


def columns_of_topic(kafka: KafkaClient, topic: str, since_ms: int, until_ms: int, wanted: Wanted) -> Columns:
    """Return the wanted fields of requests with event time in [since_ms, until_ms): float64 in the order of event time
    (over all partitions), or texts of categories.

    Read committed, from the first record that may matter up to the end the topic has now: about 4 microseconds a record
    read, and 8 bytes a value kept. Raises ConfigurationError when broker or topic is not there or nothing is in range.
    """
    values: dict[str, list[Any]] = {name: [] for name in wanted.candidates}
    times: list[int] = []
    for request in _requests(kafka, topic, since_ms):
        if since_ms <= request.get("event_time_ms", -1) < until_ms and _matches(request, wanted):
            times.append(request["event_time_ms"])
            for name, column in values.items():
                value = _value(request, name)
                column.append(value if name in CATEGORIES else _number(value))
    order = np.argsort(np.array(times, dtype=np.int64), kind="stable")
    columns: Columns = {
        name: as_categories(column) if name in CATEGORIES else np.array(column, dtype=np.float64)[order]
        for name, column in values.items()
    }
    source = f"topic {topic}, {rfc3339(since_ms)} to {rfc3339(until_ms)}"
    return wanted.kept(source, columns)


def _requests(kafka: KafkaClient, topic: str, since_ms: int) -> Iterator[dict[str, Any]]:
    """Yield what the topic holds now, from a little before `since_ms`."""
    consumer = Consumer(
        {
            "group.id": "slacktide-reference",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
            "log_level": "0",
            **kafka.for_librdkafka(),
        }
    )
    try:
        starts = _start_offsets(consumer, kafka, topic, since_ms)
        consumer.assign(starts)
        open_partitions = {start.partition for start in starts}
        last_seen = time.monotonic()
        while open_partitions:
            messages = consumer.consume(BATCH, BATCH_SECONDS)
            if messages:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > TIMEOUT_SECONDS:
                raise _refused(kafka, f"nothing came for {TIMEOUT_SECONDS:.0f} s")
            for message in messages:
                if message.error() is None:
                    yield orjson.loads(message.value())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
                else:
                    raise _refused(kafka, message.error().str())
    finally:
        consumer.close()


def _start_offsets(consumer: Consumer, kafka: KafkaClient, topic: str, since_ms: int) -> list[TopicPartition]:
    try:
        topics = consumer.list_topics(timeout=BROKER_TIMEOUT_SECONDS).topics
        if topic not in topics:
            problem = f"there is no topic {topic} at {kafka.bootstrap_servers}"
            raise ConfigurationError("command line", "--from-topic", problem, "`slacktide up` makes `requests`")
        from_ms = max(since_ms - MARGIN_MS, 0)
        asked = [TopicPartition(topic, partition, from_ms) for partition in topics[topic].partitions]
        return list(consumer.offsets_for_times(asked, timeout=BROKER_TIMEOUT_SECONDS))
    except KafkaException as error:
        raise _refused(kafka, error.args[0].str()) from None


def _refused(kafka: KafkaClient, problem: str) -> ConfigurationError:
    remedy = "Start the broker with `slacktide up`, or name another"
    return ConfigurationError("command line", "--bootstrap-servers", f"{kafka.bootstrap_servers}: {problem}", remedy)


def _matches(request: dict[str, Any], wanted: Wanted) -> bool:
    return all(as_text(_value(request, field)) == value for field, value in wanted.where.items())


def _value(request: dict[str, Any], name: str) -> Any:
    if name.startswith(ATTRIBUTES):
        return (request.get("attributes") or {}).get(name.removeprefix(ATTRIBUTES))
    return request.get(name)


def _number(value: Any) -> float:
    """A number, or one of the texts that stand for NaN and the infinities; null is NaN."""
    return float("nan") if value is None else float(value)
