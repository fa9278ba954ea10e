"""OTLP spans for tests, built with the official protobuf classes."""

import hashlib

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

MS = 1_000_000


def ids(number: int) -> tuple[bytes, bytes]:
    """Trace and span id of test request `number`."""
    return ids_of(str(number))


def ids_of(name: str) -> tuple[bytes, bytes]:
    """A trace id and a span id made of a name."""
    digest = hashlib.sha256(name.encode()).digest()
    return digest[:16], digest[16:24]


def request_span(number: int, end_ms: int, *, filler_bytes: int = 0, **numbers: float) -> Span:
    """A vLLM-like request span ending at `end_ms`; `numbers` are further numeric attributes (`__` for a dot)."""
    trace_id, span_id = ids(number)
    attributes: dict[str, str | int | float] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "test-model",
        "gen_ai.usage.input_tokens": 100 + number,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.latency.time_to_first_token": 0.25,
        **{name.replace("__", "."): value for name, value in numbers.items()},
    }
    if filler_bytes:
        attributes["filler"] = "x" * filler_bytes
    return Span(
        trace_id=trace_id, span_id=span_id, name="llm_request", kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=(end_ms - 1000) * MS, end_time_unix_nano=end_ms * MS,
        attributes=[KeyValue(key=name, value=_any_value(value)) for name, value in attributes.items()],
    )  # fmt: skip


def child_spans(number: int, end_ms: int, count: int) -> list[Span]:
    """Spans below test request `number`."""
    trace_id, parent = ids(number)
    return [
        Span(
            trace_id=trace_id,
            span_id=hashlib.sha256(f"{number}/{i}".encode()).digest()[:8],
            parent_span_id=parent,
            name="prefill",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=(end_ms - 900) * MS,
            end_time_unix_nano=(end_ms - 600) * MS,
        )
        for i in range(count)
    ]


def _any_value(value: str | int | float) -> AnyValue:
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(double_value=value)


def export(spans: list[Span], service: str = "chat") -> ExportTraceServiceRequest:
    """The request that carries `spans`."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.add(key="service.name", value=_any_value(service))
    resource_spans.scope_spans.add().spans.extend(spans)
    return request


def message(spans: list[Span], service: str = "chat") -> bytes:
    """`otlp_proto` bytes."""
    return export(spans, service).SerializeToString()


def json_message(spans: list[Span], service: str = "chat") -> bytes:
    """`otlp_json` bytes: ids in hex, 64-bit integers as texts, enums as integers."""
    body = MessageToDict(export(spans, service), use_integers_for_enums=True)
    for json_span, span in zip(body["resourceSpans"][0]["scopeSpans"][0]["spans"], spans, strict=True):
        json_span["traceId"], json_span["spanId"] = span.trace_id.hex(), span.span_id.hex()
        if span.parent_span_id:
            json_span["parentSpanId"] = span.parent_span_id.hex()
    return orjson.dumps(body)
