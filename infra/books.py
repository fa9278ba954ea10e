"""Reads the books: sums of what the jobs counted, from topic `books`, read committed."""

import time
import uuid
from collections import defaultdict

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from infra.errors import StackError
from jobs.kafka_client import KafkaClient
from schemas.topics import BOOKS

Books = dict[str, dict[str, int]]


def read_books(kafka: KafkaClient, topic_prefix: str = "", timeout_seconds: float = 30.0) -> Books:
    """Return, for each job and kind, how many records it counted since the topic began.

    Only what was committed counts, so the sums are exact while jobs run, die and come back. Reads the whole topic:
    O(entries) in time and memory. Empty when there is no such topic. Raises KafkaException when the broker can't be
    reached, StackError when the topic can't be read within the timeout.
    """
    topic = topic_prefix + BOOKS.name
    settings = kafka.for_librdkafka()
    known = AdminClient(settings).list_topics(topic, timeout=timeout_seconds).topics[topic]
    partitions = [] if known.error else list(known.partitions)
    totals: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for value in _committed_values(settings, topic, partitions, timeout_seconds):
        try:
            entry = orjson.loads(value)
            totals[entry["job"]][entry["kind"]] += entry["count"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            problem = f"topic {topic} holds what is no book entry ({error}): {value[:200]!r}"
            raise StackError(problem, "schemas/books.py says what an entry is") from None
    return {job: dict(kinds) for job, kinds in totals.items()}


def _committed_values(
    settings: dict[str, str], topic: str, partitions: list[int], timeout_seconds: float
) -> list[bytes]:
    """Return every committed value of the topic up to its end of now."""
    reader = {
        "group.id": f"slacktide-books-{uuid.uuid4()}",
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        "enable.partition.eof": "true",
    }
    consumer = Consumer({**settings, **reader})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        values: list[bytes] = []
        unfinished = set(partitions)
        deadline = time.monotonic() + timeout_seconds
        while unfinished:
            if time.monotonic() > deadline:
                raise StackError(f"topic {topic} could not be read in {timeout_seconds:.0f} s", "Is the broker up?")
            messages = consumer.consume(1000, timeout=0.5)
            for message in messages:
                error = message.error()
                if error is None:
                    values.append(message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise KafkaException(error)
        return values
    finally:
        consumer.close()
