"""OTLP traces to requests: one row a span, with the request fields that its attributes give.

The way: messages -> span columns (otlp_proto or otlp_json) -> fields by the alias table (field_values) -> which span is
a request, and what the spans below it add (span_tree, here). docs/requests.md has the rules in words.
"""

from collections.abc import Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from schemas.dead_letters import DeadLetter
from schemas.requests import UNKNOWN_SERVICE, arrow_schema
from schemas.semconv import EVIDENCE_FIELDS, OPERATION_KEYS, PHASE_SPANS, REQUEST_OPERATIONS
from udfs.telemetry import otlp_json, otlp_proto
from udfs.telemetry.arrow_numpy import flags, valid
from udfs.telemetry.encodings import ENCODINGS, unknown_encoding
from udfs.telemetry.field_values import FieldReader
from udfs.telemetry.masking import TextMasking, text_columns
from udfs.telemetry.open_spans import open_spans
from udfs.telemetry.otlp_logs import decode_logs
from udfs.telemetry.otlp_metrics import decode_metrics
from udfs.telemetry.span_batch import Bools, Bytes, Ints, SpanBatch
from udfs.telemetry.span_checks import NS_PER_MS
from udfs.telemetry.span_tree import NONE, SpanTree, span_tree

# The whole of decoding under one name; the others live in modules of their own.
__all__ = ["ENCODINGS", "decode_for_join", "decode_logs", "decode_metrics", "decode_spans"]

KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUSES = ("UNSET", "OK", "ERROR")
SERVER, CLIENT, PRODUCER, CONSUMER, ERROR = 2, 3, 4, 5, 2
NS_PER_SECOND = 1e9

# What a span says of itself only: a child's never fills it.
OWN_FIELDS = frozenset({"service_name", "attempts", "end_to_end_seconds"})

