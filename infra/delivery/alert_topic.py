"""Topic `alerts` as a forwarder reads it: from where its target left off, committed only when the target took it.

It reads every partition by itself, without a group's rebalancing: a group of one target has one forwarder. librdkafka
fetches ahead by at most `FETCH_KB`; while a target is away nothing more is read, so what waits, waits on Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from infra.errors import StackError
from infra.lag import GROUP_PREFIX
from jobs.kafka_client import KafkaClient
from schemas.dead_letters import WHOLE_MESSAGE, dead_letter_record
from schemas.topics import DEAD_LETTERS

JOB = "forward"
FETCH_KB = 4096
# Errors that don't pass by waiting. An unknown topic is none of them: a broker that comes back says so for a moment.
_LASTING = (
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)


@dataclass(frozen=True, slots=True)
class Begin:
    """Where reading begins, by partition: `known` is what the kept state has seen, `deliver` what comes to the target.

    Between them lie transitions that the target was told and the state was not. -2 is the first record that there is.
    """

    known: dict[int, int]
    deliver: dict[int, int]


class AlertTopic:
    """The committed records of one topic, for the target called `target`."""

    def __init__(self, kafka: KafkaClient, topic: str, target: str, *, timeout_seconds: float = 10.0) -> None:
        self.topic, self.group = topic, f"{GROUP_PREFIX}{JOB}-{target}"
        self._kafka, self._timeout_seconds = kafka, timeout_seconds
        settings = {
            "group.id": self.group,
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": str(FETCH_KB),
            "fetch.message.max.bytes": str(FETCH_KB * 1024 // 4),
            "log_level": "0",
        }
        self._consumer = Consumer({**kafka.for_librdkafka(), **settings})
        self.cluster_id = ""

    def begin(self, kept: dict[int, int]) -> Begin:
        """Return where to begin, `kept` being the offsets that a kept state had seen up to.

        The group's committed offsets say what the target was told. Where the group has none (new, or unused for longer
        than the broker keeps offsets) delivery begins at `kept`, else at the first record. Raises KafkaException when
        the broker can't be reached, StackError when it has no such topic.
        """
        listed = self._consumer.list_topics(self.topic, timeout=self._timeout_seconds)
        known = listed.topics[self.topic]
        if known.error or not known.partitions:
            remedy = "`slacktide up` makes the topics; --topic-prefix says what stands before their names"
            raise StackError(f"there is no topic {self.topic} on {self._kafka.bootstrap_servers}", remedy)
        self.cluster_id = str(listed.cluster_id)
        places = [TopicPartition(self.topic, partition) for partition in sorted(known.partitions)]
        committed = {p.partition: p.offset for p in self._consumer.committed(places, self._timeout_seconds)}
        ends = {p.partition: self._consumer.get_watermark_offsets(p, self._timeout_seconds)[1] for p in places}
        # An offset beyond the end is of a topic that was made anew since.
        kept = {p: offset for p, offset in kept.items() if offset <= ends.get(p, -1)}
        deliver = {}
        for partition, end in ends.items():
            offset = committed.get(partition, OFFSET_INVALID)
            usable = OFFSET_INVALID < offset <= end and offset >= 0
            deliver[partition] = offset if usable else kept.get(partition, OFFSET_BEGINNING)
        return Begin({p: kept.get(p, OFFSET_BEGINNING) for p in ends}, deliver)

    def history(self, begin: Begin) -> Iterator[Message]:
        """Yield what lies between the kept state and delivery: the target was told of it before."""
        ends = {p: end for p, end in begin.deliver.items() if end > 0 and end > begin.known[p]}
        if not ends:
            return
        self._consumer.assign([TopicPartition(self.topic, p, begin.known[p]) for p in ends])
        unfinished = set(ends)
        while unfinished:
            for message in self._consumer.consume(500, timeout=0.2):
                self._require_readable(message)
                partition, error = message.partition(), message.error()
                if error is None and message.offset() < ends[partition]:
                    yield message
                is_end = error is not None and error.code() == KafkaError._PARTITION_EOF
                if is_end or (error is None and message.offset() >= ends[partition] - 1):
                    unfinished.discard(partition)

    def assign(self, begin: Begin) -> None:
        """Begin to deliver."""
        self._consumer.assign([TopicPartition(self.topic, p, offset) for p, offset in sorted(begin.deliver.items())])

    def read(self, limit: int, timeout_seconds: float) -> list[Message]:
        """Return at most `limit` committed records, as soon as there are any; oldest first within a partition.

        Raises StackError where reading is not allowed; an unreachable broker only gives nothing.
        """
        # Not `consume` alone, which waits out its time for more than the first.
        first = self._consumer.poll(timeout_seconds)
        if first is None:
            return []
        messages = [first, *(self._consumer.consume(limit - 1, timeout=0) if limit > 1 else ())]
        for message in messages:
            self._require_readable(message)
        return [message for message in messages if not message.error()]

    def _require_readable(self, message: Message) -> None:
        error = message.error()
        if error and error.code() in _LASTING:
            raise StackError(f"topic {self.topic} can't be read: {error.str()}", "Check --kafka-config and the topic")

    def commit(self, offsets: dict[int, int]) -> bool:
        """Commit that all before `offsets` was taken; False where the broker did not answer."""
        places = [TopicPartition(self.topic, partition, offset) for partition, offset in sorted(offsets.items())]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


class DeadLetters:
    """Writes what can't be delivered to topic `dead_letters`, and says only then that it is there."""

    def __init__(self, kafka: KafkaClient, topic_prefix: str = "") -> None:
        self._topic = topic_prefix + DEAD_LETTERS.name
        settings = {"enable.idempotence": "true", "log_level": "0", "message.max.bytes": str(16 * 1024 * 1024)}
        self._producer = Producer({**kafka.for_librdkafka(), **settings, "message.timeout.ms": "30000"})

    def write(self, message: Message, *, target: str, reason: str, detail: str) -> bool:
        """Return whether the broker acknowledged it. The same message for the same target always has the same id."""
        _, timestamp_ms = message.timestamp()
        record = dead_letter_record(
            reason=reason,
            detail=detail,
            job=f"{JOB}-{target}",
            topic=message.topic(),
            partition=message.partition(),
            offset=message.offset(),
            index=WHOLE_MESSAGE,
            payload=message.value() or b"",
            kafka_timestamp_ms=timestamp_ms if timestamp_ms >= 0 else None,
        )
        failures: list[object] = []
        try:
            self._producer.produce(
                self._topic,
                record,
                key=message.topic(),
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        except (BufferError, KafkaException):
            return False
        return self._producer.flush(35) == 0 and not failures
