"""The SLO job's Flink functions: tallies of a slice for all SLOs of a group, and the host of their state machines.

Their instances carry the SLOs inside the job graph; a worker reads nothing from its disk.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import pandas as pd
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor
from pyflink.table.udf import ScalarFunction

from udfs.judging.window_judge import Input
from udfs.parts import join_parts, split_parts
from udfs.slicing.packets import unpack
from udfs.slo.indicators import NOTHING, Tally, tallies
from udfs.slo.silence import silence_at
from udfs.slo.slo import Slo
from udfs.slo.state import instants
from udfs.slo.step import SloSeries

JOB = "slo"
VERDICT_TYPE = Types.ROW_NAMED(["series_key", "verdict"], [Types.STRING(), Types.STRING()])
# Part of the savepoint: never rename it.
STATE_NAME = "slos"
_SEPARATOR = "\x00"
_EPOCH, _MILLISECOND = datetime(1970, 1, 1), timedelta(milliseconds=1)


@dataclass(frozen=True)
class SloGroup:
    """SLOs whose series are told apart by the same labels: they share slices."""

    labels: tuple[str, ...]
    slos: tuple[Slo, ...]

    @property
    def name(self) -> str:
        """The labels: a group keeps its state when others come or go."""
        return ",".join(self.labels)

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What the indicators want of a request, each once."""
        return tuple(dict.fromkeys(given for slo in self.slos for given in slo.indicator.inputs))


class TallySlices(ScalarFunction):
    """(group, packets of a slice) -> one tally an SLO of the group, joined."""

    def __init__(self, groups: Sequence[SloGroup]) -> None:
        self.groups = {group.name: (group.inputs, tuple(slo.indicator for slo in group.slos)) for group in groups}

    def eval(self, names: "pd.Series[str] | str", slices: "pd.Series[Any]") -> "pd.Series[Any]":
        """Series of STRING (or one text: Flink gives a constant as such) and ARRAY<BYTES> to a Series of BYTES."""
        each: Iterable[str] = [names] * len(slices) if isinstance(names, str) else names
        return pd.Series([self._tallied(*row) for row in zip(each, slices, strict=True)], dtype=object)

    def _tallied(self, name: str, packets: Sequence[bytes]) -> bytes:
        inputs, indicators = self.groups[name]
        columns = unpack(packets, inputs)
        return join_parts([tally.to_bytes() for tally in tallies(indicators, inputs, columns)])


def group_and_series(row: Row) -> str:
    """The key of a slice: its group, and the values of the group's labels."""
    return f"{row[0]}{_SEPARATOR}{row[1]}"


class JudgeSlos(KeyedProcessFunction):
    """Rows (group, series, tallies, slice end), keyed by `group_and_series`, to rows of `VERDICT_TYPE`.

    The logic is in `udfs.slo.step`. A timer a slice later steps over a slice without events; when the series has been
    silent for so long that nothing is left to know of it, its state goes. State: at most 50 kB an SLO and series.
    """

    def __init__(self, groups: Sequence[SloGroup], slice_ms: int) -> None:
        self._groups: Mapping[str, SloGroup] = {group.name: group for group in groups}
        self._slice_ms = slice_ms
        self._states: MapState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the states, one an SLO."""
        descriptor = MapStateDescriptor(STATE_NAME, Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()))
        self._states = runtime_context.get_map_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One closed slice of a series."""
        group, labels = self._of(ctx.get_current_key())
        slice_end_ms = (row[3] - _EPOCH) // _MILLISECOND
        for slo, data in zip(group.slos, split_parts(row[2]), strict=True):
            yield from self._step(slo, labels, slice_end_ms, Tally.from_bytes(data))
        ctx.timer_service().register_event_time_timer(slice_end_ms + self._slice_ms)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Row]:
        """The slice that ends at `timestamp` has closed; where it had no event, say so, or forget the series."""
        key = ctx.get_current_key()
        if key.partition(_SEPARATOR)[0] not in self._groups:
            self._states.clear()  # no SLO of this file is by these labels
            return
        group, labels = self._of(key)
        again_ms = []
        for slo in group.slos:
            stored = self._states.get(slo.name)
            if stored is None:
                continue
            end_ms, data_ms = instants(bytes(stored))
            silence = silence_at(slo, timestamp, last_end_ms=end_ms, last_data_ms=data_ms, slice_ms=self._slice_ms)
            if silence.forgets:
                self._states.remove(slo.name)
            if silence.speaks:
                yield from self._step(slo, labels, timestamp, NOTHING)
            if silence.again_ms is not None:
                again_ms.append(silence.again_ms)
        if again_ms:
            ctx.timer_service().register_event_time_timer(min(again_ms))

    def _of(self, key: str) -> tuple[SloGroup, tuple[str, ...]]:
        name, _, series = key.partition(_SEPARATOR)
        return self._groups[name], tuple(orjson.loads(series))

    def _step(self, slo: Slo, labels: tuple[str, ...], slice_end_ms: int, tally: Tally) -> Iterator[Row]:
        stored = self._states.get(slo.name)
        before = None if stored is None else bytes(stored)
        after, verdicts = SloSeries(slo, labels, self._slice_ms).step(before, slice_end_ms, tally)
        if after is not before:
            self._states.put(slo.name, after)
        for verdict in verdicts:
            yield Row(verdict.series_key, verdict.to_json().decode())
