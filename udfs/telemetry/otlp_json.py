"""`otlp_json` messages to span columns: orjson, then one walk that keeps only attributes a field can use.

Strict by the specification: ids are hex, enums are integers, unknown members are ignored, and whatever may be absent
may also be null. A lenient reader also takes base64 ids and enum names, and counts them.
Source: opentelemetry-proto, docs/specification.md, JSON Protobuf Encoding and Empty Telemetry Envelopes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from schemas.semconv import FIELD_ALIASES, LIST_KEYS, OPERATION_KEYS, VECTOR_KEYS
from udfs.telemetry import span_checks
from udfs.telemetry.any_value import integer, real
from udfs.telemetry.embeddings import Vector, embeddings, vector_from_json
from udfs.telemetry.otlp_json_shapes import (
    UTF8_BOM,
    UnusableError,
    id_from_base64,
    id_from_hex,
    json_bytes,
    list_of,
    nanoseconds,
    reject,
)
from udfs.telemetry.span_batch import SPAN_ID_BYTES, TRACE_ID_BYTES, Attributes, SpanBatch
from udfs.telemetry.span_texts import TextValue
from udfs.telemetry.text_values_json import text_values

KNOWN_KEYS = frozenset(alias.key for aliases in FIELD_ALIASES.values() for alias in aliases) | set(OPERATION_KEYS)

KIND_NAMES = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"))
}
STATUS_NAMES = {f"STATUS_CODE_{name}": number for number, name in enumerate(("UNSET", "OK", "ERROR"))}

_NO_PARENT = bytes(SPAN_ID_BYTES)


@dataclass(slots=True)
class _AttributeRows:
    """The rows of `Attributes` while they gather; only attributes that can fill a field are kept."""

    rows: list["_Row"] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # rows of each owner

    def add(self, pairs: list[Any]) -> None:
        """Append the attributes of the next owner. Raises UnusableError, having appended nothing, on a wrong shape."""
        rows = [row for pair in pairs if pair is not None and (row := _attribute(pair)) is not None]
        self.rows += rows
        self.lengths.append(len(rows))

    def columns(self) -> Attributes:
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * 7
        key, text, flag, whole, number, of_list, is_other = columns
        encoded = pa.array(key, pa.string()).dictionary_encode()
        lists = [(row, content) for row, content in enumerate(of_list) if content is not None]
        list_texts = [(row, content) for row, content in lists if type(content) is str]
        vectors = [(row, content) for row, content in lists if type(content) is not str]
        return Attributes(
            owner=np.repeat(np.arange(len(self.lengths)), self.lengths),
            key_code=encoded.indices.to_numpy().astype(np.int64),
            keys=encoded.dictionary.to_pylist(),
            text=pa.array(text, pa.string()),
            flag=pa.array(flag, pa.bool_()),
            integer=pa.array(whole, pa.int64()),
            real=pa.array(number, pa.float64()),
            list_rows=np.array([row for row, _ in list_texts], dtype=np.int64),
            list_texts=pa.array([first for _, first in list_texts], pa.string()),
            vector_rows=np.array([row for row, _ in vectors], dtype=np.int64),
            vectors=embeddings([vector for _, vector in vectors]),
            is_other=np.array(is_other, dtype=np.bool_),
        )


# The last but one is what a list is read for: its first text, or its numbers.
_Row = tuple[str, str | None, bool | None, int | None, float | None, str | Vector | None, bool]


def _attribute(pair: object) -> _Row | None:
    """Return the columns of one KeyValue, or None where it is empty or a text that no field asks for."""
    if type(pair) is not dict:
        reject("an attribute is no object")
    key, value = pair.get("key"), pair.get("value")
    if key is None:
        key = ""
    elif type(key) is not str:
        reject("an attribute's key is no text")
    if value is None:
        return None
    if type(value) is not dict:
        reject("an attribute's value is no object")
    if (content := value.get("doubleValue")) is not None:
        number = real(content)
        return key, None, None, None, number, None, number is None
    if (content := value.get("intValue")) is not None:
        whole = integer(content)
        return key, None, None, whole, None, None, whole is None
    return _not_numeric(key, value) if key in KNOWN_KEYS else None


def _not_numeric(key: str, value: dict[str, Any]) -> _Row | None:
    if (content := value.get("stringValue")) is not None:
        text = content if type(content) is str else None
        return key, text, None, None, None, None, text is None
    if (content := value.get("boolValue")) is not None:
        flag = content if type(content) is bool else None
        return key, None, flag, None, None, None, flag is None
    if (content := value.get("arrayValue")) is not None:
        if key in VECTOR_KEYS:
            return key, None, None, None, None, vector_from_json(content), True
        return key, None, None, None, None, _first_text(content) if key in LIST_KEYS else None, True
    is_other = value.get("kvlistValue") is not None or value.get("bytesValue") is not None
    return (key, None, None, None, None, None, True) if is_other else None


def _first_text(content: Any) -> str | None:
    values = content.get("values") if type(content) is dict else None
    for item in values if type(values) is list else ():
        if type(item) is dict and type(text := item.get("stringValue")) is str:
            return str(text)
    return None


class _Reader:
    """Walks messages and keeps the columns of what it could use."""

    def __init__(self, *, lenient: bool, texts: bool = False) -> None:
        self.lenient = lenient
        self.texts: list[TextValue] | None = [] if texts else None
        self.lenient_counts: Counter[str] = Counter()
        self.dead: list[DeadLetter] = []
        self.spans: list[tuple[int, int, bytes, bytes, bytes, str, int, int, int, int, int]] = []
        self.attributes, self.resource_attributes = _AttributeRows(), _AttributeRows()

    def read(self, message_index: int, message: bytes) -> None:
        """Take one message in; whatever is wrong with it ends as dead letters."""
        try:
            body = orjson.loads(message.removeprefix(UTF8_BOM)) if message else {}
        except orjson.JSONDecodeError:
            self._bury(Reason.MALFORMED_JSON, "not JSON", message_index, WHOLE_MESSAGE, message)
            return
        try:
            entries = list_of(body, "resourceSpans", "the message")
        except UnusableError as unusable:
            self._bury(unusable.reason, unusable.detail, message_index, WHOLE_MESSAGE, message)
            return
        for span_index, found in enumerate(self.spans_of(entries)):
            fault = found if isinstance(found, UnusableError) else self._take(message_index, span_index, *found)
            if fault is not None:
                payload = json_bytes(fault.part, message)
                self._bury(fault.reason, fault.detail, message_index, span_index, payload)

    def _bury(self, reason: Reason, detail: str, message_index: int, span_index: int, payload: bytes) -> None:
        self.dead.append(DeadLetter(reason, detail, message_index, span_index, payload))

    def spans_of(self, entries: list[Any]) -> Iterator[tuple[object, int] | UnusableError]:
        """Yield (span, resource number) in wire order, and in its place the fault of what can't hold spans."""
        for entry in entries:
            if entry is None:
                continue
            try:
                scopes = list_of(entry, "scopeSpans", "an entry of resourceSpans")
                resource = self._resource(entry.get("resource"))
            except UnusableError as unusable:
                unusable.part = entry
                yield unusable
                continue
            for scope in scopes:
                if scope is None:
                    continue
                try:
                    spans = list_of(scope, "spans", "an entry of scopeSpans")
                except UnusableError as unusable:
                    unusable.part = scope
                    yield unusable
                    continue
                yield from ((span, resource) for span in spans if span is not None)

    def _resource(self, resource: object) -> int:
        self.resource_attributes.add([] if resource is None else list_of(resource, "attributes", "a resource"))
        return len(self.resource_attributes.lengths) - 1

    def _take(self, message_index: int, span_index: int, span: object, resource: int) -> UnusableError | None:
        """Keep one span, or return why it can't be used."""
        try:
            self._keep(message_index, span_index, span, resource)
        except UnusableError as unusable:
            unusable.part = span
            return unusable
        return None

    def _keep(self, message_index: int, span_index: int, span: object, resource: int) -> None:
        pairs = list_of(span, "attributes", "a span")
        assert isinstance(span, dict)
        trace_id = self._id(span.get("traceId"), TRACE_ID_BYTES, span_checks.TRACE_ID_LENGTH, span_checks.TRACE_ID_ZERO)
        span_id = self._id(span.get("spanId"), SPAN_ID_BYTES, span_checks.SPAN_ID_LENGTH, span_checks.SPAN_ID_ZERO)
        parent_id = self._id(span.get("parentSpanId") or "", SPAN_ID_BYTES, span_checks.PARENT_ID_LENGTH, None)
        start_ns, end_ns = _times(span)
        kind = self._enum(span.get("kind"), KIND_NAMES)
        status = span.get("status")
        if status is not None and type(status) is not dict:
            reject("status is no object")
        code = self._enum(status.get("code"), STATUS_NAMES) if status else 0
        name = span.get("name")
        if name is not None and type(name) is not str:
            reject("name is no text")
        self.attributes.add(pairs)
        if self.texts is not None:
            self.texts += text_values(len(self.spans), pairs, span.get("events"))
        self.spans.append(
            (
                message_index,
                span_index,
                trace_id,
                span_id,
                parent_id,
                name or "",
                kind,
                code,
                start_ns,
                end_ns,
                resource,
            )
        )

    def _id(self, text: object, width: int, wrong: span_checks.Fault, zero: span_checks.Fault | None) -> bytes:
        """Return an id's bytes; without `zero`, an empty or all-zero id is allowed and gives zeros."""
        if text == "" and zero is None:
            return _NO_PARENT
        if type(text) is not str:
            raise UnusableError(*wrong)
        number = id_from_hex(text, width)
        if number is None:
            number = id_from_base64(text, width) if self.lenient else None
            if number is None:
                raise UnusableError(*wrong)
            self.lenient_counts["id_base64"] += 1
        if zero is not None and not any(number):
            raise UnusableError(*zero)
        return number

    def _enum(self, value: object, names: dict[str, int]) -> int:
        if value is None:
            return 0
        if type(value) is int:
            return value if 0 <= value < len(names) else 0
        if type(value) is not str:
            reject("an enum is no integer")
        if not self.lenient or value not in names:
            raise UnusableError(Reason.ENUM_NAME, "an enum is written by name; OTLP/JSON has integers")
        self.lenient_counts["enum_name"] += 1
        return names[value]

    def batch(self) -> SpanBatch:
        """Return the columns of everything taken in."""
        columns = list(zip(*self.spans, strict=True)) if self.spans else [()] * 11
        message_index, span_index, trace_id, span_id, parent_id, name, kind, status, start_ns, end_ns, resource = (
            columns
        )
        return SpanBatch(
            message_index=np.array(message_index, dtype=np.int64),
            span_index=np.array(span_index, dtype=np.int64),
            trace_id=np.frombuffer(b"".join(trace_id), dtype=np.uint8).reshape(-1, TRACE_ID_BYTES),
            span_id=np.frombuffer(b"".join(span_id), dtype=np.uint8).reshape(-1, SPAN_ID_BYTES),
            parent_id=np.frombuffer(b"".join(parent_id), dtype=np.uint8).reshape(-1, SPAN_ID_BYTES),
            name=pa.array(name, pa.string()),
            kind=np.array(kind, dtype=np.int64),
            status=np.array(status, dtype=np.int64),
            start_ns=np.array(start_ns, dtype=np.int64),
            end_ns=np.array(end_ns, dtype=np.int64),
            attributes=self.attributes.columns(),
            resource=np.array(resource, dtype=np.int64),
            resource_attributes=self.resource_attributes.columns(),
            resource_count=len(self.resource_attributes.lengths),
            lenient=dict(self.lenient_counts),
            texts=self.texts or [],
        )


