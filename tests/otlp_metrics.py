"""OTLP metrics for the tests, in both encodings from one description."""

from typing import Any

import orjson
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

NS = 1_000_000_000


def metrics_json(*metrics: dict[str, Any], service: str | None = "api", **resource: str) -> bytes:
    """Return one message holding `metrics`, each an OTLP/JSON Metric."""
    named = ({"service.name": service} if service else {}) | resource
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in named.items()]
    return orjson.dumps(
        {"resourceMetrics": [{"resource": {"attributes": attributes}, "scopeMetrics": [{"metrics": list(metrics)}]}]}
    )


def as_proto(message: bytes) -> bytes:
    """Return the otlp_proto form of an otlp_json message, as Google's own JSON reader understands it."""
    return json_format.Parse(message, ExportMetricsServiceRequest()).SerializeToString()


def attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def counter(name: str, *points: dict[str, Any], temporality: int = 2) -> dict[str, Any]:
    return {"name": name, "sum": {"aggregationTemporality": temporality, "isMonotonic": True, "dataPoints": points}}


def gauge(name: str, *points: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "gauge": {"dataPoints": points}}


def histogram(name: str, *points: dict[str, Any], temporality: int = 2) -> dict[str, Any]:
    return {"name": name, "histogram": {"aggregationTemporality": temporality, "dataPoints": points}}


def at(seconds: float, start: float | None = None, **figures: Any) -> dict[str, Any]:
    """Return a point at `seconds` since 1970, of a counter that started at `start`."""
    begun = {} if start is None else {"startTimeUnixNano": str(round(start * NS))}
    return {"timeUnixNano": str(round(seconds * NS))} | begun | figures
