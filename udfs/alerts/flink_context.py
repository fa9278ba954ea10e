"""Topics `changes` and `silences` in Flink: each message checked once; what can't be read is a dead letter."""

from collections.abc import Iterator

from pyflink.common import Row, Types
from pyflink.datastream import ProcessFunction

from schemas.changes import decode_change
from schemas.dead_letters import WHOLE_MESSAGE, dead_letter_record
from schemas.record_fields import UnreadableRecordError
from schemas.silences import decode_silence
from udfs.alerts.context_store import key_of
from udfs.alerts.flink_lifecycle import DEAD_LETTERS, JOB

CONTEXT_TYPE = Types.ROW_NAMED(["context_key", "payload"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())])


class ReadContext(ProcessFunction):
    """Rows of tables `changes` and `silences` to rows of `CONTEXT_TYPE`; the unreadable to `DEAD_LETTERS`."""

    def __init__(self, silences_topic: str) -> None:
        self._silences_topic = silences_topic

    def process_element(self, row: Row, ctx: ProcessFunction.Context) -> Iterator[object]:
        """One message."""
        payload, topic, partition, offset, timestamp = row
        timestamp_ms = timestamp.to_epoch_milli()
        try:
            found = decode_silence(payload) if topic == self._silences_topic else decode_change(payload, timestamp_ms)
        except UnreadableRecordError as error:
            letter = dead_letter_record(
                reason=error.reason,
                detail=error.detail,
                job=JOB,
                topic=topic,
                partition=partition,
                offset=offset,
                index=WHOLE_MESSAGE,
                payload=payload or b"",
                kafka_timestamp_ms=timestamp_ms,
            )
            yield DEAD_LETTERS, Row(topic, letter)
            return
        yield Row(key_of(found), found.to_json())
