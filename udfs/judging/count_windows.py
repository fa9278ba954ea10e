"""Windows by count: each so many samples of a series (spec D1, D6), cut alike by every replay.

Where a window ends must not depend on the order in which requests arrived, which a replay changes. So samples are cut
only within closed slices, in order of event time and, within a millisecond, of id. What a slice leaves over waits for
the next: at most `count` - 1 values.

A late request can't come: its slice has closed, and it goes to `dead_letters` before it gets here. All shards of a
slice must be given in one call, in any order; a second call with the same slice end is refused.

A null is no sample: it takes no place among the `count`, else a NaN would move every later window. It is counted in the
window that is open at its place.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from schemas.verdicts import Verdict
from udfs.judging.window_judge import WindowJudge
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"CNT", 1
_HEAD = struct.Struct("<qQqQ")
NUMBER = "window_number"
"""Where a verdict's evidence has the window's number, which is part of its id: two windows may end in one ms."""


@dataclass(frozen=True, eq=False)
class CountWindow:
    """One window: its number from 0 in this series, its values in order, and the event times of the first and last."""

    number: int
    first_time_ms: int
    last_time_ms: int
    last_id: str
    values: NDArray[np.float64]
    n_null: int

    @property
    def column(self) -> NDArray[np.float64]:
        """The values and, behind them, the nulls as NaN: what `WindowJudge.sketch` takes."""
        return np.concatenate([self.values, np.full(self.n_null, np.nan)])


@dataclass(frozen=True, eq=False)
class OpenWindow:
    """What is remembered between slices; of `first_time_ms` only where there are values."""

    last_slice_end_ms: int
    number: int
    first_time_ms: int
    n_null: int
    values: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """Return the state as bytes: 40 and 8 a value."""
        head = _HEAD.pack(self.last_slice_end_ms, self.number, self.first_time_ms, self.n_null)
        return seal(_TAG, _VERSION, head + self.values.astype("<f8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "OpenWindow":
        """Read a state back. Raises ValueError on bytes that are none."""
        body = unseal(data, _TAG)
        if len(body) < _HEAD.size or (len(body) - _HEAD.size) % 8:
            refuse(_TAG, "the lengths do not add up")
        last_slice_end_ms, number, first_time_ms, n_null = _HEAD.unpack_from(body)
        values = np.frombuffer(body, "<f8", offset=_HEAD.size).astype(np.float64)
        return cls(last_slice_end_ms, number, first_time_ms, n_null, values)


def cut(
    state: bytes | None,
    slice_end_ms: int,
    times_ms: Sequence[int] | NDArray[np.int64],
    ids: Sequence[str],
    values: ArrayLike | pd.Series,
    *,
    count: int,
) -> tuple[bytes, list[CountWindow]]:
    """Take one closed slice of a series; return the state after it and the windows that it filled, in order.

    `state` is None before the first slice. `times_ms` (epoch milliseconds, within the slice), `ids` and `values` (None
    or NaN for a null) are of the same requests. Ids break ties of time, so they must be unique. Raises ValueError on a
    slice that doesn't end after the last, and on bytes that are no state. O(n log n) time, O(n + count) memory.

    >>> state, windows = cut(None, 100, [5, 3, 9], ["a", "b", "c"], [50.0, 30.0, None], count=2)
    >>> [(window.number, window.values.tolist(), window.first_time_ms) for window in windows]
    [(0, [30.0, 50.0], 3)]
    >>> state, windows = cut(state, 200, [120, 110], ["d", "e"], [12.0, 11.0], count=2)
    >>> [(window.number, window.values.tolist(), window.n_null, window.last_id) for window in windows]
    [(1, [11.0, 12.0], 1, 'd')]
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    before = OpenWindow(-(2**63), 0, 0, 0, np.empty(0)) if state is None else OpenWindow.from_bytes(state)
    if slice_end_ms <= before.last_slice_end_ms:
        raise ValueError(
            f"slice {slice_end_ms} isn't after {before.last_slice_end_ms}: give all shards of one together"
        )
    times, names, column = _in_order(times_ms, ids, values)
    is_value = ~np.isnan(column)
    ends = _ends_of_windows(is_value, before.values.size, count)
    windows, start, open_now = [], 0, before
    for end in ends:
        open_now = _extended(open_now, times[start:end], column[start:end])
        windows.append(
            CountWindow(
                open_now.number,
                open_now.first_time_ms,
                int(times[end - 1]),
                names[end - 1],
                open_now.values,
                open_now.n_null,
            )
        )
        open_now, start = OpenWindow(slice_end_ms, open_now.number + 1, 0, 0, np.empty(0)), end
    after = _extended(open_now, times[start:], column[start:])
    return replace(after, last_slice_end_ms=slice_end_ms).to_bytes(), windows


def judge_count_window(judge: WindowJudge, labels: Sequence[str], window: CountWindow) -> list[Verdict]:
    """Return the verdicts of a judge of one numeric field on a window by count.

    The window is [first event time, last event time + 1 ms). Evidence holds its number, which is part of the verdict's
    id, and the id of its last request. The judge's frame has a slide of 0: such windows don't slide.
    """
    end_ms = window.last_time_ms + 1
    evidence: dict[str, Any] = {NUMBER: window.number, "last_id": window.last_id}
    verdicts = judge.judge(labels, end_ms, [judge.sketch(window.column)])
    return [
        replace(verdict, window_start_ms=window.first_time_ms, evidence=verdict.evidence | evidence)
        for verdict in verdicts
    ]


def _in_order(
    times_ms: Sequence[int] | NDArray[np.int64], ids: Sequence[str], values: ArrayLike | pd.Series
) -> tuple[NDArray[np.int64], list[str], NDArray[np.float64]]:
    times, column = np.asarray(times_ms, dtype=np.int64), pd.to_numeric(pd.Series(values), errors="raise")
    if not times.size == len(ids) == len(column):
        raise ValueError(f"{times.size} times, {len(ids)} ids and {len(column)} values can't be of the same requests")
    order = sorted(range(times.size), key=lambda place: (times[place], ids[place]))
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return times[order], [ids[place] for place in order], numbers[order]


def _ends_of_windows(is_value: NDArray[np.bool_], n_waiting: int, count: int) -> list[int]:
    """Return behind which request each window ends: the one with its last value."""
    seen = n_waiting + np.cumsum(is_value)
    n_windows = int(seen[-1]) // count if seen.size else 0
    return [int(np.searchsorted(seen, count * number)) + 1 for number in range(1, n_windows + 1)]


def _extended(window: OpenWindow, times: NDArray[np.int64], column: NDArray[np.float64]) -> OpenWindow:
    is_null = np.isnan(column)
    values = column[~is_null]
    first = window.first_time_ms if window.values.size or not values.size else int(times[~is_null][0])
    return replace(
        window,
        first_time_ms=first,
        n_null=window.n_null + int(is_null.sum()),
        values=np.concatenate([window.values, values]),
    )
