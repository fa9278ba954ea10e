"""From the points of one series to measurements: what each counter added, whatever it reported. Pure.

The rules, for both temporalities and every kind of metric (docs/measurements.md has them in words):

- The first report of a cumulative counter says where it stands, not what it added, unless it started less than
  `young_seconds` before: then it counts from zero.
- A counter has begun anew where it holds less than before (any bucket of a histogram), or where its start time lies at
  or after its last report. What it holds then was added since. A start time equal to the point's own time means that
  the source doesn't know when it started (OpenTelemetry data model, "unknown start time"): it says nothing.
- Deltas are added as they come, in any order. A copy of a point counts once. A cumulative report older than the last is
  late: the increase it saw is in what followed.

Sources: Prometheus promql/functions.go (extrapolation aside, its rule of resets); OpenTelemetry metrics data model,
"Resets and gaps", "Cumulative streams: handling unknown start time".
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

import orjson

from schemas.books import MetricKind
from schemas.dead_letters import Reason
from schemas.measurements import DataQuality, Measurement, MeasurementKind
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.telemetry.measurement_histogram import Histogram, histogram_fields
from udfs.telemetry.metric_checks import histogram_of_point
from udfs.telemetry.metric_points import DELTA, MetricPoint, MetricType
from udfs.telemetry.metric_quality import mean_findings
from udfs.telemetry.seen_points import SeenPoints, Sight

NS_PER_MS = 1_000_000
NS_PER_SECOND = 1_000_000_000

Figure = int | float | Histogram


@dataclass(frozen=True, slots=True)
class SeriesPolicy:
    """`young_seconds`: spec row T3. The others bound what one series is remembered by: 20 bytes a point."""

    young_seconds: float = 600.0
    remember_seconds: float = 600.0
    remember_points: int = 64


@dataclass(frozen=True, slots=True)
class Report:
    """What a cumulative counter last held, and when. A start of 0 is unknown."""

    time_ns: int
    start_ns: int
    figure: Figure


@dataclass(frozen=True, slots=True)
class SeriesState:
    """What is remembered of one series; `last` is None for gauges and deltas."""

    seen: SeenPoints = field(default_factory=SeenPoints)
    last: Report | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a point: its kind in the books, then the measurement, or why it is a dead letter."""

    kind: MetricKind
    measurement: Measurement | None = None
    reason: Reason | None = None
    detail: str = ""


_EMPTY, _COPY, _BASELINE = (Outcome(kind) for kind in (MetricKind.EMPTY, MetricKind.DUPLICATE, MetricKind.BASELINE))
_LATE = Outcome(
    MetricKind.LATE,
    reason=Reason.LATE,
    detail="the point is older than what its series is remembered by, or than its counter's last report",
)
_CONFLICT = Outcome(
    MetricKind.DEAD,
    reason=Reason.CONFLICT,
    detail="another value came for the same time: two sources report under one identity",
)


def step(state: SeriesState, point: MetricPoint, policy: SeriesPolicy) -> tuple[SeriesState, Outcome]:
    """Return the state after `point` (one that has no `point_fault`) and what became of it. O(buckets + remembered).

    >>> from udfs.telemetry.metric_points import CUMULATIVE
    >>> state, added = SeriesState(), []
    >>> for minute, holds in enumerate([0, 1, 2, 3, 2, 3, 4]):
    ...     point = MetricPoint("s", "n", "n", MetricType.SUM, "api", {}, 60 * NS_PER_SECOND * (minute + 1),
    ...         temporality=CUMULATIVE, is_monotonic=True, value=holds)
    ...     state, outcome = step(state, point, SeriesPolicy())
    ...     added += [] if outcome.measurement is None else [outcome.measurement.value]
    >>> added
    [1, 1, 1, 2, 1, 1]
    """
    if point.has_no_value:
        return state, _EMPTY
    figure = _figure(point)
    checksum = zlib.crc32(orjson.dumps(_content(figure)))
    sight = state.seen.look(point.time_ns, point.start_ns, checksum)
    if sight is not Sight.NEW:
        return state, {Sight.COPY: _COPY, Sight.CONFLICT: _CONFLICT, Sight.LATE: _LATE}[sight]
    seen = state.seen.with_point(
        point.time_ns,
        point.start_ns,
        checksum,
        remember_ns=int(policy.remember_seconds * NS_PER_SECOND),
        most=policy.remember_points,
    )
    if not _is_cumulative(point):
        return SeriesState(seen, state.last), _as_it_came(point, figure)
    return _since_last(SeriesState(seen, state.last), point, figure, policy)


