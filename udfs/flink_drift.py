"""The drift job's vectorised functions: one Python call for many records, slices or windows.

Their instances carry the judges, and so the prepared references, inside the job graph; a worker reads nothing from its
disk.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pyflink.table.udf import ScalarFunction

from udfs.judging.window_batch import verdicts_of_rows
from udfs.judging.window_judge import Input, WindowJudge
from udfs.parts import join_parts
from udfs.slicing.sketched import sketches_of
from udfs.slicing.slicer import NO_TIME_MS, Batch, RequestSlicer, Taken

# The parts of a row; letters are null where the record is not dead, counts but in a batch's first row.
_SERIES, _PACKETS, _SIZES, _LETTERS, _COUNTS = range(5)


class TakeRequests(ScalarFunction):
    """Records of topic `requests` -> a row each: packets, dead letter, counts; null where a record has none.

    The packets of a slice stand in the row of its last record in the batch, whose event time lies in the slice: so the
    row's own event time serves for the packet. The counts of a batch stand in its first row. Nearly all rows are null,
    so a row is one column of bytes, numbers as texts: with a column for each part, both sides would spend a tenth of
    their time on nulls.
    """

    def __init__(self, slicer: RequestSlicer) -> None:
        self.slicer = slicer

    def eval(self, *columns: "pd.Series[Any]") -> "pd.Series[Any]":
        """Series of BYTES, INT, BIGINT and three TIMESTAMP to a Series of ARRAY<ARRAY<BYTES>>.

        Two more of BYTES, if any, are the headers. The instants are those of `Batch`, in its order. The arrays in a
        row: by monitor the series, the packet (null where there is none) and how many requests are in it; the dead
        letter; and the counts: records, dead ones, and those late for each monitor.
        """
        values, partitions, offsets, *others = columns
        timestamps_ms, seen_ms, closed_ms = map(_epoch_ms, others[:3])
        numbers, labels = map(list, others[3:]) if len(others) > 3 else ((), ())
        batch = Batch(
            values=list(values),
            partitions=list(partitions),
            offsets=offsets.to_numpy(dtype=np.int64),
            timestamps_ms=timestamps_ms,
            seen_ms=seen_ms,
            closed_ms=closed_ms,
            numbers=numbers,
            labels=labels,
        )
        return _rows(self.slicer.take(batch), len(values))


def _epoch_ms(instants: "pd.Series[Any]") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    milliseconds = instants.to_numpy(dtype="datetime64[ms]")
    return np.where(np.isnat(milliseconds), NO_TIME_MS, milliseconds.astype(np.int64))


def _each(monitors: "pd.Series[int] | int", n: int) -> "Iterable[int]":
    """Flink gives a constant as a plain number: where one monitor has the slide for itself."""
    return [monitors] * n if isinstance(monitors, int) else monitors


def _rows(taken: Taken, n: int) -> "pd.Series[Any]":
    rows: list[Any] = [None] * n
    n_monitors = len(taken.packets)

    def row_of(number: int) -> Any:
        if rows[number] is None:
            rows[number] = [[None] * n_monitors, [None] * n_monitors, [b"0"] * n_monitors, None, None]
        return rows[number]

    for monitor, of_monitor in enumerate(taken.packets):
        for packet in of_monitor:
            row = row_of(packet.row)
            row[_SERIES][monitor], row[_PACKETS][monitor] = packet.series.encode(), packet.data
            row[_SIZES][monitor] = b"%d" % packet.n
    for number, letter in taken.letters.items():
        row_of(number)[_LETTERS] = [letter]
    row_of(0)[_COUNTS] = [b"%d" % count for count in (n, taken.n_dead, *taken.late)]
    return pd.Series(rows, dtype=object)


class SketchSlices(ScalarFunction):
    """(monitor, packets of a slice) -> the sketches of all judges of the monitor, joined."""

    def __init__(self, monitors: Sequence[tuple[Sequence[Input], Sequence[WindowJudge]]]) -> None:
        self.monitors = tuple((tuple(inputs), tuple(judges)) for inputs, judges in monitors)

    def eval(self, monitors: "pd.Series[int] | int", slices: "pd.Series[object]") -> "pd.Series[object]":
        """Series of INT (or one number) and ARRAY<BYTES> to a Series of BYTES."""
        rows = zip(_each(monitors, len(slices)), slices, strict=True)
        return pd.Series([self._sketched(monitor, packets) for monitor, packets in rows], dtype=object)

    def _sketched(self, monitor: int, packets: Any) -> bytes:
        inputs, judges = self.monitors[monitor]
        return join_parts(sketches_of(packets, inputs, judges))


class JudgeWindows(ScalarFunction):
    """(monitor, window end, series, ARRAY<BYTES> of joined sketches) -> the verdicts of the window, as JSON texts."""

    def __init__(self, monitors: Sequence[Sequence[WindowJudge]]) -> None:
        self.monitors = tuple(map(tuple, monitors))

    def eval(
        self,
        monitors: "pd.Series[int] | int",
        window_ends: "pd.Series[pd.Timestamp]",
        series: "pd.Series[str]",
        windows: "pd.Series[object]",
    ) -> "pd.Series[object]":
        """Series of INT (or one number), TIMESTAMP(3), STRING and ARRAY<BYTES> to a Series of ARRAY<STRING>."""
        ends_ms = window_ends.astype("datetime64[ms]").astype("int64")
        rows = zip(_each(monitors, len(series)), ends_ms, series, windows, strict=True)
        judged = verdicts_of_rows(self.monitors, rows)
        return pd.Series([[v.to_json().decode() for v in of_row] for of_row in judged], dtype=object)
