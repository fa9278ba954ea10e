"""The drift job's vectorised functions: one Python call for many slices, windows or dead letters.

Their instances carry the prepared references inside the job graph; a worker reads nothing from its disk.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from pyflink.table.udf import ScalarFunction

from udfs.judge import WindowTest
from udfs.kafka_records import KafkaRecords
from udfs.lost_requests import LostRequest
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference


class SketchSlices(ScalarFunction):
    """The values of a slice -> the bytes of its rank sketch."""

    def __init__(self, reference: RankReference) -> None:
        self.reference = reference

    def eval(self, slices: "pd.Series[object]") -> "pd.Series[bytes]":
        """Series of ARRAY<DOUBLE> (nulls allowed) to a Series of BYTES. O(n log n) a slice of n values."""
        sketches = [RankSketch.from_values(values, self.reference).to_bytes() for values in slices]
        return pd.Series(sketches, dtype=object)


class JudgeWindows(ScalarFunction):
    """(window end, labels, one ARRAY<BYTES> of sketches a feature) -> the verdicts of the window, as JSON texts."""

    def __init__(self, tests: Sequence[WindowTest]) -> None:
        self.tests = tuple(tests)

    def eval(self, window_ends: "pd.Series[pd.Timestamp]", *columns: "pd.Series[object]") -> "pd.Series[object]":
        """Series of TIMESTAMP(3), STRING (each label) and ARRAY<BYTES> (each feature) to a Series of ARRAY<STRING>."""
        rows = zip(window_ends.astype("datetime64[ms]").astype("int64"), *columns, strict=True)
        return pd.Series([self._verdicts(int(end_ms), row) for end_ms, *row in rows], dtype=object)

    def _verdicts(self, window_end_ms: int, row: Sequence[object]) -> list[str]:
        labels = [str(label) for label in row[: -len(self.tests)]]
        sketches = row[-len(self.tests) :]
        verdicts = (
            test.judge(labels, window_end_ms, of_feature)  # type: ignore[arg-type]
            for test, of_feature in zip(self.tests, sketches, strict=True)
        )
        return [verdict.to_json().decode() for verdict in verdicts]


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
