"""Many windows for one judge at once, as the drift job and a backtest have them: shared work is done together."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from schemas.verdicts import Verdict
from udfs.judging.window_judge import WindowJudge
from udfs.parts import split_parts


class Window(NamedTuple):
    """A window as a judge takes it: labels of the series, end (epoch milliseconds), and the slices' sketches."""

    labels: Sequence[str]
    end_ms: int
    sketches: Sequence[bytes]


def judge_windows(judge: WindowJudge, windows: Sequence[Window]) -> list[list[Verdict]]:
    """Return the verdicts of each window: the same as `judge.judge` gives, one after the other or together.

    A judge that merges many windows faster than one by one has `merged_windows` and `of_merged` (`ReferenceKs`), or
    a `judge_windows` of its own (`WithFindings`).
    """
    own = getattr(judge, "judge_windows", None)
    if own is not None:
        found: list[list[Verdict]] = own(windows)
        return found
    if not hasattr(judge, "merged_windows"):
        return [judge.judge(*window) for window in windows]
    merged = merged_windows(judge, [window.sketches for window in windows])
    return [judge.of_merged(w.labels, w.end_ms, m) for w, m in zip(windows, merged, strict=True)]  # type: ignore[attr-defined]  # has both


def merged_windows(judge: Any, windows: Sequence[Sequence[bytes]]) -> list[Any]:
    """Return `judge.merged` of each window, together where the judge can."""
    together = getattr(judge, "merged_windows", None)
    merged: list[Any] = together(windows) if together else [judge.merged(sketches) for sketches in windows]
    return merged


def verdicts_of_rows(
    monitors: Sequence[Sequence[WindowJudge]], rows: Iterable[tuple[int, int, str, Sequence[bytes]]]
) -> list[list[Verdict]]:
    """Return the verdicts of each row: (monitor's number, window end, series as JSON, joined sketches of each slice).

    All windows of one judge are judged together; each row has its verdicts in the order of its monitor's judges.
    Raises ValueError on sketches of another monitor.
    """
    found: list[list[Verdict]] = []
    by_monitor: dict[int, list[tuple[int, Window]]] = {}
    for number, (monitor, end_ms, series, joined) in enumerate(rows):
        found.append([])
        window = Window(orjson.loads(series), int(end_ms), joined)
        by_monitor.setdefault(int(monitor), []).append((number, window))
    for monitor, numbered in by_monitor.items():
        judges = monitors[monitor]
        slices = [[split_parts(data, len(judges)) for data in window.sketches] for _, window in numbered]
        for place, judge in enumerate(judges):
            windows = [
                window._replace(sketches=[parts[place] for parts in of_window])
                for (_, window), of_window in zip(numbered, slices, strict=True)
            ]
            for (number, _), verdicts in zip(numbered, judge_windows(judge, windows), strict=True):
                found[number] += verdicts
    return found
