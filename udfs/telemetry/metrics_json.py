"""`otlp_json` metrics to points: one walk. Strict as the specification; a lenient reader also takes enum names."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from udfs.telemetry.any_value import integer, real
from udfs.telemetry.attribute_texts import texts_from_json
from udfs.telemetry.metric_checks import VALUE_MISSING, point_fault, temporality_fault
from udfs.telemetry.metric_points import TEMPORALITIES, MetricHead, MetricPoint, MetricType, Side, named_point
from udfs.telemetry.otlp_json_shapes import (
    UTF8_BOM,
    UnusableError,
    items_of,
    json_bytes,
    list_of,
    nanoseconds,
    reject,
    scope_name,
    text_member,
)

TEMPORALITY_NAMES = {f"AGGREGATION_TEMPORALITY_{name.upper()}": number for number, name in enumerate(TEMPORALITIES)}
_TYPES = {
    "gauge": MetricType.GAUGE,
    "sum": MetricType.SUM,
    "histogram": MetricType.HISTOGRAM,
    "exponentialHistogram": MetricType.EXPONENTIAL_HISTOGRAM,
    "summary": MetricType.SUMMARY,
}
_NO_RECORDED_VALUE = 1  # opentelemetry-proto, metrics.proto, DataPointFlags

Found = tuple[int, MetricPoint] | DeadLetter


def read_points(message_index: int, message: bytes, *, lenient: bool, counts: Counter[str]) -> Iterator[Found]:
    """Yield (place, point) for each usable point of a message in wire order, and a dead letter for all else.

    Never raises on content. What only `lenient` accepts is added to `counts`. O(bytes).
    """
    try:
        body = orjson.loads(message.removeprefix(UTF8_BOM)) if message else {}
        place = 0
        for found in items_of(body, "resourceMetrics", "scopeMetrics", "metrics"):
            if isinstance(found, UnusableError):
                yield _letter(found, message_index, place, json_bytes(found.part, message))
                place += 1
                continue
            for point in _points(*found, lenient=lenient, counts=counts):
                if isinstance(point, UnusableError):
                    yield _letter(point, message_index, place, json_bytes(point.part, message))
                else:
                    yield place, point
                place += 1
    except orjson.JSONDecodeError:
        yield DeadLetter(Reason.MALFORMED_JSON, "not JSON", message_index, WHOLE_MESSAGE, message)
    except UnusableError as unusable:
        yield _letter(unusable, message_index, WHOLE_MESSAGE, message)


def _letter(fault: UnusableError, message_index: int, place: int, payload: bytes) -> DeadLetter:
    return DeadLetter(fault.reason, fault.detail, message_index, place, payload)


def _points(
    resource: dict[str, Any], scope: dict[str, Any], metric: Any, *, lenient: bool, counts: Counter[str]
) -> Iterator[MetricPoint | UnusableError]:
    """Yield each point of a metric, or in its place why it can't be used; a metric that can't be read is one fault."""
    try:
        member, data = _data(metric)
        if data is None:
            return
        points = list_of(data, "dataPoints", "a metric's data")
        of_resource = _attributes(resource.get("resource"), "a resource")
        names = text_member(metric, "name"), text_member(metric, "unit"), scope_name(scope)
    except UnusableError as unusable:
        unusable.part = metric
        yield unusable
        return
    for point in points:
        if point is None:
            continue
        try:
            head = _head(names, of_resource, _TYPES[member], data, lenient=lenient, counts=counts)
            yield _point(head, point)
        except UnusableError as unusable:
            unusable.part = {**metric, member: {**data, "dataPoints": [point]}}
            yield unusable


def _data(metric: Any) -> tuple[str, dict[str, Any] | None]:
    """Return the one member that holds points; none is a metric without points, or of a kind still unknown."""
    if type(metric) is not dict:
        reject("a metric is no object")
    members = [member for member in _TYPES if metric.get(member) is not None]
    if len(members) > 1:
        reject("a metric has data of two kinds")
    if not members:
        return "", None
    data = metric[members[0]]
    if type(data) is not dict:
        reject("a metric's data is no object")
    return members[0], data


def _head(
    names: tuple[str, str, str],
    resource: dict[str, str],
    type_: MetricType,
    data: dict[str, Any],
    *,
    lenient: bool,
    counts: Counter[str],
) -> MetricHead:
    temporality = data.get("aggregationTemporality") or 0
    if type(temporality) is str:
        if not lenient or temporality not in TEMPORALITY_NAMES:
            raise UnusableError(Reason.ENUM_NAME, "an enum is written by name; OTLP/JSON has integers")
        counts["enum_name"] += 1
        temporality = TEMPORALITY_NAMES[temporality]
    elif type(temporality) is not int:
        reject("an enum is no integer")
    is_monotonic = data.get("isMonotonic") or False
    if type(is_monotonic) is not bool:
        reject("isMonotonic is no truth value")
    if fault := temporality_fault(type_, temporality, is_monotonic=is_monotonic):
        raise UnusableError(*fault)
    name, unit, scope = names
    return MetricHead(resource, scope, name, unit, type_, temporality, is_monotonic)


def _point(head: MetricHead, point: Any) -> MetricPoint:
    attributes = _attributes(point, "a point")
    flags = integer(point.get("flags") or 0)
    if flags is None:
        reject("flags is no integer")
    figures = {
        "time_ns": nanoseconds(point.get("timeUnixNano")),
        "start_ns": nanoseconds(point.get("startTimeUnixNano")),
        "has_no_value": bool(flags & _NO_RECORDED_VALUE),
        **(_value(point) if head.type in (MetricType.GAUGE, MetricType.SUM) else _histogram(point, head.type)),
    }
    found = named_point(head, attributes, figures)
    if fault := point_fault(found):
        raise UnusableError(*fault)
    return found


def _value(point: dict[str, Any]) -> dict[str, Any]:
    if (content := point.get("asInt")) is not None:
        return {"value": integer(content)}
    return {"value": real(point.get("asDouble"))}


def _histogram(point: dict[str, Any], type_: MetricType) -> dict[str, Any]:
    found: dict[str, Any] = {"count": _whole(point, "count"), "sum": _number(point, "sum")}
    if type_ is MetricType.SUMMARY:
        return found
    found |= {"min": _number(point, "min"), "max": _number(point, "max")}
    if type_ is MetricType.HISTOGRAM:
        bounds = tuple(real(bound) for bound in list_of(point, "explicitBounds", "a point"))
        if None in bounds:
            raise UnusableError(*VALUE_MISSING)
        return found | {"bounds": bounds, "bucket_counts": _counts(point, "bucketCounts")}
    scale = integer(point.get("scale") or 0)
    if scale is None or not -(2**31) <= scale < 2**31:
        raise UnusableError(Reason.INVALID_HISTOGRAM, "scale is no 32-bit integer")
    sides = {side: _side(point.get(side)) for side in ("positive", "negative")}
    zeros = {"zero_count": _whole(point, "zeroCount"), "zero_threshold": _number(point, "zeroThreshold") or 0.0}
    return found | {"scale": scale} | zeros | sides


def _side(buckets: Any) -> Side:
    if buckets is None:
        return 0, ()
    counts = _counts(buckets, "bucketCounts")
    offset = integer(buckets.get("offset") or 0)
    if offset is None or not -(2**31) <= offset < 2**31:
        raise UnusableError(Reason.INVALID_HISTOGRAM, "offset is no 32-bit integer")
    return offset, counts


def _counts(holder: Any, member: str) -> tuple[int, ...]:
    counts = [integer(count) for count in list_of(holder, member, "a point's buckets")]
    whole = tuple(count for count in counts if count is not None)
    if len(whole) < len(counts):
        raise UnusableError(Reason.INVALID_HISTOGRAM, "a bucket's count is no whole number")
    return whole


def _whole(point: dict[str, Any], member: str) -> int:
    content = point.get(member)
    found = 0 if content is None else integer(content)
    if found is None:
        raise UnusableError(Reason.BAD_VALUE, f"{member} is no whole number of 64 bits")
    return found


def _number(point: dict[str, Any], member: str) -> float | None:
    content = point.get(member)
    found = real(content)
    if content is not None and found is None:
        raise UnusableError(Reason.BAD_VALUE, f"{member} is no number")
    return found


def _attributes(holder: Any, what: str) -> dict[str, str]:
    return {} if holder is None else texts_from_json(list_of(holder, "attributes", what))
