"""`otlp_json` logs to records: one walk. Strict as the specification; lenient takes base64 ids and enum names too."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from schemas.requests import UNKNOWN_SERVICE
from udfs.telemetry import span_checks
from udfs.telemetry.any_value import any_value
from udfs.telemetry.attribute_texts import label_text, texts_from_json
from udfs.telemetry.log_records import LogRecord, time_fault
from udfs.telemetry.otlp_json_shapes import (
    UTF8_BOM,
    UnusableError,
    id_from_base64,
    id_from_hex,
    items_of,
    json_bytes,
    list_of,
    nanoseconds,
    reject,
    scope_name,
    text_member,
)
from udfs.telemetry.span_batch import SPAN_ID_BYTES, TRACE_ID_BYTES

# opentelemetry-proto, logs.proto, SeverityNumber: four grades of each level, then UNSPECIFIED at 0.
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
SEVERITY_NAMES = {"SEVERITY_NUMBER_UNSPECIFIED": 0} | {
    f"SEVERITY_NUMBER_{level}{grade or ''}": 4 * place + max(grade, 1)
    for place, level in enumerate(_LEVELS)
    for grade in (0, 2, 3, 4)
}
_KINDS = {
    "stringValue": "string",
    "boolValue": "bool",
    "intValue": "int",
    "doubleValue": "double",
    "arrayValue": "array",
    "kvlistValue": "kvlist",
    "bytesValue": "bytes",
}


def read_records(
    message_index: int, message: bytes, *, lenient: bool, counts: Counter[str]
) -> Iterator[tuple[int, LogRecord] | DeadLetter]:
    """Yield (place, record) for each usable record of a message in wire order, and a dead letter for all else.

    Never raises on content. What only `lenient` accepts is added to `counts`. O(bytes).
    """
    try:
        body = orjson.loads(message.removeprefix(UTF8_BOM)) if message else {}
        for place, found in enumerate(items_of(body, "resourceLogs", "scopeLogs", "logRecords")):
            fault = found if isinstance(found, UnusableError) else None
            if not isinstance(found, UnusableError):
                try:
                    yield place, _record(*found, lenient=lenient, counts=counts)
                except UnusableError as unusable:
                    fault, fault.part = unusable, found[2]
            if fault is not None:
                yield DeadLetter(fault.reason, fault.detail, message_index, place, json_bytes(fault.part, message))
    except orjson.JSONDecodeError:
        yield DeadLetter(Reason.MALFORMED_JSON, "not JSON", message_index, WHOLE_MESSAGE, message)
    except UnusableError as unusable:
        yield DeadLetter(unusable.reason, unusable.detail, message_index, WHOLE_MESSAGE, message)


def _record(
    entry: dict[str, Any], scope: dict[str, Any], record: Any, *, lenient: bool, counts: Counter[str]
) -> LogRecord:
    resource = {} if (of := entry.get("resource")) is None else texts_from_json(list_of(of, "attributes", "a resource"))
    attributes = texts_from_json(list_of(record, "attributes", "a log record"))
    time_ns, observed_ns = nanoseconds(record.get("timeUnixNano")), nanoseconds(record.get("observedTimeUnixNano"))
    if fault := time_fault(time_ns, observed_ns):
        raise UnusableError(*fault)
    content = record.get("body")
    kind = _kind(content)
    return LogRecord(
        service_name=resource.get("service.name") or UNKNOWN_SERVICE,
        labels={key: value for key, value in resource.items() if key != "service.name"} | attributes,
        scope=scope_name(scope),
        time_ns=time_ns or observed_ns,
        observed_ns=observed_ns,
        severity_number=_severity(record.get("severityNumber"), lenient=lenient, counts=counts),
        severity_text=text_member(record, "severityText"),
        body=None if kind == "null" else label_text(any_value(content)),
        body_kind=kind,
        event_name=text_member(record, "eventName"),
        trace_id=_id(record.get("traceId"), TRACE_ID_BYTES, span_checks.TRACE_ID_LENGTH, lenient, counts),
        span_id=_id(record.get("spanId"), SPAN_ID_BYTES, span_checks.SPAN_ID_LENGTH, lenient, counts),
    )


def _kind(content: Any) -> str:
    if content is None:
        return "null"
    if type(content) is not dict:
        reject("body is no object")
    return next((kind for member, kind in _KINDS.items() if content.get(member) is not None), "null")


def _severity(value: Any, *, lenient: bool, counts: Counter[str]) -> int:
    if type(value) is str:
        if not lenient or value not in SEVERITY_NAMES:
            raise UnusableError(Reason.ENUM_NAME, "an enum is written by name; OTLP/JSON has integers")
        counts["enum_name"] += 1
        return SEVERITY_NAMES[value]
    if value is not None and type(value) is not int:
        reject("an enum is no integer")
    return value if value and 0 < value <= 24 else 0


def _id(text: Any, width: int, wrong: span_checks.Fault, lenient: bool, counts: Counter[str]) -> str | None:
    """Return an id in hex; absent, empty and all zero are none."""
    if text is None or text == "":
        return None
    number = id_from_hex(text, width) if type(text) is str else None
    if number is None and lenient and type(text) is str:
        number = id_from_base64(text, width)
        counts["id_base64"] += number is not None
    if number is None:
        raise UnusableError(*wrong)
    return number.hex() if any(number) else None
