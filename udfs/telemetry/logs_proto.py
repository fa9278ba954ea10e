"""`otlp_proto` logs to records."""

from collections.abc import Iterator
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from schemas.dead_letters import DeadLetter
from schemas.requests import UNKNOWN_SERVICE
from udfs.telemetry import span_checks
from udfs.telemetry.attribute_texts import label_text, texts_from_proto, value_from_proto
from udfs.telemetry.log_records import LogRecord, time_fault
from udfs.telemetry.proto_walk import parsed, walked
from udfs.telemetry.span_batch import SPAN_ID_BYTES, TRACE_ID_BYTES


def read_records(message_index: int, message: bytes) -> Iterator[tuple[int, LogRecord] | DeadLetter]:
    """Yield (place, record) for each usable record of a message in wire order, and a dead letter for all else.

    Never raises on content. O(bytes).
    """
    request = parsed(ExportLogsServiceRequest, message_index, message)
    if isinstance(request, DeadLetter):
        yield request
        return
    found = walked(request.resource_logs, "scope_logs", "log_records")
    for place, (resource, scope, record) in enumerate(found):
        if fault := _fault(record):
            yield DeadLetter(*fault, message_index, place, record.SerializeToString())
        else:
            yield place, _record(resource, scope, record)


def _fault(record: Any) -> span_checks.Fault | None:
    if len(record.trace_id) not in (0, TRACE_ID_BYTES):
        return span_checks.TRACE_ID_LENGTH
    if len(record.span_id) not in (0, SPAN_ID_BYTES):
        return span_checks.SPAN_ID_LENGTH
    return time_fault(record.time_unix_nano, record.observed_time_unix_nano)


def _record(resource: dict[str, str], scope: str, record: Any) -> LogRecord:
    kind = record.body.WhichOneof("value")
    severity = record.severity_number
    return LogRecord(
        service_name=resource.get("service.name") or UNKNOWN_SERVICE,
        labels={key: value for key, value in resource.items() if key != "service.name"}
        | texts_from_proto(record.attributes),
        scope=scope,
        time_ns=record.time_unix_nano or record.observed_time_unix_nano,
        observed_ns=record.observed_time_unix_nano,
        severity_number=severity if 0 < severity <= 24 else 0,
        severity_text=record.severity_text,
        body=None if kind is None else label_text(value_from_proto(record.body)),
        body_kind="null" if kind is None else kind.removesuffix("_value"),
        event_name=record.event_name,
        trace_id=record.trace_id.hex() if any(record.trace_id) else None,
        span_id=record.span_id.hex() if any(record.span_id) else None,
    )
