"""What judges slices one after the other, in the order of time: windows by count, this hour against an earlier one.

Where a `WindowJudge` needs only the sketches of one window, these remember. The job keeps the bytes in keyed state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schemas.verdicts import Verdict
from udfs.judging.count_windows import cut, judge_count_window
from udfs.judging.same_hour import SameHour
from udfs.judging.window_judge import Input, InputKind, Values, WindowJudge
from udfs.sketches.log import LogSketch

_TIME = Input("event_time_ms", InputKind.NUMBER)  # exact: below 2**53
_IDS = Input("trace_id", InputKind.TEXT), Input("span_id", InputKind.TEXT)


class SliceMachine(Protocol):
    """A pure state machine over the closed slices of one series.

    Slices come whole (all shards in one call), each once, in the order of their ends. It must pickle, and depend on
    nothing but its arguments.
    """

    @property
    def uid(self) -> str:
        """Names the machine among those of its monitor, and so its state."""
        ...

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What to collect, at least one field."""
        ...

    def step(
        self, state: bytes | None, labels: Sequence[str], slice_end_ms: int, *columns: Values
    ) -> tuple[bytes, list[Verdict]]:
        """Return the state after a slice, and what there is to say; None is the state of a new series."""
        ...


@dataclass(frozen=True)
class CountWindows:
    """Windows of `judge` by count (`udfs.judging.count_windows`). The judge must want one number (ValueError)."""

    judge: WindowJudge
    count: int

    def __post_init__(self) -> None:
        if [given.kind for given in self.judge.inputs] != [InputKind.NUMBER]:
            raise ValueError("windows by count are for tests of one numeric field")

    @property
    def uid(self) -> str:
        """The field and how many."""
        return f"count:{self.judge.inputs[0].field}:{self.count}"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, and what requests are put in order by."""
        return (self.judge.inputs[0], _TIME, *_IDS)

    def step(
        self, state: bytes | None, labels: Sequence[str], slice_end_ms: int, *columns: Values
    ) -> tuple[bytes, list[Verdict]]:
        """Return the state and the verdicts of the windows that the slice filled. O(n log n)."""
        values, times, traces, spans = columns
        ids = [f"{trace}/{span}" for trace, span in zip(traces, spans, strict=True)]
        times_ms = np.asarray(times, dtype=np.int64)
        after, windows = cut(state, slice_end_ms, times_ms, ids, values, count=self.count)
        return after, [v for window in windows for v in judge_count_window(self.judge, labels, window)]


@dataclass(frozen=True)
class EarlierHour:
    """Each hour against an earlier one (`udfs.judging.same_hour`); slices are whole hours."""

    compare: SameHour

    @property
    def uid(self) -> str:
        """The field and the lag."""
        return f"earlier-hour:{self.compare.field}:{self.compare.lag_hours}"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.compare.field, InputKind.NUMBER),)

    def step(
        self, state: bytes | None, labels: Sequence[str], slice_end_ms: int, *columns: Values
    ) -> tuple[bytes, list[Verdict]]:
        """Return the state and the verdict on the hour, if there is an earlier one. O(n log n + lag sketches)."""
        (values,) = columns
        sketch = LogSketch.from_values(values, self.compare.relative_accuracy)
        return self.compare.step(state, labels, slice_end_ms, sketch.to_bytes())
