"""The alert lifecycle in Flink: state in, `step`, state out. The logic is in `udfs.alerts.lifecycle`."""

from collections.abc import Iterator

import orjson
from pyflink.common import Row, Time, Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueState, ValueStateDescriptor

from schemas.alerts import Alert
from udfs.alerts import state as lifecycle_state
from udfs.alerts.cause_signals import observation_of
from udfs.alerts.labels import alert_labels
from udfs.alerts.lifecycle import rule_of, step
from udfs.alerts.rule import AlertRules
from udfs.alerts.scope import scope_key
from udfs.alerts.verdict_event import UnreadableVerdictError, VerdictEvent, decode_verdict, key_of, refuse_future
from udfs.flink_raw_rows import dead_letter_of, kafka_timestamp_ms
from udfs.signals.follow import field_of

JOB = "alert"
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
ALERT_TYPE = Types.ROW_NAMED(["fingerprint", "payload"], [Types.STRING(), BYTES])
# What goes from the first stage to the second: its scope, what it is, its event time, a name unique at that time.
STAGED_TYPE = Types.ROW_NAMED(
    ["scope", "what", "time_ms", "name", "payload"],
    [Types.STRING(), Types.STRING(), Types.LONG(), Types.STRING(), BYTES],
)
TRANSITION, OBSERVATION = "transition", "observation"
DEAD_LETTER_TYPE = Types.ROW_NAMED(["source_topic", "payload"], [Types.STRING(), BYTES])
DEAD_LETTERS = OutputTag("dead_letters", DEAD_LETTER_TYPE)
# Part of the savepoint: never rename it.
STATE_NAME = "alert_lifecycle"


def series_of(row: Row) -> str:
    """The key of a verdict's row: its series key; "" for one that can't be read."""
    return key_of(row[0])


def scope_of(row: Row) -> str:
    """The key of a row of `STAGED_TYPE`."""
    return str(row[0])


class AlertLifecycle(KeyedProcessFunction):
    """Rows of table `verdicts` (jobs/sql/raw_topic.sql), keyed by `series_of`, to rows of `STAGED_TYPE`.

    What can't be read goes to side output `DEAD_LETTERS`. Verdicts on root-cause signals go on as observations.

    One read and one write of about a kilobyte of state a verdict.
    """

    def __init__(self, rules: AlertRules) -> None:
        self._rules = rules
        self._signals = frozenset(signal.field for signal in rules.incidents.causes.signals)
        self._state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state. It has a time to live from the start: Flink can't add one to a savepoint later."""
        descriptor = ValueStateDescriptor(STATE_NAME, BYTES)
        life = Time.milliseconds(round(self._rules.forget_series_after_days * 86_400_000))
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(life).build())
        self._state = runtime_context.get_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[object]:
        """One verdict: a transition, an observation, a dead letter, or most often nothing."""
        try:
            event = self._event(row)
        except UnreadableVerdictError as error:
            yield DEAD_LETTERS, Row(row[1], dead_letter_of(row, error, JOB))
            return
        for alert in self._advance(event):
            scope = scope_key(alert.labels, self._rules.incidents.incident_labels)
            yield Row(scope, TRANSITION, alert.updated_at_ms, alert.alert_id, alert.to_json())
        if field_of(event.feature) in self._signals:
            yield from self._observed(event, row[0])

    def _observed(self, event: VerdictEvent, payload: bytes) -> Iterator[Row]:
        """What the verdict says of a root-cause signal, if anything; for alerts of the same scope."""
        found = observation_of(orjson.loads(payload))
        if found is not None:
            rule = rule_of(self._rules.for_monitor(event.monitor), event)
            labels = alert_labels(rule, event.monitor, event.feature, event.series)
            scope = scope_key(labels, self._rules.incidents.incident_labels)
            yield Row(scope, OBSERVATION, found.window_end_ms, found.verdict_id, orjson.dumps(found.to_dict()))

    def _event(self, row: Row) -> VerdictEvent:
        event = decode_verdict(row[0])
        refuse_future(event, kafka_timestamp_ms(row), self._rules.max_clock_skew_seconds)
        return event

    def _advance(self, event: VerdictEvent) -> tuple[Alert, ...]:
        """Move the series' state by `event` and return the transitions."""
        stored = self._state.value()
        before = lifecycle_state.LifecycleState() if stored is None else lifecycle_state.decode(bytes(stored))
        after, alerts = step(before, event, self._rules.for_monitor(event.monitor))
        if after is not before:
            self._state.update(lifecycle_state.encode(after))
        return alerts