def _figure(point: MetricPoint) -> Figure:
    if point.value is not None:
        return point.value
    return histogram_of_point(point)


def _content(figure: Figure) -> object:
    return figure if isinstance(figure, int | float) else histogram_fields(figure)


def _is_cumulative(point: MetricPoint) -> bool:
    """Whether a point reports where a counter stands: a non-monotonic sum is a level, as a gauge."""
    if point.type is MetricType.GAUGE or point.temporality == DELTA:
        return False
    return point.type is not MetricType.SUM or point.is_monotonic


def _as_it_came(point: MetricPoint, figure: Figure) -> Outcome:
    if not isinstance(figure, int | float):
        return _measured(point, figure, point.start_ns or point.time_ns, min_max=True)
    if point.temporality == DELTA:
        return _measured(point, figure, point.start_ns or point.time_ns)
    return Outcome(MetricKind.MEASUREMENTS, _measurement(point, MeasurementKind.GAUGE, None, value=figure))


def _since_last(
    state: SeriesState, point: MetricPoint, figure: Figure, policy: SeriesPolicy
) -> tuple[SeriesState, Outcome]:
    """Return what a cumulative counter added since its last report."""
    last = state.last
    after = SeriesState(state.seen, Report(point.time_ns, point.start_ns, figure))
    knows_start = 0 < point.start_ns < point.time_ns
    if last is None:
        is_young = point.time_ns - point.start_ns < policy.young_seconds * NS_PER_SECOND
        if knows_start and is_young:
            return after, _measured(point, figure, point.start_ns, min_max=True)
        return after, _BASELINE
    if point.time_ns <= last.time_ns:
        return state, _LATE
    if knows_start and point.start_ns != last.start_ns and point.start_ns >= last.time_ns:
        return after, _measured(point, figure, point.start_ns, DataQuality.RESET, min_max=True)
    added = _difference(figure, last.figure)
    if added is None:
        return after, _measured(point, figure, last.time_ns, DataQuality.RESET)
    flags = (DataQuality.LAYOUT_CHANGED,) if _changed_layout(figure, last.figure) else ()
    return after, _measured(point, added, last.time_ns, *flags)


def _difference(now: Figure, before: Figure) -> Figure | None:
    """Return what was added; None where the counter holds less than before, or is no counter of that sort any more."""
    if isinstance(now, int | float) or isinstance(before, int | float):
        both = isinstance(now, int | float) and isinstance(before, int | float)
        return now - before if both and now >= before else None  # type: ignore[operator]  # both are numbers
    if type(now) is not type(before):
        return None
    return now.minus(before)  # type: ignore[arg-type]  # both are of one type


def _changed_layout(now: Figure, before: Figure) -> bool:
    return isinstance(now, ExplicitHistogram) and isinstance(before, ExplicitHistogram) and now.bounds != before.bounds


def _measured(point: MetricPoint, figure: Figure, start_ns: int, *flags: DataQuality, min_max: bool = False) -> Outcome:
    """Return the measurement of what was added from `start_ns` to the point's time.

    `min_max`: the point's smallest and largest observation are of that time.
    """
    if isinstance(figure, int | float):
        added = _measurement(point, MeasurementKind.COUNTER_DELTA, start_ns, *flags, value=figure)
        return Outcome(MetricKind.MEASUREMENTS, added)
    quality = (*flags, *mean_findings(point.name, figure.count, figure.sum))
    if isinstance(figure, ExplicitHistogram) and not figure.bounds:
        quality = (*quality, DataQuality.NO_BUCKETS)
    figures = histogram_fields(figure) | ({"min": point.min, "max": point.max} if min_max else {})
    added = _measurement(point, MeasurementKind.HISTOGRAM_DELTA, start_ns, *quality, **figures)
    return Outcome(MetricKind.MEASUREMENTS, added)


def _measurement(
    point: MetricPoint, kind: MeasurementKind, start_ns: int | None, *flags: DataQuality, **figures: Any
) -> Measurement:
    return Measurement(
        series_id=point.series_id,
        name=point.name,
        source_name=point.source_name,
        kind=kind,
        unit=point.unit,
        service_name=point.service_name,
        model=point.model,
        labels=point.labels,
        event_time_ms=point.time_ns // NS_PER_MS,
        start_time_ms=None if start_ns is None else start_ns // NS_PER_MS,
        data_quality=(*point.data_quality, *flags),
        **figures,
    )
