"""Monitors over history, without an engine: the verdicts that the drift job would have written.

The same slicing, sketches, judges and followers as in the job, put together in memory; a test holds the two against
each other. History is judged whole: nothing is late, and windows end as event time ends.

Memory: the values of all slices and the sketches of all windows of one monitor at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import orjson

from schemas.verdicts import Verdict
from udfs.judging.slice_machine import SliceMachine
from udfs.judging.window_batch import Window, judge_windows
from udfs.judging.window_judge import WindowJudge
from udfs.signals.follow import Follower, History
from udfs.slicing.packets import unpack
from udfs.slicing.sketched import sketches_of
from udfs.slicing.slicer import NO_TIME_MS, Batch, RequestSlicer, SlicePlan

RECORDS_A_BATCH = 5000
WINDOWS_A_BATCH = 100
_FOREVER_MS = 2**60


@dataclass(frozen=True)
class BacktestMonitor:
    """One monitor: how it cuts requests, how long its windows are, what judges and follows them."""

    plan: SlicePlan
    window_ms: int
    judges: tuple[WindowJudge, ...]
    followers: tuple[Follower, ...] = ()
    machines: tuple[SliceMachine, ...] = ()


@dataclass
class Backtest:
    """Takes requests in any order, then tells the verdicts of every window."""

    monitors: tuple[BacktestMonitor, ...]
    n_requests: int = 0
    n_unusable: int = 0
    _slices: dict[tuple[int, str, int], list[bytes]] = field(default_factory=lambda: defaultdict(list))

    def take(self, requests: Iterable[bytes | None]) -> None:
        """Add values of topic `requests`. What can't be used is counted in `n_unusable`. O(requests)."""
        slicer = RequestSlicer("backtest", tuple(m.plan for m in self.monitors), "requests", _FOREVER_MS)
        batch: list[bytes | None] = []
        for request in requests:
            batch.append(request)
            if len(batch) == RECORDS_A_BATCH:
                self._take(slicer, batch)
                batch = []
        if batch:
            self._take(slicer, batch)

    def _take(self, slicer: RequestSlicer, values: list[bytes | None]) -> None:
        seen = np.array([_event_time_ms(value) for value in values], dtype=np.int64)
        offsets = np.arange(self.n_requests, self.n_requests + len(values))
        taken = slicer.take(
            Batch(
                values=values,
                partitions=[0] * len(values),
                offsets=offsets,
                timestamps_ms=seen,
                seen_ms=seen,
                closed_ms=np.full(len(values), NO_TIME_MS, dtype=np.int64),
            )
        )
        self.n_requests += len(values)
        self.n_unusable += taken.n_dead
        for number, packets in enumerate(taken.packets):
            slide_ms = self.monitors[number].plan.slide_ms
            for packet in packets:
                end_ms = int(seen[packet.row] // slide_ms + 1) * slide_ms
                self._slices[number, packet.series, end_ms].append(packet.data)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts monitor by monitor, series by series, in the order of their windows' ends, signals too."""
        for number, monitor in enumerate(self.monitors):
            sketches = {
                (series, end_ms): sketches_of(packets, monitor.plan.inputs, monitor.judges)
                for (of, series, end_ms), packets in self._slices.items()
                if of == number
            }
            history = History(monitor.followers)
            for verdict in self._of_machines(number, monitor):
                yield verdict
                yield from history.take([verdict])
            windows = _windows(monitor, sketches)
            while together := list(islice(windows, WINDOWS_A_BATCH)):
                for verdict in _judged(monitor.judges, together):
                    yield verdict
                    yield from history.take([verdict])

    def _of_machines(self, number: int, monitor: BacktestMonitor) -> Iterator[Verdict]:
        states: dict[tuple[str, str], bytes] = {}
        for of, series, end_ms in sorted(self._slices):
            if of != number or not monitor.machines:
                continue
            unpacked = unpack(self._slices[of, series, end_ms], monitor.plan.inputs)
            columns = dict(zip(monitor.plan.inputs, unpacked, strict=True))
            for machine in monitor.machines:
                place = series, machine.uid
                given = (columns[wanted] for wanted in machine.inputs)
                labels = orjson.loads(series)
                states[place], verdicts = machine.step(states.get(place), labels, end_ms, *given)
                yield from verdicts


def _judged(judges: Sequence[WindowJudge], windows: list[tuple[str, int, list[list[bytes]]]]) -> Iterator[Verdict]:
    """The verdicts of some windows, window by window, as the job judges them: all windows of one judge together."""
    of_judges = [
        judge_windows(
            judge, [Window(orjson.loads(series), end, [s[place] for s in slices]) for series, end, slices in windows]
        )
        for place, judge in enumerate(judges)
    ]
    for of_window in zip(*of_judges, strict=True):
        for verdicts in of_window:
            yield from verdicts


def _event_time_ms(value: bytes | None) -> int:
    """The event time of a record, 0 where it has none that can be used."""
    try:
        found = orjson.loads(value or b"")["event_time_ms"]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return 0
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 < found < 2**53 else 0


def _windows(
    monitor: BacktestMonitor, sketches: dict[tuple[str, int], list[bytes]]
) -> Iterator[tuple[str, int, list[list[bytes]]]]:
    """Yield (series, window end, sketches of each slice in it) in order; only windows that hold a slice."""
    windows: dict[tuple[str, int], list[list[bytes]]] = defaultdict(list)
    for (series, slice_end_ms), of_slice in sketches.items():
        for end_ms in range(slice_end_ms, slice_end_ms + monitor.window_ms, monitor.plan.slide_ms):
            windows[series, end_ms].append(of_slice)
    for series, end_ms in sorted(windows):
        yield series, end_ms, windows[series, end_ms]
