"""Requests that no window can take, and records that the JSON reader skipped: the dead letters made of them.

Flink's JSON reader either stops the job at a record it can't parse, or drops it without a word. But it can't hide that
an offset is missing: a request whose offset doesn't follow the one before it on its partition tells where to look.
Offsets that hold transaction markers are missing too; nothing is found there, and no letter is made.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from schemas.dead_letters import WHOLE_MESSAGE, Reason, dead_letter_record
from udfs.kafka_records import Places, Record

JOB = "drift"
NONE_SEEN = -1
# How far back the first request of a partition looks for records that were skipped before it.
LOOK_BACK_RECORDS = 1000

_SKIPPED = "the JSON reader could make no request of it"
_EMPTY = "the record has no value"
_GONE = "; the topic no longer holds its bytes"


@dataclass(frozen=True, slots=True)
class LostRequest:
    """A request that can't be judged, or before which records were skipped, or both.

    `previous_offset` is that of the request before it on its partition, `NONE_SEEN` where the job has seen none.
    `reason` and `detail` are None where the request itself is good.
    """

    partition: int
    previous_offset: int
    offset: int
    reason: str | None
    detail: str | None
    event_time_ms: int | None

    @classmethod
    def from_columns(cls, partition: int, previous: int, offset: int, *texts: str | None) -> "LostRequest":
        """Build it from a row of the SQL view `lost`: three numbers, then three texts that may be null."""
        reason, detail, event_time_ms = (None if text is None else str(text) for text in texts)
        return cls(
            partition=int(partition),
            previous_offset=int(previous),
            offset=int(offset),
            reason=reason,
            detail=detail,
            event_time_ms=None if event_time_ms is None else int(event_time_ms),
        )

    @property
    def places(self) -> list[Places]:
        """Where to look: between the request before and this one, and at this one where it is lost itself."""
        first = self.previous_offset + 1
        if self.previous_offset == NONE_SEEN:
            first = max(0, self.offset - LOOK_BACK_RECORDS)
        stop = self.offset + 1 if self.reason else self.offset
        return [Places(self.partition, first, stop)] if first < stop else []

    def dead_letters(self, records: Mapping[tuple[int, int], Record], topic: str) -> Iterator[bytes]:
        """Yield the values for topic `dead_letters`, by offset. `records` holds what was found at `places`.

        >>> lost = LostRequest(0, 4, 7, "late", "late for chat", 1_000)
        >>> found = {(0, 5): Record(b"not JSON", 1), (0, 7): Record(b"{}", 2)}
        >>> letters = [orjson.loads(letter) for letter in lost.dead_letters(found, "requests")]
        >>> [(letter["offset"], letter["reason"], letter["length"]) for letter in letters]
        [(5, 'malformed_json', 8), (7, 'late', 2)]
        """
        for offset in self._skipped(records):
            record = records[self.partition, offset]
            reason, detail = (Reason.MALFORMED_JSON, _SKIPPED) if record.payload else (Reason.NO_VALUE, _EMPTY)
            yield self._letter(record, topic, offset, reason, detail)
        if self.reason:
            record = records.get((self.partition, self.offset), Record(None, None))
            detail = (self.detail or "") + (_GONE if record.payload is None else "")
            yield self._letter(record, topic, self.offset, self.reason, detail, event_time_ms=self.event_time_ms)

    def _skipped(self, records: Mapping[tuple[int, int], Record]) -> list[int]:
        """Offsets of the records that were skipped right before this request."""
        if self.previous_offset != NONE_SEEN:
            between = range(self.previous_offset + 1, self.offset)
            return [offset for offset in between if (self.partition, offset) in records]
        # The job's first request of the partition. What lies before may have been read by a job before this one, so
        # only records that nobody can read count, back to the last one that somebody could.
        skipped: list[int] = []
        for offset in range(self.offset - 1, max(0, self.offset - LOOK_BACK_RECORDS) - 1, -1):
            record = records.get((self.partition, offset))
            if record is not None and _is_object(record.payload):
                break
            if record is not None:
                skipped.append(offset)
        return skipped[::-1]

    def _letter(
        self, record: Record, topic: str, offset: int, reason: str, detail: str, *, event_time_ms: int | None = None
    ) -> bytes:
        return dead_letter_record(
            reason=reason,
            detail=detail,
            job=JOB,
            topic=topic,
            partition=self.partition,
            offset=offset,
            index=WHOLE_MESSAGE,
            payload=record.payload or b"",
            kafka_timestamp_ms=record.timestamp_ms,
            event_time_ms=event_time_ms,
        )


def _is_object(payload: bytes | None) -> bool:
    try:
        return isinstance(orjson.loads(payload or b""), dict)
    except orjson.JSONDecodeError:
        return False
