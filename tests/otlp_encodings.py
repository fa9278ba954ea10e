"""An export request in each encoding we read."""

import base64

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def encode(request: ExportTraceServiceRequest, encoding: str) -> bytes:
    """Return `request` as `otlp_proto` or as `otlp_json`: the protobuf mapping with ids in hex."""
    if encoding == "otlp_proto":
        message: bytes = request.SerializeToString()
        return message
    body = MessageToDict(request, use_integers_for_enums=True)
    for resource_spans in body.get("resourceSpans", []):
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return orjson.dumps(body)
