"""A drift series over time, and its reference against one of its windows."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from infra.plots.drift_series import DriftSeries, gaps
from infra.plots.judged_window import JudgedWindow
from schemas.times import rfc3339

STATISTIC, THRESHOLD, DRIFTED, ALERT = "statistic", "threshold", "drifted", "alert starts"
REFERENCE, WINDOW = "reference", "window"
CHANGED = "configuration changed"
_GAP_COLOURS = ("#bdbdbd", "#ffd166", "#a8dadc", "#e0b1cb", "#cdb4db")


def draw_drift(series: DriftSeries) -> Figure:
    """Return the figure of one series: statistic and threshold over time, and below them reference against window.

    The lower half is about the drifted window with the largest statistic, else the last window with a figure. Windows
    without a figure are gaps in the lines, shaded and named by their status. Times are UTC.
    """
    windows = series.windows
    figure = Figure(figsize=(11.0, 7.5), layout="constrained")
    over_time, compared = figure.subplots(2, 1, height_ratios=(3, 2))
    _draw_windows(over_time, windows)
    _draw_gaps(over_time, windows)
    _draw_events(over_time, windows, series.alert_starts)
    over_time.set_title(f"{series.name}\n{_summary(series)}", loc="left", fontsize="medium", parse_math=False)
    over_time.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _draw_comparison(compared, telling_window(windows))
    return figure


def telling_window(windows: Sequence[JudgedWindow]) -> JudgedWindow | None:
    """Return the drifted window with the largest statistic, else the last one with a figure, else None."""
    known = [window for window in windows if window.statistic is not None]
    drifted = [window for window in known if window.drifted]
    if drifted:
        return max(drifted, key=lambda window: abs(window.statistic or 0.0))
    return known[-1] if known else None


def _draw_windows(axes: Axes, windows: Sequence[JudgedWindow]) -> None:
    times, statistics, thresholds = _lines(windows)
    axes.plot(times, statistics, label=STATISTIC, color="#1f4e79", marker=".", markersize=3, linewidth=1.2)
    if any(window.threshold is not None for window in windows):
        axes.plot(times, thresholds, label=THRESHOLD, color="#555555", linestyle="--", linewidth=1.0)
    drifted = [window for window in windows if window.drifted]
    if drifted:
        ends, heights = [_utc(window.end_ms) for window in drifted], [_or_nan(window.statistic) for window in drifted]
        axes.plot(ends, heights, label=DRIFTED, color="#c0392b", linestyle="none", marker="o", markersize=5)
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]  # matplotlib has no types for dates
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]  # as above
    axes.set_xlabel("end of window, UTC")
    axes.set_ylabel(f"statistic ({', '.join(sorted({window.test for window in windows}))})", parse_math=False)
    axes.grid(alpha=0.3)


def _lines(windows: Sequence[JudgedWindow]) -> tuple[list[Any], list[float], list[float]]:
    """Times, statistics and thresholds; NaN, at which a line breaks, wherever there is no figure."""
    rows: list[tuple[Any, float, float]] = []
    before: JudgedWindow | None = None
    for window in windows:
        if before is not None and window.end_ms - before.end_ms > window.slide_ms:
            rows.append((_utc(before.end_ms + window.slide_ms), math.nan, math.nan))
        rows.append((_utc(window.end_ms), _or_nan(window.statistic), _or_nan(window.threshold)))
        before = window
    return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]


def _draw_gaps(axes: Axes, windows: list[JudgedWindow]) -> None:
    found = list(gaps(windows))
    for number, why in enumerate(sorted({why for _, _, why in found})):
        stretches = [(start, end) for start, end, reason in found if reason == why]
        for at, (start, end) in enumerate(stretches):
            colour = _GAP_COLOURS[number % len(_GAP_COLOURS)]
            axes.axvspan(_utc(start), _utc(end), color=colour, alpha=0.4, linewidth=0, label=None if at else why)


def _draw_events(axes: Axes, windows: Sequence[JudgedWindow], alert_starts: set[int]) -> None:
    for number, start_ms in enumerate(sorted(alert_starts)):
        axes.axvline(_utc(start_ms), color="#7d3c98", linestyle=":", linewidth=1.5, label=None if number else ALERT)
    changes = [
        after.start_ms if after.start_ms > before.end_ms else after.end_ms
        for before, after in pairwise(windows)
        if before.config_digest != after.config_digest
    ]
    for number, change_ms in enumerate(changes):
        axes.axvline(_utc(change_ms), color="#2a9d8f", linewidth=1.0, label=None if number else CHANGED)


def _draw_comparison(axes: Axes, window: JudgedWindow | None) -> None:
    if window is None:
        _say(axes, "no window has a figure")
        return
    title = f"window {rfc3339(window.start_ms)} to {rfc3339(window.end_ms)}, n = {window.n:,}"
    axes.set_title(title, loc="left", fontsize="medium")
    quantiles, gap = _quantiles(window.evidence), _gap(window.evidence)
    if quantiles is not None:
        shares, reference, values = quantiles
        axes.plot(reference, shares, label=REFERENCE, color="#555555", drawstyle="steps-post")
        axes.plot(
            values, shares, label=WINDOW, color="#c0392b" if window.drifted else "#1f4e79", drawstyle="steps-post"
        )
        axes.set_xlabel("value")
        axes.set_ylabel("share at or below")
        axes.legend(frameon=False)
    elif gap is not None:
        at, relation, *shares = gap
        colours = ["#555555", "#c0392b" if window.drifted else "#1f4e79"]
        bars = axes.barh([REFERENCE, WINDOW], shares, color=colours)
        axes.bar_label(bars, [f"{share:.1%}" for share in shares], padding=4)
        axes.set_xlim(0.0, 1.1)
        axes.invert_yaxis()
        axes.set_xlabel(f"share of values {relation} {at}, where both are furthest apart", parse_math=False)
    else:
        _say(axes, "the verdict does not say where window and reference differ")


def _quantiles(evidence: dict[str, Any]) -> tuple[list[float], list[float], list[float]] | None:
    """Shares, and the values of reference and window at them: `{"shares": [], "reference": [], "window": []}`."""
    found = evidence.get("quantiles")
    if not isinstance(found, dict):
        return None
    rows = [found.get(name) for name in ("shares", REFERENCE, WINDOW)]
    if not all(isinstance(row, list) and row and all(_is_number(value) for value in row) for row in rows):
        return None
    shares, reference, values = (np.asarray(row, dtype=float).tolist() for row in rows)
    return (shares, reference, values) if len(shares) == len(reference) == len(values) else None


def _gap(evidence: dict[str, Any]) -> tuple[str, str, float, float] | None:
    found = evidence.get("largest_gap")
    if not isinstance(found, dict):
        return None
    reference, window, at = found.get("reference_share"), found.get("window_share"), found.get("at")
    if not (_is_number(reference) and _is_number(window)):
        return None
    return (
        f"{at:g}" if _is_number(at) else "an infinite value",
        str(found.get("relation", "<=")),
        float(reference),
        float(window),
    )


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _say(axes: Axes, text: str) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def _summary(series: DriftSeries) -> str:
    words = [f"{len(series.by_end):,} windows", f"{series.n_ok:,} with a figure", f"{series.n_drifted:,} drifted"]
    if series.n_replaced:
        words.append(f"{series.n_replaced:,} earlier verdicts of the same windows left out")
    return ", ".join(words)


def _utc(epoch_ms: int) -> Any:
    """An instant on the axis of time; matplotlib takes datetimes, its types only numbers."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
