"""The drift job's vectorised functions: one Python call for many slices, windows or dead letters.

Their instances carry the judges, and so the prepared references, inside the job graph; a worker reads nothing from its
disk.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from pyflink.table.udf import ScalarFunction

from udfs.judging.window_judge import WindowJudge
from udfs.kafka_records import KafkaRecords
from udfs.lost_requests import LostRequest


class SketchSlices(ScalarFunction):
    """The values of a slice, an array an input of the judge -> the bytes of its sketch."""

    def __init__(self, judge: WindowJudge) -> None:
        self.judge = judge

    def eval(self, *columns: "pd.Series[object]") -> "pd.Series[bytes]":
        """Series of ARRAY (nulls allowed), one an input, to a Series of BYTES."""
        sketches = [self.judge.sketch(*slices) for slices in zip(*columns, strict=True)]
        return pd.Series(sketches, dtype=object)


class JudgeWindows(ScalarFunction):
    """(window end, labels, one ARRAY<BYTES> of sketches a judge) -> the verdicts of the window, as JSON texts."""

    def __init__(self, judges: Sequence[WindowJudge]) -> None:
        self.judges = tuple(judges)

    def eval(self, window_ends: "pd.Series[pd.Timestamp]", *columns: "pd.Series[object]") -> "pd.Series[object]":
        """Series of TIMESTAMP(3), STRING (each label) and ARRAY<BYTES> (each judge) to a Series of ARRAY<STRING>."""
        rows = zip(window_ends.astype("datetime64[ms]").astype("int64"), *columns, strict=True)
        return pd.Series([self._verdicts(int(end_ms), row) for end_ms, *row in rows], dtype=object)

    def _verdicts(self, window_end_ms: int, row: Sequence[object]) -> list[str]:
        labels = [str(label) for label in row[: -len(self.judges)]]
        sketches = row[-len(self.judges) :]
        return [
            verdict.to_json().decode()
            for judge, of_judge in zip(self.judges, sketches, strict=True)
            for verdict in judge.judge(labels, window_end_ms, of_judge)  # type: ignore[arg-type]
        ]


class FetchLost(ScalarFunction):
    """Columns of `LostRequest` -> the dead letters (ARRAY<BYTES>) of the request and of what was skipped before it."""

    def __init__(self, kafka_settings: Mapping[str, str], topic: str) -> None:
        self.kafka_settings, self.topic = dict(kafka_settings), topic
        self.records: KafkaRecords | None = None

    def close(self) -> None:
        """Give the connection back."""
        if self.records is not None:
            self.records.close()

    def eval(self, *columns: "pd.Series[object]") -> "pd.Series[object]":
        """Series of INT, BIGINT, BIGINT, STRING, STRING, STRING to a Series of ARRAY<BYTES>."""
        if self.records is None:  # connected late: most jobs lose no request
            self.records = KafkaRecords(self.kafka_settings, self.topic)
        lost = [LostRequest.from_columns(*row) for row in zip(*columns, strict=True)]
        records = self.records.read([place for request in lost for place in request.places])
        return pd.Series([list(request.dead_letters(records, self.topic)) for request in lost], dtype=object)
