"""Sorts verdicts and alerts by series, and finds the series a person means."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from infra.errors import StackError
from infra.plots.judged_window import JudgedWindow, alert_start_ms, judged_window, series_of
from infra.plots.record_sources import sorted_in
from schemas.status import Status

FEW_NAMES = 10


@dataclass(slots=True)
class DriftSeries:
    """The windows of one series, by end, and the starts of its alerts (epoch milliseconds).

    Where a window was judged more than once with different results, or under another configuration, the last read
    counts, and `n_replaced` says how many were left out.
    """

    key: str
    name: str
    by_end: dict[int, JudgedWindow] = field(default_factory=dict)
    alert_starts: set[int] = field(default_factory=set)
    n_replaced: int = 0

    @property
    def windows(self) -> list[JudgedWindow]:
        """The windows in order of time."""
        return [window for _, window in sorted(self.by_end.items())]

    @property
    def n_ok(self) -> int:
        """How many windows have a figure."""
        return sum(window.status == Status.OK for window in self.by_end.values())

    @property
    def n_drifted(self) -> int:
        """How many windows drifted."""
        return sum(window.drifted is True for window in self.by_end.values())

    def add(self, window: JudgedWindow) -> None:
        """Put in one window."""
        before = self.by_end.get(window.end_ms)
        self.n_replaced += before is not None and before != window
        self.by_end[window.end_ms] = window


@dataclass(slots=True)
class SeriesBook:
    """All series there are, by key, and how many records were neither a verdict nor an alert."""

    series: dict[str, DriftSeries] = field(default_factory=dict)
    n_skipped: int = 0

    @classmethod
    def of(cls, records: Iterable[dict[str, Any] | None], wanted: str | None = None) -> "SeriesBook":
        """Sort `records`; None is one that could not be read. Given `wanted`, windows of other series are not kept."""
        book = cls()
        book.n_skipped = sorted_in(records, lambda record: book._add(record, wanted))
        return book

    def _add(self, record: dict[str, Any], wanted: str | None) -> None:
        key, name = series_of(record)
        started = alert_start_ms(record)
        window = judged_window(record) if started is None and is_meant(wanted, key, name) else None
        series = self.series.setdefault(key, DriftSeries(key, name))
        if started is not None:
            series.alert_starts.add(started)
        elif window is not None:
            series.add(window)

    def find(self, wanted: str) -> DriftSeries:
        """Return the one series that `wanted` names: by key, by name, or by the beginning of its name.

        Raises StackError with the names there are where it is none or several.
        """
        found = [one for one in self.series.values() if wanted in (one.key, one.name)]
        found = found or [one for one in self.series.values() if is_meant(wanted, one.key, one.name)]
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"{wanted} is the beginning of {len(found)} series: {_some(one.name for one in found)}"
            raise StackError(problem, "Give the whole name of one, or its series_key")
        if not self.series:
            raise StackError(
                "there are no verdicts", "Start the drift job with `slacktide submit drift`, or wait for it"
            )
        problem = f"there is no series {wanted}; there are {_some(one.name for one in self.series.values())}"
        raise StackError(problem, "`slacktide plot drift` lists them all")


def is_meant(wanted: str | None, key: str, name: str) -> bool:
    """Whether `wanted` may mean the series: None means any, otherwise its key, or its name up to a part's end.

    >>> is_meant("chat/input_tokens", "", "chat/input_tokens/model=m1"), is_meant("chat/in", "", "chat/input_tokens")
    (True, False)
    """
    return wanted is None or wanted in (key, name) or f"{name}/".startswith(f"{wanted.rstrip('/')}/")


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - FEW_NAMES} more" if len(listed) > FEW_NAMES else ""
    return ", ".join(listed[:FEW_NAMES]) + more


def gaps(windows: list[JudgedWindow]) -> Iterator[tuple[int, int, str]]:
    """Yield (from ms, to ms, why) of every stretch of time without a figure: a status, or `no verdict`.

    A stretch covers whole slides, each reaching back from its window's end.
    """
    stretch: tuple[int, int, str] | None = None
    for start, end, why in _without_figure(windows):
        if stretch is not None and (stretch[1], stretch[2]) == (start, why):
            stretch = (stretch[0], end, why)
            continue
        if stretch is not None:
            yield stretch
        stretch = (start, end, why)
    if stretch is not None:
        yield stretch


def _without_figure(windows: list[JudgedWindow]) -> Iterator[tuple[int, int, str]]:
    before: JudgedWindow | None = None
    for window in windows:
        if before is not None and window.end_ms - before.end_ms > window.slide_ms:
            yield before.end_ms, window.end_ms - window.slide_ms, "no verdict"
        if window.status != Status.OK:
            yield window.end_ms - window.slide_ms, window.end_ms, window.status
        before = window
