"""The metrics job's functions: messages to lines, and the series of a family in keyed state. The logic is elsewhere.

`metric_lines` takes messages apart, `metric_family` and `metric_series` say what became of each point.
"""

from collections.abc import Iterable, Iterator

import pandas as pd
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor, ValueState, ValueStateDescriptor
from pyflink.table.udf import ScalarFunction

from schemas.books import MetricKind
from schemas.dead_letters import dead_letter_record
from udfs.telemetry.dead_lines import record_of_line
from udfs.telemetry.metric_family import Family, FamilyPolicy, take
from udfs.telemetry.metric_lines import FAMILY_AT, PLACE_AT, POINT_AT, metric_lines
from udfs.telemetry.metric_points import MetricPoint
from udfs.telemetry.metric_series import NS_PER_MS, Outcome

JOB = "ingest-metrics"
OUTCOME_TYPE = Types.ROW_NAMED(
    ["kind", "record_key", "record", "n"],
    [Types.STRING(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.LONG()],
)
# Part of the savepoint: never rename them.
SERIES_STATE, FAMILY_STATE = "metric_series", "metric_family"


class MetricLines(ScalarFunction):
    """(message bytes, Kafka timestamp) -> newline-separated lines of `udfs.telemetry.metric_lines`."""

    def __init__(self, encoding: str, *, lenient: bool, max_skew_ms: int) -> None:
        self.encoding, self.lenient, self.max_skew_ms = encoding, lenient, max_skew_ms

    def eval(self, messages: "pd.Series[bytes]", timestamps: "pd.Series[int]") -> "pd.Series[str]":
        """Series of BYTES and BIGINT (epoch ms) to a Series of STRING of the same length."""
        lines = metric_lines(
            list(messages),
            [int(stamp) for stamp in timestamps],
            encoding=self.encoding,
            lenient=self.lenient,
            max_skew_ms=self.max_skew_ms,
        )
        return pd.Series(lines, dtype=object)


def family_of_line(row: Row) -> str:
    """The key of a line of view `lines` (jobs/sql/ingest_metrics.sql): its family, else its partition."""
    line: str = row[0]
    return line[FAMILY_AT:PLACE_AT] if line[0] == "P" else f"partition {row[2]}"


class _FlinkStore:
    """The series of the current family, in a map of Flink's."""

    def __init__(self, states: MapState) -> None:
        self._states = states

    def get(self, key: str) -> bytes | None:
        stored = self._states.get(key)
        return None if stored is None else bytes(stored)

    def put(self, key: str, value: bytes) -> None:
        self._states.put(key, value)

    def remove(self, key: str) -> None:
        self._states.remove(key)

    def items(self) -> Iterable[tuple[str, bytes]]:
        return [(key, bytes(value)) for key, value in self._states.items()]


class MeasureSeries(KeyedProcessFunction):
    """Rows (line, topic, partition, offset, Kafka timestamp in ms), keyed by `family_of_line`, to `OUTCOME_TYPE`.

    An outcome is counted in the books as `n` of `kind`; a measurement or a dead letter comes with its key and record.
    One read and one write of a series' state a point: up to 1.3 kB and its buckets.
    """

    def __init__(self, policy: FamilyPolicy) -> None:
        self._policy = policy
        self._series: MapState
        self._family: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state."""
        bytes_type = Types.PRIMITIVE_ARRAY(Types.BYTE())
        self._series = runtime_context.get_map_state(MapStateDescriptor(SERIES_STATE, Types.STRING(), bytes_type))
        self._family = runtime_context.get_state(ValueStateDescriptor(FAMILY_STATE, bytes_type))

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One line: what it adds to the books, and its record where it makes one."""
        line = row[0]
        if line[0] == "B":
            yield Row(str(MetricKind.POINTS), None, None, int(line.removeprefix('B{"points":').removesuffix("}")))
        elif line[0] == "D":
            record = record_of_line(
                line, job=JOB, topic=row[1], partition=row[2], offset=row[3], kafka_timestamp_ms=row[4]
            )
            yield Row(str(MetricKind.DEAD), row[1], record, 1)
        else:
            point = MetricPoint.from_json(line[POINT_AT:])
            yield self._outcome_row(row, point, self._advance(point))

    def _advance(self, point: MetricPoint) -> Outcome:
        """Move the family's state by `point`."""
        stored = self._family.value()
        before = Family() if stored is None else Family.from_json(bytes(stored))
        after, outcome = take(_FlinkStore(self._series), before, point, self._policy)
        if after != before:
            self._family.update(after.to_json())
        return outcome

    def _outcome_row(self, row: Row, point: MetricPoint, outcome: Outcome) -> Row:
        if outcome.measurement is not None:
            return Row(str(outcome.kind), point.series_id, outcome.measurement.to_json(), 1)
        if outcome.reason is None:
            return Row(str(outcome.kind), None, None, 1)
        record = dead_letter_record(
            reason=outcome.reason,
            detail=outcome.detail,
            job=JOB,
            topic=row[1],
            partition=row[2],
            offset=row[3],
            index=int(row[0][PLACE_AT:POINT_AT]),
            payload=row[0][POINT_AT:].encode(),
            kafka_timestamp_ms=row[4],
            event_time_ms=point.time_ns // NS_PER_MS,
        )
        return Row(str(outcome.kind), row[1], record, 1)
