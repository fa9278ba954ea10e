"""Topics `changes` and `silences` in Flink: each message checked once; what can't be read is a dead letter."""

from collections.abc import Iterator

from pyflink.common import Row, Types
from pyflink.datastream import ProcessFunction

from schemas.changes import Change, decode_change
from schemas.record_fields import UnreadableRecordError
from schemas.silences import Silence, decode_silence
from udfs.alerts.context_store import key_of
from udfs.alerts.flink_lifecycle import DEAD_LETTERS, JOB
from udfs.flink_raw_rows import dead_letter_of, kafka_timestamp_ms

CONTEXT_TYPE = Types.ROW_NAMED(["context_key", "payload"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())])


class ReadContext(ProcessFunction):
    """Rows of tables `changes` and `silences` to rows of `CONTEXT_TYPE`; the unreadable to `DEAD_LETTERS`."""

    def __init__(self, silences_topic: str) -> None:
        self._silences_topic = silences_topic

    def process_element(self, row: Row, ctx: ProcessFunction.Context) -> Iterator[object]:
        """One message."""
        found: Silence | Change
        payload, topic = row[0], row[1]
        try:
            if topic == self._silences_topic:
                found = decode_silence(payload)
            else:
                found = decode_change(payload, kafka_timestamp_ms(row))
        except UnreadableRecordError as error:
            yield DEAD_LETTERS, Row(topic, dead_letter_of(row, error, JOB))
            return
        yield Row(key_of(found), found.to_json())
