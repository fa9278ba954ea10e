"""One OTLP metric point, the same from both encodings: what the wire says, then under its canonical name and unit."""

import math
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson

from schemas.ids import record_id
from schemas.measurements import DataQuality
from schemas.metric_names import MODEL_LABELS, canonical_metric
from schemas.requests import UNKNOWN_SERVICE
from schemas.semconv import FIELD_ALIASES

MAX_LABELS = 64  # as many as a request may carry attributes
_SUMS = ("sum", "min", "max")
_MODEL_KEYS = (*(alias.key for alias in FIELD_ALIASES["model"]), *MODEL_LABELS)

UNSPECIFIED, DELTA, CUMULATIVE = 0, 1, 2
TEMPORALITIES = ("unspecified", "delta", "cumulative")

_Pairs = tuple[tuple[str, str], ...]
Side = tuple[int, tuple[int, ...]]  # offset and counts of the buckets of one sign


class MetricType(StrEnum):
    """OTLP's kinds of metric."""

    GAUGE = "gauge"
    SUM = "sum"
    HISTOGRAM = "histogram"
    EXPONENTIAL_HISTOGRAM = "exponential_histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One point. Times are nanoseconds since 1970; a start of 0 means that the source gave none.

    Which of the figures are set follows from `type`: `value` for gauges and sums (an int stays an int), `count`, `sum`
    and buckets for histograms, `count` and `sum` for summaries, whose quantiles can't be merged and are not read. A
    `sum`, `min` or `max` that is not finite is none.
    `series_id` names metric, resource and attributes; `name` and `unit` are canonical, `source_name` is the wire's.
    """

    series_id: str
    source_name: str
    name: str
    type: MetricType
    service_name: str
    labels: dict[str, str]
    time_ns: int
    start_ns: int = 0
    temporality: int = UNSPECIFIED
    is_monotonic: bool = False
    has_no_value: bool = False
    unit: str | None = None
    model: str | None = None
    value: int | float | None = None
    count: int | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    bounds: tuple[float, ...] | None = None
    bucket_counts: tuple[int, ...] | None = None
    scale: int | None = None
    zero_count: int = 0
    zero_threshold: float = 0.0
    positive: Side = (0, ())
    negative: Side = (0, ())
    data_quality: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the point as JSON, what is not set left out. O(fields and buckets)."""
        found = {name: getattr(self, name) for name, default in _DEFAULTS.items() if getattr(self, name) != default}
        return orjson.dumps(found)

    @classmethod
    def from_json(cls, data: bytes | str) -> "MetricPoint":
        """Read it back."""
        found: dict[str, Any] = orjson.loads(data)
        for name in ("bounds", "bucket_counts", "data_quality"):
            if name in found:
                found[name] = tuple(found[name])
        for name in ("positive", "negative"):
            if name in found:
                found[name] = (found[name][0], tuple(found[name][1]))
        return cls(**found | {"type": MetricType(found["type"])})


_DEFAULTS = {f.name: f.default for f in fields(MetricPoint)}


@dataclass(frozen=True, slots=True)
class MetricHead:
    """What all points of one metric share."""

    resource: dict[str, str]
    scope: str
    name: str
    unit: str
    type: MetricType
    temporality: int
    is_monotonic: bool

    @property
    def identity(self) -> tuple[str, ...]:
        """What of it tells one counter from another, its resource apart."""
        kind = (self.type, str(self.temporality), str(self.is_monotonic))
        return self.scope, self.name, self.unit, *kind


def named_point(head: MetricHead, attributes: dict[str, str], figures: dict[str, Any]) -> MetricPoint:
    """Return the point of a metric with its identity, canonical name and unit; `figures` are the fields it sets.

    O(attributes and buckets).
    """
    naming = canonical_metric(head.name, head.unit, attributes)
    figures = figures | {name: None for name in _SUMS if not _is_finite(figures.get(name))}
    labels, quality = _labels(head.resource, attributes)
    point = MetricPoint(
        series_id=_series_id(head.identity, tuple(head.resource.items()), tuple(attributes.items())),
        source_name=head.name,
        name=naming.name,
        unit=naming.unit,
        type=head.type,
        temporality=head.temporality,
        is_monotonic=head.is_monotonic,
        service_name=head.resource.get("service.name") or UNKNOWN_SERVICE,
        model=_model(attributes, head.resource),
        labels=labels,
        data_quality=quality,
        **figures,
    )
    if naming.per_unit == 1.0:
        return point
    if head.type is MetricType.EXPONENTIAL_HISTOGRAM:
        kept = (*point.data_quality, DataQuality.UNIT_KEPT)
        return replace(point, name=head.name, unit=head.unit or None, data_quality=kept)
    return _in_unit(point, naming.per_unit)


def _in_unit(point: MetricPoint, per_unit: float) -> MetricPoint:
    def scaled(value: float | None) -> float | None:
        return None if value is None else value / per_unit

    # A sum that overflows is none: the histogram keeps its count.
    sums = {name: found if _is_finite(found := scaled(getattr(point, name))) else None for name in _SUMS}
    bounds = None if point.bounds is None else tuple(bound / per_unit for bound in point.bounds)
    return replace(point, value=scaled(point.value), bounds=bounds, sum=sums["sum"], min=sums["min"], max=sums["max"])


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _labels(resource: dict[str, str], attributes: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the labels, the point's own before its resource's, and what to say of them."""
    labels = {key: value for key, value in resource.items() if key != "service.name"} | attributes
    if len(labels) <= MAX_LABELS:
        return labels, ()
    kept = sorted(labels, key=lambda key: (key not in attributes, key))[:MAX_LABELS]
    return {key: labels[key] for key in kept}, (DataQuality.LABELS_CUT,)


def _model(*sources: dict[str, str]) -> str | None:
    return next((source[key] for source in sources for key in _MODEL_KEYS if source.get(key)), None)


# Metrics come again and again under the same names: the last so many series are known by heart, a few MB.
@lru_cache(maxsize=4096)
def _series_id(kind: tuple[str, ...], resource: _Pairs, attributes: _Pairs) -> str:
    """Name a stream as OpenTelemetry's data model identifies one: by everything that must be alike in one counter."""
    pairs = [part for source in (resource, attributes) for pair in sorted(source) for part in pair]
    return record_id(*kind, len(resource), *pairs)
