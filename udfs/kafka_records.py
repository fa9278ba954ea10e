"""Records read again by their place (partition, offset), for what goes to `dead_letters` with its raw bytes.

The hot path parses a few columns of each record and forgets the rest. The few records that turn out to be late, or
that the parser skipped, are fetched a second time here.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, TopicPartition

# Reading on is cheaper than a seek (some milliseconds) up to about this many records.
READ_ON_RECORDS = 1000
TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Places:
    """Offsets `first` <= offset < `stop` of one partition."""

    partition: int
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it lies on the topic; `payload` is None for a record without a value."""

    payload: bytes | None
    timestamp_ms: int | None


class KafkaRecords:
    """Reads records of one topic by place. `settings` are librdkafka's.

    Not thread-safe. Holds one connection from the first call to `close`.
    """

    def __init__(self, settings: Mapping[str, str], topic: str) -> None:
        self.topic = topic
        self._consumer = Consumer(
            {
                "isolation.level": "read_committed",
                "group.id": "slacktide-read-again",  # required, but no group is ever joined
                **settings,
                "enable.auto.commit": "false",
                "enable.auto.offset.store": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": "20",
                "fetch.message.max.bytes": str(256 * 1024),
                "queued.max.messages.kbytes": "4096",
            }
        )

    def read(self, places: Iterable[Places]) -> dict[tuple[int, int], Record]:
        """Return the committed records at `places` by (partition, offset); a place without a record is left out.

        No record lies where Kafka keeps transaction markers, where a transaction was aborted, and where retention has
        passed. Raises KafkaException on a broker's error and TimeoutError after a minute, so that the caller can try
        the whole again. Some milliseconds a place; contiguous places cost one read.
        """
        found: dict[tuple[int, int], Record] = {}
        for run in _runs(places):
            partition, firsts = run[0].partition, [place.first for place in run]
            for message in self._messages(partition, firsts[0], run[-1].stop):
                offset = message.offset() or 0
                if offset < run[bisect_right(firsts, offset) - 1].stop:
                    found[partition, offset] = _record(message)
        return found

    def earliest_offset(self, partition: int) -> int:
        """Return the first offset that retention has left in `partition`."""
        return self._kept(partition)[0]

    def close(self) -> None:
        """Give the connection back."""
        self._consumer.close()

    def _messages(self, partition: int, first: int, stop: int) -> Iterable[Message]:
        """Yield the messages from `first` until one is at or past `stop`, or the partition ends."""
        low, high = self._kept(partition)
        first, stop = max(first, low), min(stop, high)
        if first >= stop:
            return
        self._consumer.assign([TopicPartition(self.topic, partition, first)])
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            message = self._consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                if not error.retriable():
                    raise KafkaException(error)
            elif (message.offset() or 0) >= stop:
                return
            else:
                yield message
                if message.offset() == stop - 1:
                    return
        raise TimeoutError(f"no answer for {self.topic}, partition {partition}, offsets {first} to {stop - 1}")

    def _kept(self, partition: int) -> tuple[int, int]:
        """The first offset that is there, and the one after the last."""
        low, high = self._consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=TIMEOUT_SECONDS)
        return int(low), int(high)


def _runs(places: Iterable[Places]) -> list[list[Places]]:
    """Group places of one partition that are near enough to be read in one go; those that overlap become one."""
    runs: list[list[Places]] = []
    for place in sorted(places, key=lambda p: (p.partition, p.first, p.stop)):
        last = runs[-1][-1] if runs else None
        if last is None or last.partition != place.partition or place.first - last.stop > READ_ON_RECORDS:
            runs.append([place])
        elif place.first < last.stop:
            runs[-1][-1] = Places(last.partition, last.first, max(last.stop, place.stop))
        else:
            runs[-1].append(place)
    return runs


def _record(message: Message) -> Record:
    kind, stamp = message.timestamp()
    return Record(message.value(), None if kind == TIMESTAMP_NOT_AVAILABLE else stamp)