SPAN_SCHEMA = pa.schema(
    [
        *arrow_schema(),
        pa.field("message_index", pa.int32(), nullable=False),
        pa.field("span_index", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("is_request", pa.bool_(), nullable=False),
    ]
)


# What waits for other spans of its trace (trace_join.py). Beside SPAN_SCHEMA, and `attempts` may be null.
WAITING_SCHEMA = pa.schema(
    [
        *(field.with_nullable(True) if field.name == "attempts" else field for field in SPAN_SCHEMA),
        pa.field("is_genai", pa.bool_(), nullable=False),
        pa.field("start_ns", pa.int64(), nullable=False),
        pa.field("end_ns", pa.int64(), nullable=False),
    ]
)


def decode_spans(
    messages: Sequence[bytes], encoding: str, *, lenient: bool = False, masking: TextMasking | None = None
) -> tuple[pa.Table, list[DeadLetter]]:
    """Return one row for each usable span of `messages`, and a dead letter for everything else.

    The table has the columns of SPAN_SCHEMA whatever the data: the request fields (schemas.requests), then
    `message_index` (place in `messages`), `span_index` (place in the message, in wire order), `name`, `kind`, `status`
    and `is_request`. Rows are in wire order. A request's null fields are filled by the spans below it in its message.
    No text attribute comes out but those a field asks for. With `masking`, free-form labels are masked, and prompts and
    responses of requests come, masked, if it carries text; else they are null.

    The schema's metadata has two JSON objects of counts: `slacktide.lenient` (what only `lenient` accepted:
    `id_base64`, `enum_name`) and `slacktide.nulled` (by field, values of a wrong type; `attributes`: numeric attributes
    beyond schemas.requests.MAX_ATTRIBUTES).

    Never raises on content; ValueError on an unknown encoding. Time and memory O(total bytes): as `otlp_proto` in
    batches of 100 messages 5 to 7 microseconds a span of 17 attributes, about twice ptars alone; several times that as
    `otlp_json` (tests/bench/bench_decode.py).

    >>> table, dead = decode_spans([b'{"resourceSpans": null}', b'{'], "otlp_json")
    >>> table.num_rows, [letter.reason.value for letter in dead]
    (0, ['malformed_json'])
    """
    batch, dead = _read(messages, encoding, lenient, masking)
    return _tables(batch, joins=False, masking=masking)[0], dead


def decode_for_join(
    messages: Sequence[bytes], encoding: str, *, lenient: bool = False, masking: TextMasking | None = None
) -> tuple[pa.Table, pa.Table, list[DeadLetter]]:
    """Return what `decode_spans` does of the spans that need no other message, and the spans that wait for one.

    The second table has the columns of WAITING_SCHEMA: each span with its own fields alone, nothing filled from below
    or counted; `attempts` is null where no attribute gives it. Costs and errors as `decode_spans`.
    """
    batch, dead = _read(messages, encoding, lenient, masking)
    return *_tables(batch, joins=True, masking=masking), dead


def _read(
    messages: Sequence[bytes], encoding: str, lenient: bool, masking: TextMasking | None
) -> tuple[SpanBatch, list[DeadLetter]]:
    texts = masking is not None and masking.carries_text
    if encoding == "otlp_proto":
        return otlp_proto.read_spans(messages, texts=texts)
    if encoding == "otlp_json":
        return otlp_json.read_spans(messages, lenient=lenient, texts=texts)
    raise unknown_encoding(encoding)


def _tables(batch: SpanBatch, *, joins: bool, masking: TextMasking | None = None) -> tuple[pa.Table, pa.Table]:
    """Return the spans that are settled and those that wait: without `joins`, all and none."""
    own = FieldReader(batch.attributes, len(batch))
    shared = FieldReader(batch.resource_attributes, batch.resource_count)
    fields = _inherited(own.fields(), shared.fields(), batch)
    tree = span_tree(batch, _is_genai(batch, fields, own.first_text(OPERATION_KEYS)))
    waits = open_spans(batch, tree, fields) if joins else np.zeros(len(batch), dtype=np.bool_)
    some_wait = bool(waits.any())
    if some_wait:
        tree = tree.without(waits)
    fields |= text_columns(batch.texts, len(batch))
    own_attempts = fields.get("attempts", pa.nulls(len(batch), pa.int64()))
    is_error = batch.status == ERROR
    _fill_from_children(fields, batch, tree, is_error)
    attributes = own.free_attributes()
    if masking is not None:
        masking.mask_fields(fields, tree.is_request | waits)
        attributes = masking.map_keys(attributes)
    seconds = (batch.end_ns - batch.start_ns) / NS_PER_SECOND
    children = np.bincount(tree.request[tree.children], minlength=len(batch))
    columns = {
        "trace_id": _hex(batch.trace_id),
        "span_id": _hex(batch.span_id),
        "parent_span_id": pc.if_else(pa.array(batch.has_parent), _hex(batch.parent_id), None),
        "event_time_ms": pa.array(batch.end_ns // NS_PER_MS),
        "start_time_ms": pa.array(batch.start_ns // NS_PER_MS),
        **fields,
        "service_name": _filled(fields.get("service_name"), pa.scalar(UNKNOWN_SERVICE), len(batch)),
        "end_to_end_seconds": _filled(fields.get("end_to_end_seconds"), pa.array(seconds), len(batch)),
        "attempts": _filled(fields.get("attempts"), pa.array(_attempts(tree)), len(batch)),
        "is_error": pa.array(is_error),
        "child_span_count": pa.array(children, pa.int64()),
        "message_index": pa.array(batch.message_index, pa.int32()),
        "span_index": pa.array(batch.span_index, pa.int32()),
        "name": batch.name,
        "kind": _named(KINDS, batch.kind),
        "status": _named(STATUSES, batch.status),
        "is_request": pa.array(tree.is_request),
        "attributes": attributes,
    }
    counts = {"slacktide.lenient": batch.lenient, "slacktide.nulled": own.nulled + shared.nulled}
    metadata = {name: orjson.dumps(count, option=orjson.OPT_SORT_KEYS) for name, count in counts.items()}
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(len(batch), field.type) for field in SPAN_SCHEMA
    ]
    table = pa.Table.from_arrays(arrays, schema=SPAN_SCHEMA.with_metadata(metadata))
    if not some_wait:
        return table, WAITING_SCHEMA.empty_table()
    waiting = table.set_column(table.column_names.index("attempts"), "attempts", own_attempts)
    for name, values in (("is_genai", tree.is_genai), ("start_ns", batch.start_ns), ("end_ns", batch.end_ns)):
        waiting = waiting.append_column(name, pa.array(values))
    return table.filter(pa.array(~waits)), waiting.filter(pa.array(waits)).cast(WAITING_SCHEMA)


def _inherited(own: dict[str, pa.Array], shared: dict[str, pa.Array], batch: SpanBatch) -> dict[str, pa.Array]:
    """Return the fields of spans, their own values before those of their resources."""
    columns = dict(own)
    resource = pa.array(batch.resource)
    for name, values in shared.items():
        inherited = values.take(resource)
        columns[name] = pc.coalesce(columns[name], inherited) if name in columns else inherited
    return columns


def _is_genai(batch: SpanBatch, fields: dict[str, pa.Array], operation: pa.Array | None) -> Bools:
    """Return which spans are an LLM call: they say so, or, saying nothing, show it as a client or server."""
    by_evidence = np.zeros(len(batch), dtype=np.bool_)
    for name in EVIDENCE_FIELDS & fields.keys():
        by_evidence |= valid(fields[name])
    by_evidence &= (batch.kind == SERVER) | (batch.kind == CLIENT)
    if operation is None:
        return by_evidence
    known = pc.is_in(pc.utf8_lower(operation), value_set=pa.array(sorted(REQUEST_OPERATIONS)))
    says_so = flags(known) & (batch.kind != PRODUCER) & (batch.kind != CONSUMER)
    genai: Bools = np.where(valid(operation), says_so, by_evidence)
    return genai


def _fill_from_children(fields: dict[str, pa.Array], batch: SpanBatch, tree: SpanTree, is_error: Bools) -> None:
    """Fill null fields of requests from the spans below them, then phase times from those spans' durations."""
    children = tree.children
    if len(children) == 0:
        return
    # The first to start wins, one without error before one with: so it is assigned last. Not the first on the wire:
    # whoever joins spans of several messages (trace_join.py) must come to the same.
    span_id = batch.span_id.copy().view(">u8").ravel()
    order = children[np.lexsort((span_id[children], batch.start_ns[children], is_error[children]))][::-1]
    for name in fields.keys() - OWN_FIELDS:
        givers = order[valid(fields[name])[order]]
        if name == "error_type":
            givers = givers[is_error[tree.request[givers]]]
        if len(givers):
            source = np.full(len(batch), NONE)
            source[tree.request[givers]] = givers
            fields[name] = pc.coalesce(fields[name], fields[name].take(pa.array(source, mask=source == NONE)))
    duration_ns = batch.end_ns - batch.start_ns
    for span_name, field in PHASE_SPANS.items():
        named = children[pc.equal(batch.name.take(pa.array(children)), span_name).to_numpy(zero_copy_only=False)]
        if len(named):
            requests = tree.request[named]
            total = np.bincount(requests, weights=duration_ns[named], minlength=len(batch)) / NS_PER_SECOND
            given = np.isin(np.arange(len(batch)), requests)
            fields[field] = _filled(fields.get(field), pa.array(total, mask=~given), len(batch))


def _attempts(tree: SpanTree) -> Ints:
    """Return how many GenAI spans lie directly beneath each request, at least 1: each is one try."""
    rows = tree.children
    tries = rows[(tree.nearest[rows] == tree.request[rows]) & tree.is_genai[rows]]
    counted = np.bincount(tree.request[tries], minlength=len(tree.request))
    attempts: Ints = np.maximum(counted, 1)
    return attempts


def _filled(values: pa.Array | None, default: pa.Array | pa.Scalar, length: int) -> pa.Array:
    if values is not None:
        return pc.coalesce(values, default)
    return pa.repeat(default, length) if isinstance(default, pa.Scalar) else default


def _named(names: tuple[str, ...], numbers: Ints) -> pa.Array:
    """Return each number's name; a number of no name, which a newer OTLP may have, has the first."""
    known = np.where((numbers >= 0) & (numbers < len(names)), numbers, 0)
    return pa.array(names).take(pa.array(known))


_HEX_PAIRS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)


def _hex(ids: Bytes) -> pa.StringArray:
    """Return uint8 (n, width) as lower-case hex texts."""
    rows, width = ids.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * (2 * width)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(_HEX_PAIRS[ids]))
