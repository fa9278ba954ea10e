"""`otlp_proto` messages to span columns, without a Python step per span or attribute.

ptars turns a batch of messages into nested Arrow columns; the rest is slicing them. A message that ptars can't read
makes the whole batch raise, so it is searched for and dead-lettered alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import ArrayValue

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from schemas.semconv import LIST_KEYS, VECTOR_KEYS
from udfs.telemetry import span_checks
from udfs.telemetry.arrow_numpy import numbers, valid
from udfs.telemetry.embeddings import embeddings, vector_from_proto
from udfs.telemetry.otlp_descriptor import span_bytes_reader, span_reader, span_text_reader
from udfs.telemetry.span_batch import SPAN_ID_BYTES, TRACE_ID_BYTES, Attributes, Bools, Bytes, Ints, SpanBatch, is_zero
from udfs.telemetry.text_values_proto import text_values

UNREADABLE = "not a protobuf ExportTraceServiceRequest"
SEARCH_FAN_OUT = 16

# ptars recurses once for each open group (wire type 3) and overruns an 8 MiB stack beyond some 64,000 of them: a crash,
# not an error. OTLP has no groups, so a message with more bytes than this that could open one is first read by Google's
# parser, which gives up at depth 100.
MAX_GROUP_STARTS = 32_000


def read_spans(messages: Sequence[bytes], *, texts: bool = False) -> tuple[SpanBatch, list[DeadLetter]]:
    """Return the usable spans of `messages`, and a dead letter for each span or message that can't be used.

    With `texts`, the attributes and events that hold prompts and responses come as well. Never raises on content.
    O(total bytes); a batch with unreadable messages costs up to twice as much.
    """
    dead: list[DeadLetter] = []
    columns, message_numbers = _columns(messages, dead, span_text_reader() if texts else span_reader())
    resource_spans = columns.flatten()
    scope_spans = resource_spans.field("scope_spans")
    in_scopes = scope_spans.flatten().field("spans")
    spans = in_scopes.flatten()
    resource = np.repeat(np.repeat(np.arange(len(resource_spans)), _lengths(scope_spans)), _lengths(in_scopes))
    message_index = np.repeat(message_numbers, _lengths(columns))[resource]
    span_index = _place_in_group(message_index)
    faulty = _faulty(spans)
    if faulty.any():
        dead += _dead_spans(messages, spans.filter(pa.array(faulty)), message_index[faulty], span_index[faulty])
        spans = spans.filter(pa.array(~faulty))
        message_index, span_index, resource = message_index[~faulty], span_index[~faulty], resource[~faulty]
    end_ns = _uint64(spans, "end_time_unix_nano").astype(np.int64)
    start_ns = _uint64(spans, "start_time_unix_nano").astype(np.int64)
    batch = SpanBatch(
        message_index=message_index,
        span_index=span_index,
        trace_id=_fixed(spans.field("trace_id"), TRACE_ID_BYTES),
        span_id=_fixed(spans.field("span_id"), SPAN_ID_BYTES),
        parent_id=_parents(spans.field("parent_span_id")),
        name=spans.field("name"),
        kind=spans.field("kind").to_numpy().astype(np.int64),
        status=_status(spans.field("status")),
        start_ns=np.where(start_ns == 0, end_ns, start_ns),
        end_ns=end_ns,
        attributes=_attributes(spans.field("attributes")),
        resource=resource,
        resource_attributes=_attributes(_resource_attributes(resource_spans.field("resource"))),
        resource_count=len(resource_spans),
        lenient={},
        texts=text_values(spans) if texts else [],
    )
    return batch, dead


def span_payloads(message: bytes) -> list[bytes]:
    """Return the own bytes of each span of a message that `read_spans` could read, by span index."""
    columns = span_bytes_reader().list_to_record_batch([message]).column(0)
    payloads: list[bytes] = columns.flatten().field("scope_spans").flatten().field("spans").flatten().to_pylist()
    return payloads


def _columns(messages: Sequence[bytes], dead: list[DeadLetter], reader: Any) -> tuple[pa.ListArray, Ints]:
    """Read the messages; return their `resource_spans` and the number of each message that could be read."""
    read: list[pa.ListArray] = []
    numbers: list[int] = []

    def search(indices: Sequence[int]) -> None:
        try:
            batch = reader.list_to_record_batch([messages[index] for index in indices])
        except ValueError:
            if len(indices) == 1:
                reject(indices[0])
                return
            step = -(-len(indices) // SEARCH_FAN_OUT)
            for start in range(0, len(indices), step):
                search(indices[start : start + step])
        else:
            read.append(batch.column(0))
            numbers.extend(indices)

    def reject(index: int) -> None:
        dead.append(DeadLetter(Reason.MALFORMED_PROTO, UNREADABLE, index, WHOLE_MESSAGE, messages[index]))

    safe = []
    for index, message in enumerate(messages):
        if len(message) <= MAX_GROUP_STARTS or _nests_safely(message):
            safe.append(index)
        else:
            reject(index)
    search(safe)
    columns = read[0] if len(read) == 1 else _concatenated(read, reader)
    return columns, np.array(numbers, dtype=np.int64)


def _concatenated(read: list[pa.ListArray], reader: Any) -> pa.ListArray:
    if not read:
        return reader.list_to_record_batch([]).column(0)
    return pa.concat_arrays(read)


def _nests_safely(message: bytes) -> bool:
    wire_types = np.frombuffer(message, dtype=np.uint8) & 7
    if np.count_nonzero(wire_types == 3) <= MAX_GROUP_STARTS:
        return True
    try:
        ExportTraceServiceRequest.FromString(message)
    except DecodeError:
        return False
    return True


def _lengths(lists: pa.ListArray) -> Ints:
    lengths: Ints = np.diff(lists.offsets.to_numpy().astype(np.int64))
    return lengths


def _place_in_group(groups: Ints) -> Ints:
    """Return the place of each element within its run of equal values; `groups` is ascending."""
    firsts = np.flatnonzero(np.diff(groups, prepend=-1))
    places: Ints = np.arange(len(groups)) - np.repeat(firsts, np.diff(firsts, append=len(groups)))
    return places


def _uint64(spans: pa.StructArray, name: str) -> "npt.NDArray[np.uint64]":
    values: npt.NDArray[np.uint64] = spans.field(name).to_numpy()
    return values


def _faulty(spans: pa.StructArray) -> Bools:
    """Return which spans have a bad id or a bad time."""
    trace, span, parent = (spans.field(name) for name in ("trace_id", "span_id", "parent_span_id"))
    parent_length = _byte_lengths(parent)
    faulty: Bools = (_byte_lengths(trace) != TRACE_ID_BYTES) | (_byte_lengths(span) != SPAN_ID_BYTES)
    faulty |= (parent_length != 0) & (parent_length != SPAN_ID_BYTES)
    faulty |= span_checks.time_faults(_uint64(spans, "start_time_unix_nano"), _uint64(spans, "end_time_unix_nano"))
    sound = np.flatnonzero(~faulty)
    rows = spans if len(sound) == len(spans) else spans.take(pa.array(sound))
    zero = is_zero(_fixed(rows.field("trace_id"), TRACE_ID_BYTES))
    faulty[sound] = zero | is_zero(_fixed(rows.field("span_id"), SPAN_ID_BYTES))
    return faulty


def _byte_lengths(values: pa.BinaryArray) -> Ints:
    lengths: Ints = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _fixed(values: pa.BinaryArray, width: int) -> Bytes:
    """Return values that all are `width` bytes as uint8 (n, width), without a copy."""
    first = np.frombuffer(values.buffers()[1], dtype=np.int32)[values.offset] if len(values) else 0
    data = values.buffers()[2] or b""
    flat = np.frombuffer(data, dtype=np.uint8, count=len(values) * width, offset=first)
    return flat.reshape(len(values), width)


def _parents(values: pa.BinaryArray) -> Bytes:
    parents = np.zeros((len(values), SPAN_ID_BYTES), dtype=np.uint8)
    present = np.flatnonzero(_byte_lengths(values) == SPAN_ID_BYTES)
    rows = values if len(present) == len(values) else values.take(pa.array(present))
    parents[present] = _fixed(rows, SPAN_ID_BYTES)
    return parents


def _status(status: pa.StructArray) -> Ints:
    codes: Ints = np.where(valid(status), numbers(status.field("code")), 0).astype(np.int64)
    return codes


def _resource_attributes(resource: pa.StructArray) -> pa.ListArray:
    """Return one list of attributes a resource; an absent resource has an empty one."""
    return pc.struct_field(resource, "attributes") if resource.null_count else resource.field("attributes")


def _attributes(lists: pa.ListArray) -> Attributes:
    pairs = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    encoded = pairs.field("key").dictionary_encode()
    keys: list[str] = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy().astype(np.int64)
    value = pairs.field("value")
    is_list = valid(value.field("array_value"))
    lists_of = value.field("array_value")
    has_lists = bool(is_list.any())
    list_rows, vector_rows = (
        _rows_of(codes, [code for code, key in enumerate(keys) if key in wanted] if has_lists else [], is_list)
        for wanted in (LIST_KEYS, VECTOR_KEYS)
    )
    return Attributes(
        owner=np.repeat(np.arange(len(lists)), lengths),
        key_code=codes,
        keys=keys,
        text=value.field("string_value"),
        flag=value.field("bool_value"),
        integer=value.field("int_value"),
        real=value.field("double_value"),
        list_rows=list_rows,
        list_texts=_first_texts(lists_of.take(pa.array(list_rows))),
        vector_rows=vector_rows,
        vectors=embeddings([vector_from_proto(data) for data in lists_of.take(pa.array(vector_rows)).to_pylist()]),
        is_other=is_list | valid(value.field("kvlist_value")) | valid(value.field("bytes_value")),
    )


def _rows_of(codes: Ints, wanted: list[int], among: Bools) -> Ints:
    """Return the rows, ascending, of those `among` that have one of the wanted codes."""
    if not wanted:
        return np.zeros(0, dtype=np.int64)
    hits = np.zeros(len(codes), dtype=np.bool_)
    for code in wanted:
        hits |= codes == code
    return np.flatnonzero(hits & among)


def _first_texts(lists: pa.BinaryArray) -> pa.StringArray:
    """Return the first text of each serialised ArrayValue, null without one. Equal lists are read once."""
    encoded = lists.dictionary_encode()
    return pa.array([_first_text(data) for data in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)


def _first_text(array_value: bytes) -> str | None:
    try:
        values: Any = ArrayValue.FromString(array_value).values
    except DecodeError:
        return None
    return next((value.string_value for value in values if value.HasField("string_value")), None)


def _dead_spans(
    messages: Sequence[bytes], spans: pa.StructArray, message_index: Ints, span_index: Ints
) -> list[DeadLetter]:
    """Return the dead letters of `spans`, all of them faulty, each with its own bytes."""
    own_bytes = {int(index): span_payloads(messages[index]) for index in np.unique(message_index)}
    rows = zip(
        message_index.tolist(),
        span_index.tolist(),
        *(spans.field(name).to_pylist() for name in ("trace_id", "span_id", "parent_span_id")),
        *(_uint64(spans, name).tolist() for name in ("start_time_unix_nano", "end_time_unix_nano")),
        strict=True,
    )
    dead = []
    for message, place, trace_id, span_id, parent_id, start_ns, end_ns in rows:
        reason, detail = _fault(trace_id, span_id, parent_id, start_ns, end_ns)
        dead.append(DeadLetter(reason, detail, message, place, own_bytes[message][place]))
    return dead


def _fault(trace_id: bytes, span_id: bytes, parent_id: bytes, start_ns: int, end_ns: int) -> span_checks.Fault:
    if len(trace_id) != TRACE_ID_BYTES:
        return span_checks.TRACE_ID_LENGTH
    if not any(trace_id):
        return span_checks.TRACE_ID_ZERO
    if len(span_id) != SPAN_ID_BYTES:
        return span_checks.SPAN_ID_LENGTH
    if not any(span_id):
        return span_checks.SPAN_ID_ZERO
    if len(parent_id) not in (0, SPAN_ID_BYTES):
        return span_checks.PARENT_ID_LENGTH
    return span_checks.time_fault(start_ns, end_ns) or span_checks.END_MISSING
