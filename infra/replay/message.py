"""Kafka messages in the order in which they are sent."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from infra.replay.faults import UNREADABLE, Sent
from infra.replay.otlp_messages import SpanEncoder


@dataclass(slots=True)
class Unit:
    """One request to send at `due_ns`: its span and those below it, or for an unreadable one the whole message.

    Times are nanoseconds after the replay's begin; `event_ns` is the end of the request.
    """

    due_ns: int
    event_ns: int
    sent: Sent
    trace_id: bytes
    spans: tuple[bytes, ...]


@dataclass(slots=True)
class Message:
    """One Kafka record, due at `due_ns` after the replay's begin, with what it counts for."""

    value: bytes
    key: bytes | None
    partition: int | None
    due_ns: int
    first_event_ns: int
    last_event_ns: int
    sent: Sent
    requests: int
    children: int
    topic: str | None = None  # where it goes, if not where the spans go
    points: int = 0  # of metrics


def in_sending_order(blocks: Iterable[tuple[int, list[Unit]]]) -> Iterator[Unit]:
    """Merge blocks of units by their due time.

    With each block comes the time before which no later block has a unit, so only what is due after it is held back.
    """
    pending: list[Unit] = []
    for no_earlier_ns, units in blocks:
        pending += units
        pending.sort(key=_due)
        ready = bisect_right(pending, no_earlier_ns, key=_due)
        yield from pending[:ready]
        del pending[:ready]
    yield from pending


def _due(unit: Unit) -> int:
    return unit.due_ns


class Batcher:
    """Puts units into messages: clean ones together, every faulty one alone, so that it takes no other with it.

    A batch closes after `spans` spans or `span_ns` of event time, as the Collector's batch processor closes it. Keyless
    messages go to the partitions in turn; a late one goes where the last clean one went, since that partition has
    surely seen newer events. With `keyed`, a message holds one trace under its id, as the Collector's option
    `partition_traces_by_id` makes it, and Kafka's hash chooses the partition.
    """

    def __init__(self, encoder: SpanEncoder, partitions: int, spans: int, span_ns: int, *, keyed: bool = False) -> None:
        self._encoder, self._partitions, self._keyed = encoder, partitions, keyed
        self._spans, self._span_ns = spans, span_ns
        self._turn, self._newest_partition = count(), 0

    def messages(self, units: Iterable[Unit]) -> Iterator[Message]:
        """Yield the messages of `units`, which are in sending order."""
        batch: list[Unit] = []
        size = 0
        for unit in units:
            alone = self._keyed or unit.sent is not Sent.CLEAN
            full = size + len(unit.spans) > self._spans
            if batch and (alone or full or unit.event_ns - batch[0].event_ns > self._span_ns):
                yield self._message(batch)
                batch, size = [], 0
            if alone:
                yield self._message([unit])
            else:
                batch.append(unit)
                size += len(unit.spans)
        if batch:
            yield self._message(batch)

    def _message(self, units: list[Unit]) -> Message:
        last = units[-1]
        unreadable = last.sent in UNREADABLE
        spans = [span for unit in units for span in unit.spans]
        key = last.trace_id.hex().encode() if self._keyed and not unreadable else None
        return Message(
            value=spans[0] if unreadable else self._encoder.message(spans),
            key=key,
            partition=self._partition(last.sent) if key is None else None,
            due_ns=last.due_ns,
            first_event_ns=units[0].event_ns,
            last_event_ns=last.event_ns,
            sent=last.sent,
            requests=len(units),
            children=len(spans) - len(units),
        )

    def _partition(self, sent: Sent) -> int:
        if sent is Sent.LATE:
            return self._newest_partition
        partition = next(self._turn) % self._partitions
        if sent is Sent.CLEAN:
            self._newest_partition = partition
        return partition
