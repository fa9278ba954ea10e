"""Labels in Flink: records of topic `feedback` to a row for each monitor that wants the label."""

from collections.abc import Iterator, Sequence

import orjson
from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction

from schemas.dead_letters import Reason
from schemas.feedback import Feedback, decode_feedback
from schemas.record_fields import UnreadableRecordError
from udfs.flink_raw_rows import dead_letter_of, kafka_timestamp_ms
from udfs.signals.feedback import FeedbackScore

# Verdicts and labels go one way together: of each row one of the two is there, and a label's key with it.
FOLLOWED_TYPE = Types.ROW_NAMED(["verdict", "label", "key"], [Types.STRING(), Types.STRING(), Types.STRING()])
DEAD_LETTERS = OutputTag(
    "feedback_dead_letters",
    Types.ROW_NAMED(["topic", "letter"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())]),
)


def key_of(monitor: str, series: dict[str, str]) -> str:
    """The key of all that signals of one series have to see together."""
    return orjson.dumps([monitor, series], option=orjson.OPT_SORT_KEYS).decode()


class TakeFeedback(ProcessFunction):
    """Rows of table `feedback` (jobs/sql/raw_topic.sql) to rows of `FOLLOWED_TYPE`; the rest to `DEAD_LETTERS`.

    A label whose time is more than `max_skew_seconds` after its Kafka timestamp is dead: it would keep its place for
    good. Labels of scores that nobody follows are passed over: they are others' business.
    """

    def __init__(self, job: str, scores: Sequence[FeedbackScore], max_skew_seconds: float) -> None:
        self._job, self._scores, self._max_skew_seconds = job, tuple(scores), max_skew_seconds

    def process_element(self, row: Row, ctx: ProcessFunction.Context) -> Iterator[object]:
        """One label."""
        try:
            label = self._label(row)
        except UnreadableRecordError as error:
            yield DEAD_LETTERS, Row(row[1], dead_letter_of(row, error, self._job))
            return
        text = label.to_json().decode()
        for score in self._scores:
            if score.accepts(label):
                series = dict(zip(score.frame.group_by, score.labels(label), strict=True))
                yield Row(None, text, key_of(score.frame.monitor, series))

    def _label(self, row: Row) -> Feedback:
        label = decode_feedback(row[0])
        if label.label_time_ms > kafka_timestamp_ms(row) + self._max_skew_seconds * 1000:
            detail = f"label_time is more than {self._max_skew_seconds:g} s after the Kafka timestamp"
            raise UnreadableRecordError(Reason.CLOCK_SKEW, detail)
        return label
