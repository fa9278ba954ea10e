"""A finding on the pooled series `other`: its monitor has more series than it may have (design: a cap on series)."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.window_judge import Input, Values
from udfs.slicing.series_cap import OTHER_LABEL

TEST, METHOD, FEATURE = "series_cap", "counted", "series_cap"
_COUNT = struct.Struct("<Q")


@dataclass(frozen=True)
class SeriesCapped:
    """One finding a window of series `other`, none of any other series.

    Its statistic is one more than `max_series`: so many there are at least. `n_window` counts the requests pooled. Its
    evidence has the `remedy`.
    """

    frame: Frame
    max_series: int
    counted: Input
    remedy: str = "group by fewer labels, or raise max_series"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """A field that the monitor collects anyway, for the number of requests alone."""
        return (self.counted,)

    def sketch(self, *columns: Values) -> bytes:
        """Return the number of requests in the slice, 8 bytes."""
        return _COUNT.pack(len(columns[0]))

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the finding where the series is `other`. O(slices)."""
        if not labels or set(labels) != {OTHER_LABEL}:
            return []
        pooled = sum(_COUNT.unpack(sketch)[0] for sketch in sketches)
        measured = Measured(
            float(self.max_series + 1),
            threshold=float(self.max_series),
            wrong_side="above",
            status=Status.OK,
            n_window=pooled,
            evidence={"max_series": self.max_series, "remedy": self.remedy},
        )
        frame = self.frame.about(FEATURE, VerdictKind.FINDING)
        return [measured_verdict(frame, labels, window_end_ms, measured, test=TEST, method=METHOD)]
