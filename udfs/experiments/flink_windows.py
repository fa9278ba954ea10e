"""The experiment job's Flink functions: sketch of an arm, windows of all experiments, and the state machine's host.

Their instances carry the experiments inside the job graph; a worker reads nothing from its disk.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pandas as pd
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.table.udf import ScalarFunction

from udfs.experiments.arm_sketch import ArmSketch
from udfs.experiments.state import ExperimentState, decode, encode
from udfs.experiments.step import Experiment, step
from udfs.experiments.window import ExperimentWindow
from udfs.judging.window_judge import Input, InputKind
from udfs.parts import join_parts, split_parts
from udfs.slicing.packets import unpack

JOB = "experiment"
USERS = (Input("user_hash", InputKind.TEXT),)
VERDICT_TYPE = Types.ROW_NAMED(["series_key", "verdict"], [Types.STRING(), Types.STRING()])
# Part of the savepoint: never rename it.
STATE_NAME = "experiment"


class SketchArm(ScalarFunction):
    """(series, packets of user hashes) of a slice -> the bytes of its `ArmSketch`."""

    def __init__(self, most_users: int) -> None:
        self.most_users = most_users

    def eval(self, series: "pd.Series[Any]", slices: "pd.Series[Any]") -> "pd.Series[Any]":
        """Series of STRING (JSON of experiment, epoch, arm) and ARRAY<BYTES> to a Series of BYTES."""
        rows = zip(series, slices, strict=True)
        return pd.Series([self._sketch(labels, packets) for labels, packets in rows], dtype=object)

    def _sketch(self, series: str, packets: Sequence[bytes]) -> bytes:
        experiment, epoch, arm = orjson.loads(series)
        (users,) = unpack(packets, USERS)
        return ArmSketch.of(experiment, epoch, arm, list(users), self.most_users).to_bytes()


class GatherWindows(ScalarFunction):
    """(window end, ARRAY<BYTES> of sketches) -> one window an experiment, those without traffic too, as ARRAY<BYTES>.

    Sketches of other experiments, and of requests that are in none, are left out.
    """

    def __init__(self, experiments: Sequence[str]) -> None:
        self.experiments = tuple(experiments)

    def eval(self, window_ends: "pd.Series[pd.Timestamp]", windows: "pd.Series[Any]") -> "pd.Series[Any]":
        """Series of TIMESTAMP(3) and ARRAY<BYTES> to a Series of ARRAY<BYTES>."""
        ends_ms = window_ends.astype("datetime64[ms]").astype("int64")
        return pd.Series(
            [self._gathered(int(end_ms), of) for end_ms, of in zip(ends_ms, windows, strict=True)], dtype=object
        )

    def _gathered(self, end_ms: int, sketches: Sequence[bytes]) -> list[bytes]:
        found: dict[str, list[bytes]] = {name: [] for name in self.experiments}
        for data in sketches:
            name = ArmSketch.from_bytes(data).experiment
            if name in found:
                found[name].append(data)
        return [join_parts([name.encode(), str(end_ms).encode(), *of]) for name, of in found.items()]


def experiment_of(row: Row) -> str:
    """The key of a gathered window: its experiment."""
    return split_parts(row[0])[0].decode()


def window_of(data: bytes) -> tuple[str, ExperimentWindow]:
    """Return experiment and window of what `GatherWindows` gave."""
    name, end_ms, *sketches = split_parts(data)
    return name.decode(), ExperimentWindow.of(int(end_ms), map(ArmSketch.from_bytes, sketches))


class JudgeExperiments(KeyedProcessFunction):
    """Gathered windows, keyed by `experiment_of`, to rows of `VERDICT_TYPE`. The logic is in `udfs.experiments.step`.

    One read and one write of the experiment's state a window: 9 bytes a user remembered.
    """

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self._experiments = dict(experiments)
        self._state: ValueState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the state."""
        descriptor = ValueStateDescriptor(STATE_NAME, Types.PRIMITIVE_ARRAY(Types.BYTE()))
        self._state = runtime_context.get_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One window: its verdicts, after those on the windows that were skipped before it."""
        name, window = window_of(row[0])
        stored = self._state.value()
        before = ExperimentState() if stored is None else decode(bytes(stored))
        after, verdicts = step(before, window, self._experiments[name])
        if after is not before:
            self._state.update(encode(after))
        for verdict in verdicts:
            yield Row(verdict.series_key, verdict.to_json().decode())
