"""Reads a topic from an instant on: what is committed there, and then what comes."""

import uuid
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from infra.errors import StackError
from jobs.kafka_client import KafkaClient

# Errors that don't pass by waiting; librdkafka gets over all others by itself.
_LASTING = (
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


def follow(
    kafka: KafkaClient, topic: str, *, since_ms: int | None = None, to_end: bool = False, timeout_seconds: float = 10.0
) -> Iterator[Message]:
    """Yield the committed messages of `topic`, oldest first within a partition, from Kafka timestamp `since_ms` on.

    None is the beginning. With `to_end` it ends at the committed end of now, otherwise never. Joins no consumer group:
    it moves nobody's offsets. Raises StackError when the broker can't be reached within the timeout, when there is no
    such topic, or when reading it is not allowed.
    """
    reader = {
        "group.id": f"slacktide-reader-{uuid.uuid4()}",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "isolation.level": "read_committed",
        "log_level": "0",
    }
    consumer = Consumer({**kafka.for_librdkafka(), **reader})
    try:
        places = _places(consumer, kafka, topic, since_ms, timeout_seconds)
        consumer.assign(places)
        unfinished = {place.partition for place in places}
        while unfinished or not to_end:
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            elif error.code() in _LASTING:
                raise StackError(f"topic {topic} can't be read: {error.str()}", "Check --kafka-config and the topic")
    finally:
        consumer.close()


def _places(
    consumer: Consumer, kafka: KafkaClient, topic: str, since_ms: int | None, timeout_seconds: float
) -> list[TopicPartition]:
    """Where to begin in each partition."""
    try:
        known = consumer.list_topics(topic, timeout=timeout_seconds).topics[topic]
        if known.error or not known.partitions:
            remedy = "`slacktide up` makes the topics; --topic-prefix says what stands before their names"
            raise StackError(f"there is no topic {topic} on {kafka.bootstrap_servers}", remedy)
        if since_ms is None:
            return [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in known.partitions]
        asked = [TopicPartition(topic, partition, since_ms) for partition in known.partitions]
        return list(consumer.offsets_for_times(asked, timeout=timeout_seconds))
    except KafkaException as error:
        remedy = "Start the stack with `slacktide up`, or give the right --bootstrap-servers"
        problem = f"no Kafka broker answers at {kafka.bootstrap_servers} ({error.args[0].str()})"
        raise StackError(problem, remedy) from None
