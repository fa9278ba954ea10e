"""OTLP logs to records: one row a record, whatever the encoding. A body that is a text stays that text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import orjson
import pyarrow as pa

from schemas.dead_letters import DeadLetter
from udfs.telemetry import logs_json, logs_proto
from udfs.telemetry.encodings import unknown_encoding
from udfs.telemetry.log_records import LogRecord

LOG_SCHEMA = pa.schema(
    [
        pa.field("message_index", pa.int32(), nullable=False),
        pa.field("record_index", pa.int32(), nullable=False),
        pa.field("service_name", pa.string(), nullable=False),
        pa.field("labels", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("observed_ns", pa.int64(), nullable=False),
        pa.field("severity_number", pa.int32(), nullable=False),
        pa.field("severity_text", pa.string(), nullable=False),
        pa.field("body", pa.string()),
        pa.field("body_kind", pa.string(), nullable=False),
        pa.field("event_name", pa.string(), nullable=False),
        pa.field("trace_id", pa.string()),
        pa.field("span_id", pa.string()),
    ]
)


def decode_logs(
    messages: Sequence[bytes], encoding: str, *, lenient: bool = False
) -> tuple[pa.Table, list[DeadLetter]]:
    """Return one row for each usable log record of `messages`, and a dead letter for everything else.

    The table has the columns of LOG_SCHEMA whatever the data, rows in wire order; LogRecord says what they mean. A body
    that is a text is given as it came, even where it holds JSON; `body_fields` parses one on request. Bodies and
    attributes may hold personal data: nothing is masked here. The schema's metadata has the JSON object
    `slacktide.lenient`: what only `lenient` accepted (`id_base64`, `enum_name`).

    Never raises on content; ValueError on an unknown encoding. O(total bytes).

    >>> table, dead = decode_logs([b'{"resourceLogs": null}', b'{'], "otlp_json")
    >>> table.num_rows, [letter.reason.value for letter in dead]
    (0, ['malformed_json'])
    """
    counts: Counter[str] = Counter()
    rows, dead = [], []
    for index, message in enumerate(messages):
        for found in _read(index, message, encoding, lenient=lenient, counts=counts):
            if isinstance(found, DeadLetter):
                dead.append(found)
            else:
                place, record = found
                labels = list(record.labels.items())
                rows.append({"message_index": index, "record_index": place} | asdict(record) | {"labels": labels})
    metadata = {"slacktide.lenient": orjson.dumps(dict(counts), option=orjson.OPT_SORT_KEYS)}
    return pa.Table.from_pylist(rows, schema=LOG_SCHEMA.with_metadata(metadata)), dead


def _read(
    index: int, message: bytes, encoding: str, *, lenient: bool, counts: Counter[str]
) -> Iterator[tuple[int, LogRecord] | DeadLetter]:
    if encoding == "otlp_proto":
        return logs_proto.read_records(index, message)
    if encoding == "otlp_json":
        return logs_json.read_records(index, message, lenient=lenient, counts=counts)
    raise unknown_encoding(encoding)


def body_fields(body: str) -> dict[str, object] | None:
    """Return the members of a body that is the text of one JSON object, None of any other.

    One level only: a member that is itself the text of JSON stays a text, until it is asked for in its turn.

    >>> body_fields('{"msg": "{\\\\"path\\\\": 1}"}')
    {'msg': '{"path": 1}'}
    >>> body_fields('{"path": 1}'), body_fields("started"), body_fields("[1]")
    ({'path': 1}, None, None)
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
