"""Slice machines in Flink: slices in, verdicts out. The logic is in `udfs.judging.slice_machine`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import orjson
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor

from udfs.judging.slice_machine import SliceMachine
from udfs.judging.window_judge import Input
from udfs.slicing.packets import unpack

_EPOCH, _MILLISECOND = datetime(1970, 1, 1), timedelta(milliseconds=1)
# Part of the savepoint: never rename it.
STATE_NAME = "slice_machines"


def series_of(row: Row) -> str:
    """The key of a slice's row: its monitor and series."""
    return f"{row[0]}\x00{row[1]}"


class StepSlices(KeyedProcessFunction):
    """Rows (monitor, series, packets, slice end), keyed by `series_of`, to rows of one verdict (JSON text).

    `monitors` has what each monitor collects, and its machines.
    """

    def __init__(self, monitors: Mapping[int, tuple[Sequence[Input], Sequence[SliceMachine]]]) -> None:
        self._monitors = dict(monitors)
        self._states: MapState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the states, one a machine."""
        descriptor = MapStateDescriptor(STATE_NAME, Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()))
        self._states = runtime_context.get_map_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One closed slice of a series."""
        inputs, machines = self._monitors[row[0]]
        if not machines:
            return
        labels, packets = orjson.loads(row[1]), [bytes(packet) for packet in row[2]]
        slice_end_ms = (row[3] - _EPOCH) // _MILLISECOND
        columns = dict(zip(inputs, unpack(packets, inputs), strict=True))
        for machine in machines:
            stored = self._states.get(machine.uid)
            given = (columns[wanted] for wanted in machine.inputs)
            after, verdicts = machine.step(None if stored is None else bytes(stored), labels, slice_end_ms, *given)
            self._states.put(machine.uid, after)
            yield from (Row(verdict.to_json().decode()) for verdict in verdicts)