def read_spans(
    messages: Sequence[bytes], *, lenient: bool = False, texts: bool = False
) -> tuple[SpanBatch, list[DeadLetter]]:
    """Return the usable spans of `messages`, and a dead letter for each span or message that can't be used.

    Never raises on content. What can't hold spans (an entry of resourceSpans that is no object...) counts as one span
    and is dead-lettered alone; the rest of its message is used. Empty messages hold no spans. With `texts`,
    what holds prompts and responses comes too. O(total bytes).
    """
    reader = _Reader(lenient=lenient, texts=texts)
    for index, message in enumerate(messages):
        reader.read(index, message)
    return reader.batch(), reader.dead


def span_payloads(message: bytes) -> list[bytes]:
    """Return the JSON of each span (or of what can't hold spans) of a message that is JSON, by span index."""
    body = orjson.loads(message.removeprefix(UTF8_BOM))
    found = _Reader(lenient=False).spans_of(list_of(body, "resourceSpans", "the message"))
    return [json_bytes(f.part if isinstance(f, UnusableError) else f[0], message) for f in found]


def _times(span: dict[str, Any]) -> tuple[int, int]:
    start_ns, end_ns = nanoseconds(span.get("startTimeUnixNano")), nanoseconds(span.get("endTimeUnixNano"))
    if fault := span_checks.time_fault(start_ns, end_ns):
        raise UnusableError(*fault)
    return start_ns or end_ns, end_ns
