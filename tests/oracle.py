"""What the drift job must write, worked out the slow way: every record looked at, every window judged by scipy.

Independent of our sketches and of our KS test. It shares with the job the checked monitors, the ids of the records
(`schemas`), and the rules that docs/monitors.md states, which it applies to records in the order of their partitions.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from scipy.stats import ks_2samp

from jobs.monitors import Monitor, Monitors
from schemas.ids import record_id
from schemas.verdicts import series_key
from udfs.judging.reference_ks import ReferenceKs

MAX_SKEW_MS = 5 * 60 * 1000
_SCIPY_METHODS = {"asymptotic": "asymp", "exact": "exact", "auto": "auto"}
_TEXT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record of topic `requests`. Records of one partition are given in the order of their offsets."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ExpectedVerdict:
    """The part of a verdict that must agree: figures are None where `status` is not `ok`."""

    monitor: str
    feature: str
    series: dict[str, str]
    window_end_ms: int
    status: str
    statistic: float | None
    p_value: float | None
    drifted: bool | None
    n_window: int
    n_window_null: int
    n_infinite: int


@dataclass
class Expected:
    """All that the job must write: verdicts by id, reasons of dead letters by place, books by monitor."""

    verdicts: dict[str, ExpectedVerdict] = field(default_factory=dict)
    dead_letters: dict[Place, str] = field(default_factory=dict)
    late_for: dict[Place, list[str]] = field(default_factory=dict)
    books: dict[str, Counter[str]] = field(default_factory=dict)


def expected(records: Iterable[TopicRecord], monitors: Monitors, *, at_end: bool = False) -> Expected:
    """Return what the job has written once event time stands still; `at_end`: once a bounded run has ended.

    Until then only what the watermark has passed is out: the least over the partitions that have a usable request of
    their newest event time, less the bound. Every partition must have one, or be idle.
    """
    result = Expected()
    requests = list(_usable(records, result))
    newest: dict[int, int] = {}
    for request in requests:
        newest[request.partition] = request.newest_ms
    watermark_ms = math.inf if at_end else min(newest.values(), default=0) - monitors.watermark_bound_ms
    for monitor in monitors.monitors:
        _judge_all(monitor, requests, monitors.watermark_bound_ms, watermark_ms, result)
    return result


@dataclass(frozen=True, slots=True)
class _Request:
    partition: int
    offset: int
    event_time_ms: int
    newest_ms: int  # of its partition, up to and with this request
    body: dict[str, Any]


def _usable(records: Iterable[TopicRecord], result: Expected) -> Iterator[_Request]:
    newest: dict[int, int] = defaultdict(int)
    for record in records:
        place = (record.partition, record.offset)
        try:
            body = orjson.loads(record.value or b"")
        except orjson.JSONDecodeError:
            body = None
        event_time_ms = body.get("event_time_ms") if isinstance(body, dict) else None
        if not isinstance(body, dict):
            result.dead_letters[place] = "malformed_json" if record.value else "no_value"
        elif not isinstance(event_time_ms, int) or event_time_ms <= 0:
            result.dead_letters[place] = "bad_time"
        elif event_time_ms > record.timestamp_ms + MAX_SKEW_MS:
            result.dead_letters[place] = "clock_skew"
        else:
            newest[record.partition] = max(newest[record.partition], event_time_ms)
            yield _Request(*place, event_time_ms, newest[record.partition], body)


def _judge_all(
    monitor: Monitor, requests: list[_Request], bound_ms: int, watermark_ms: float, result: Expected
) -> None:
    """Add the verdicts, late requests and books of one monitor."""
    slide_ms = monitor.slide_ms
    dead = sum(1 for reason in result.dead_letters.values() if reason != "late")
    books = Counter(read=dead + len(requests), dead=dead)
    windows: dict[tuple[tuple[str, ...], int], list[dict[str, Any]]] = defaultdict(list)
    for request in requests:
        slice_end_ms = request.event_time_ms - request.event_time_ms % slide_ms + slide_ms
        if slice_end_ms - 1 <= request.newest_ms - bound_ms:
            place = (request.partition, request.offset)
            result.dead_letters[place] = "late"
            result.late_for.setdefault(place, []).append(monitor.name)
            books["late"] += 1
            continue
        books["sliced"] += slice_end_ms - 1 <= watermark_ms
        labels = tuple(request.body.get(label) or "" for label in monitor.group_by)
        for end_ms in range(slice_end_ms, slice_end_ms + monitor.window_ms, slide_ms):
            if end_ms - 1 <= watermark_ms:
                windows[labels, end_ms].append(request.body)
    result.books[monitor.name] = books
    for (labels, end_ms), bodies in windows.items():
        series = dict(zip(monitor.group_by, labels, strict=True))
        for verdict_id, verdict in _judge(monitor, series, end_ms, bodies):
            result.verdicts[verdict_id] = verdict


def _judge(
    monitor: Monitor, series: dict[str, str], window_end_ms: int, bodies: list[dict[str, Any]]
) -> Iterator[tuple[str, ExpectedVerdict]]:
    for test in monitor.judges:
        assert isinstance(test, ReferenceKs)
        values = np.array([_number(body, test.field) for body in bodies], dtype=np.float64)
        window = values[~np.isnan(values)]
        points = np.repeat(np.asarray(test.reference.points), test.reference.multiplicity)
        statistic = p_value = drifted = None
        if window.size >= test.min_samples:
            tested = ks_2samp(points, window, method=_SCIPY_METHODS[test.method])
            statistic, p_value = float(tested.statistic), float(tested.pvalue)
            drifted = p_value < test.alpha and statistic >= test.min_effect
        key = series_key(monitor.name, test.field, series)
        yield (
            record_id(key, window_end_ms, test.frame.config_digest, str(test.frame.reference_digest)),
            ExpectedVerdict(
                monitor=monitor.name,
                feature=test.field,
                series=series,
                window_end_ms=window_end_ms,
                status="insufficient_data" if statistic is None else "ok",
                statistic=statistic,
                p_value=p_value,
                drifted=drifted,
                n_window=int(window.size),
                n_window_null=int(values.size - window.size),
                n_infinite=int(np.isinf(window).sum()),
            ),
        )


def _number(body: dict[str, Any], feature: str) -> float:
    """The value as DOUBLE; NaN for null, for what is missing and for what is no number."""
    name, _, attribute = feature.partition(".")
    value = (body.get(name) or {}).get(attribute) if attribute else body.get(name)
    if isinstance(value, str):
        return _TEXT_NUMBERS.get(value, math.nan)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
