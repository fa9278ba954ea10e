"""The peer: requests read by walking opentelemetry-proto messages in Python, one attribute at a time.

Written as one would without columns, with the same alias table and the same rules, for valid messages. The benchmark
times it and the tests hold the vectorised decoder to its values.
"""

import hashlib
import math
import re
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from schemas.field_types import MAX_ATTRIBUTES, MAX_EMBEDDING_LENGTH, FieldType
from schemas.requests import REQUEST_FIELDS, UNKNOWN_SERVICE
from schemas.semconv import (
    EVIDENCE_FIELDS,
    FIELD_ALIASES,
    HASHED_FIELDS,
    LIST_KEYS,
    OPERATION_KEYS,
    PHASE_SPANS,
    REQUEST_OPERATIONS,
    Alias,
)
from udfs.telemetry.any_value import EXACT_FLOAT, integer, real

TYPES = {field.name: field.type for field in REQUEST_FIELDS}
NAMES = [field.name for field in REQUEST_FIELDS]
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES = ("UNSET", "OK", "ERROR")
OWN = {"service_name", "attempts", "end_to_end_seconds"}
BY_KEY: dict[str, list[tuple[str, int, Alias]]] = {}
for _field, _aliases in FIELD_ALIASES.items():
    for _rank, _alias in enumerate(_aliases):
        BY_KEY.setdefault(_alias.key, []).append((_field, _rank, _alias))

Row = dict[str, Any]


def walk(messages: list[bytes]) -> list[Row]:
    """Return the rows of `decode_spans(messages, "otlp_proto")` as dictionaries, maps as dictionaries."""
    rows: list[Row] = []
    for message_index, message in enumerate(messages):
        rows += _message_rows(message_index, ExportTraceServiceRequest.FromString(message))
    return rows


