"""`otlp_proto` metrics to points. Google's parser: metrics are few beside spans, and it bounds how deep they nest."""

from collections.abc import Iterator
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import DataPointFlags, Metric

from schemas.dead_letters import DeadLetter
from udfs.telemetry.attribute_texts import texts_from_proto
from udfs.telemetry.metric_checks import point_fault, temporality_fault
from udfs.telemetry.metric_points import MetricHead, MetricPoint, MetricType, named_point
from udfs.telemetry.proto_walk import parsed, walked

Found = tuple[int, MetricPoint] | DeadLetter


def read_points(message_index: int, message: bytes) -> Iterator[Found]:
    """Yield (place, point) for each usable point of a message in wire order, and a dead letter for all else.

    Never raises on content. O(bytes).
    """
    request = parsed(ExportMetricsServiceRequest, message_index, message)
    if isinstance(request, DeadLetter):
        yield request
        return
    place = 0
    for resource, scope, metric in walked(request.resource_metrics, "scope_metrics", "metrics"):
        member = metric.WhichOneof("data")
        if member is None:
            continue
        data = getattr(metric, member)
        head = _head(resource, scope, metric, MetricType(member), data)
        fault = temporality_fault(head.type, head.temporality, is_monotonic=head.is_monotonic)
        for wire in data.data_points:
            point = named_point(head, texts_from_proto(wire.attributes), _figures(head.type, wire))
            if found := fault or point_fault(point):
                yield DeadLetter(*found, message_index, place, _alone(metric, member, wire))
            else:
                yield place, point
            place += 1


def _head(resource: dict[str, str], scope: str, metric: Any, type_: MetricType, data: Any) -> MetricHead:
    temporality = getattr(data, "aggregation_temporality", 0)
    return MetricHead(
        resource, scope, metric.name, metric.unit, type_, temporality, getattr(data, "is_monotonic", False)
    )


def _figures(type_: MetricType, point: Any) -> dict[str, Any]:
    common = {
        "time_ns": point.time_unix_nano,
        "start_ns": point.start_time_unix_nano,
        "has_no_value": bool(point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK),
    }
    if type_ in (MetricType.GAUGE, MetricType.SUM):
        kind = point.WhichOneof("value")
        return common | {"value": None if kind is None else getattr(point, kind)}
    found = common | {"count": point.count}
    if type_ is MetricType.SUMMARY:
        return found | {"sum": point.sum}
    found |= {name: getattr(point, name) if point.HasField(name) else None for name in ("sum", "min", "max")}
    if type_ is MetricType.HISTOGRAM:
        return found | {"bounds": tuple(point.explicit_bounds), "bucket_counts": tuple(point.bucket_counts)}
    return found | {
        "scale": point.scale,
        "zero_count": point.zero_count,
        "zero_threshold": point.zero_threshold,
        "positive": (point.positive.offset, tuple(point.positive.bucket_counts)),
        "negative": (point.negative.offset, tuple(point.negative.bucket_counts)),
    }


def _alone(metric: Any, member: str, point: Any) -> bytes:
    """Return the metric with this one point: what a person needs to see what was refused."""
    alone = Metric()
    alone.CopyFrom(metric)
    points = getattr(alone, member).data_points
    del points[:]
    points.add().CopyFrom(point)
    data: bytes = alone.SerializeToString()
    return data
