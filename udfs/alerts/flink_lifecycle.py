"""The alert lifecycle in Flink: state in, `step`, state out. The logic is in `udfs.alerts.lifecycle`."""

from collections.abc import Iterator

from pyflink.common import Row, Time, Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueState, ValueStateDescriptor

from schemas.alerts import Alert
from schemas.dead_letters import WHOLE_MESSAGE, dead_letter_record
from udfs.alerts import state as lifecycle_state
from udfs.alerts.lifecycle import step
from udfs.alerts.rule import AlertRules
from udfs.alerts.verdict_event import UnreadableVerdictError, VerdictEvent, decode_verdict, key_of, refuse_future

JOB = "alert"
ALERT_TYPE = Types.ROW_NAMED(["fingerprint", "payload"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())])
DEAD_LETTER_TYPE = Types.ROW_NAMED(["source_topic", "payload"], [Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())])
DEAD_LETTERS = OutputTag("dead_letters", DEAD_LETTER_TYPE)
# Part of the savepoint: never rename it.
STATE_NAME = "alert_lifecycle"


def series_of(row: Row) -> str:
    """The key of a verdict's row: its series key; "" for one that can't be read."""
    return key_of(row[0])


class AlertLifecycle(KeyedProcessFunction):
    """Rows of table `verdicts` (jobs/sql/alert.sql), keyed by `series_of`, to rows of `ALERT_TYPE`.

    What can't be read goes to side output `DEAD_LETTERS`.

    One read and one write of about a kilobyte of state a verdict.
    """

    def __init__(self, rules: AlertRules) -> None:
        self._rules = rules
        self._state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state. It has a time to live from the start: Flink can't add one to a savepoint later."""
        descriptor = ValueStateDescriptor(STATE_NAME, Types.PRIMITIVE_ARRAY(Types.BYTE()))
        life = Time.milliseconds(round(self._rules.forget_series_after_days * 86_400_000))
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(life).build())
        self._state = runtime_context.get_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[object]:
        """One verdict: an alert's transition, a dead letter, or most often nothing."""
        try:
            event = self._event(row)
        except UnreadableVerdictError as error:
            yield DEAD_LETTERS, Row(row[1], _dead_letter(row, error))
            return
        for alert in self._advance(event):
            yield Row(alert.fingerprint, alert.to_json())

    def _event(self, row: Row) -> VerdictEvent:
        event = decode_verdict(row[0])
        refuse_future(event, row[4].to_epoch_milli(), self._rules.max_clock_skew_seconds)
        return event

    def _advance(self, event: VerdictEvent) -> tuple[Alert, ...]:
        """Move the series' state by `event` and return the transitions."""
        stored = self._state.value()
        before = lifecycle_state.LifecycleState() if stored is None else lifecycle_state.decode(bytes(stored))
        after, alerts = step(before, event, self._rules.for_monitor(event.monitor))
        if after is not before:
            self._state.update(lifecycle_state.encode(after))
        return alerts


def _dead_letter(row: Row, error: UnreadableVerdictError) -> bytes:
    return dead_letter_record(
        reason=error.reason,
        detail=error.detail,
        job=JOB,
        topic=row[1],
        partition=row[2],
        offset=row[3],
        index=WHOLE_MESSAGE,
        payload=row[0] or b"",
        kafka_timestamp_ms=row[4].to_epoch_milli(),
    )