def _message_rows(message_index: int, message: Any) -> list[Row]:
    rows: list[Row] = []
    for resource_spans in message.resource_spans:
        shared, _, _ = _fields(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            first = len(rows)
            rows += [_row(span, shared, message_index, first + i) for i, span in enumerate(scope_spans.spans)]
    if len(rows) > 1:
        _join(rows)
    for row in rows:
        if row["end_to_end_seconds"] is None:
            row["end_to_end_seconds"] = (row.pop("_end_ns") - row.pop("_start_ns")) / 1e9
        else:
            del row["_end_ns"], row["_start_ns"]
        if row["attempts"] is None:
            row["attempts"] = max(1, row["_tries"])
        del row["_tries"]
    return rows


def _row(span: Any, shared: Row, message_index: int, span_index: int) -> Row:
    own, attributes, operation = _fields(span.attributes)
    start_ns = span.start_time_unix_nano or span.end_time_unix_nano
    row: Row = dict.fromkeys(NAMES)
    row |= shared
    row |= own
    row["service_name"] = UNKNOWN_SERVICE if row["service_name"] is None else row["service_name"]
    row["trace_id"] = span.trace_id.hex()
    row["span_id"] = span.span_id.hex()
    row["parent_span_id"] = span.parent_span_id.hex() if any(span.parent_span_id) else None
    row["event_time_ms"] = span.end_time_unix_nano // 1_000_000
    row["start_time_ms"] = start_ns // 1_000_000
    row["is_error"] = span.status.code == 2
    row["child_span_count"] = 0
    row["attributes"] = attributes or None
    row["message_index"], row["span_index"] = message_index, span_index
    row["name"] = span.name
    row["kind"] = KINDS[span.kind] if 0 <= span.kind < len(KINDS) else KINDS[0]
    row["status"] = STATUSES[span.status.code] if 0 <= span.status.code < len(STATUSES) else STATUSES[0]
    if operation is not None:
        row["is_request"] = operation.lower() in REQUEST_OPERATIONS and span.kind not in (4, 5)
    else:
        row["is_request"] = span.kind in (2, 3) and any(row[name] is not None for name in EVIDENCE_FIELDS)
    row["_start_ns"], row["_end_ns"], row["_tries"] = start_ns, span.end_time_unix_nano, 0
    return row


def _fields(pairs: Any) -> tuple[Row, dict[str, float], str | None]:
    """Return the fields, the free attributes and the operation that one owner's attributes give."""
    best: dict[str, tuple[int, Any]] = {}
    free: dict[str, float] = {}
    operations: dict[str, str] = {}
    for pair in pairs:
        key, value = pair.key, pair.value
        kind = value.WhichOneof("value")
        if kind is None:
            continue
        claims = BY_KEY.get(key)
        if claims is not None:
            for field, rank, alias in claims:
                held = best.get(field)
                if held is None or rank <= held[0]:
                    read = _value(value, kind, TYPES[field], alias)
                    if read is not None:
                        best[field] = rank, read
        elif key in OPERATION_KEYS:
            text = _text(value, kind, key)
            if text is not None:
                operations[key] = text
        elif kind in ("int_value", "double_value"):
            free[key] = float(value.int_value) if kind == "int_value" else value.double_value
    operation = next((operations[key] for key in OPERATION_KEYS if key in operations), None)
    fields = {field: value for field, (_, value) in best.items()}
    for field in HASHED_FIELDS & fields.keys():
        fields[field] = hashlib.sha256(fields[field].encode()).hexdigest()
    return fields, _first(pairs, free), operation


def _first(pairs: Any, free: dict[str, float]) -> dict[str, float]:
    """Return the first MAX_ATTRIBUTES, ordered by where each key stands last."""
    if len(free) <= MAX_ATTRIBUTES:
        return free
    last = {
        pair.key: i for i, pair in enumerate(pairs) if pair.value.WhichOneof("value") in ("int_value", "double_value")
    }
    return {key: free[key] for key in sorted(free, key=last.__getitem__)[:MAX_ATTRIBUTES]}


def _value(value: Any, kind: str, field_type: FieldType, alias: Alias) -> Any:
    if alias.in_json:
        found = re.search(rf'"{alias.in_json}"\s*:\s*(-?[0-9]+(\.[0-9]+)?)\s*[,}}]', value.string_value)
        return integer(found[1]) if found else None
    if field_type is FieldType.STRING:
        return _text(value, kind, alias.key)
    if field_type is FieldType.BOOL:
        return (
            value.bool_value if kind == "bool_value" else {"true": True, "false": False}.get(value.string_value.lower())
        )
    if field_type is FieldType.DOUBLE_ARRAY:
        return _vector(value, kind)
    if field_type is FieldType.INT64:
        return _integer(value, kind)
    number = _real(value, kind)
    return None if number is None else number / alias.per_unit


def _vector(value: Any, kind: str) -> list[float] | None:
    items = value.array_value.values if kind == "array_value" else ()
    numbers = [_real(item, item.WhichOneof("value")) for item in items if not item.HasField("string_value")]
    usable = len(numbers) == len(items) and 0 < len(numbers) <= MAX_EMBEDDING_LENGTH
    return numbers if usable and all(n is not None and math.isfinite(n) for n in numbers) else None


def _integer(value: Any, kind: str) -> int | None:
    if kind == "double_value":
        number = value.double_value
        return int(number) if abs(number) <= EXACT_FLOAT and number.is_integer() else None
    return value.int_value if kind == "int_value" else integer(value.string_value) if kind == "string_value" else None


def _real(value: Any, kind: str) -> float | None:
    if kind in ("int_value", "double_value"):
        return float(getattr(value, kind))
    return real(value.string_value) if kind == "string_value" else None


def _text(value: Any, kind: str, key: str) -> str | None:
    if kind == "string_value":
        return value.string_value or None
    if kind == "int_value":
        return str(value.int_value)
    if kind == "array_value" and key in LIST_KEYS:
        return (
            next((item.string_value for item in value.array_value.values if item.HasField("string_value")), None)
            or None
        )
    return None


def _join(rows: list[Row]) -> None:
    """Find requests, fold the spans below them in; all rows are of one message."""
    genai = [row["is_request"] for row in rows]
    at: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        at.setdefault((row["trace_id"], row["span_id"]), number)
    parents = [at.get((row["trace_id"], row["parent_span_id"])) for row in rows]
    below: dict[int, list[int]] = {}
    for number in range(len(rows)):
        above = _ancestors(parents, number)
        genai_above = [ancestor for ancestor in above if genai[ancestor]]
        if not genai_above:
            continue
        request = genai_above[-1]
        rows[number]["is_request"] = False
        below.setdefault(request, []).append(number)
        if genai[number] and genai_above[0] == request:
            rows[request]["_tries"] += 1
    for request, children in below.items():
        _fold(rows[request], [rows[child] for child in children])


def _ancestors(parents: list[int | None], number: int) -> list[int]:
    above: list[int] = []
    seen: set[int] = set()
    parent = parents[number]
    while parent is not None:
        if parent in seen:
            return []  # it leads into a circle
        seen.add(parent)
        above.append(parent)
        parent = parents[parent]
    return above


def _fold(request: Row, children: list[Row]) -> None:
    request["child_span_count"] = len(children)
    ordered = sorted(children, key=lambda row: (row["is_error"], row["_start_ns"], row["span_id"]))
    for name in FIELD_ALIASES:
        if request[name] is None and name not in OWN and (name != "error_type" or request["is_error"]):
            request[name] = next((child[name] for child in ordered if child[name] is not None), None)
    for span_name, field in PHASE_SPANS.items():
        spans = [child for child in children if child["name"] == span_name]
        if spans and request[field] is None:
            request[field] = sum(s["_end_ns"] - s["_start_ns"] for s in spans) / 1e9
