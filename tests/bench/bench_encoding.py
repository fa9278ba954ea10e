"""Requests as JSON against Avro: bytes a record, and what writing and reading cost in Python.

    python -m tests.bench.bench_encoding

What it decides is in docs/requests.md, with the figures of Flink's own readers, which need jars that the project does
not carry. CPU time, the best of several passes; both forms are checked to hold the same values.
"""

import io
import sys
from typing import Any

import fastavro
import orjson
import pyarrow as pa
import pyarrow.json

from schemas.field_types import FieldType
from schemas.requests import REQUEST_FIELDS, arrow_schema
from tests.bench.bench_decode import SPANS, exports, us_per_span
from tests.bench.report import Row, print_table
from tests.otlp_encodings import encode
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.request_lines import request_json

MESSAGES = 50
BATCH = 500  # records that a Kafka producer compresses together, about
SIX = ("trace_id", "event_time_ms", "service_name", "model", "input_tokens", "time_to_first_token_seconds")
AVRO_TYPES = {
    FieldType.STRING: "string",
    FieldType.INT64: "long",
    FieldType.FLOAT64: "double",
    FieldType.BOOL: "boolean",
    FieldType.DOUBLE_MAP: {"type": "map", "values": "double"},
    FieldType.DOUBLE_ARRAY: {"type": "array", "items": "double"},
}


def avro_schema() -> fastavro.types.Schema:
    """Return the Avro record of a request: a field that may be null is a union with null."""
    fields = [
        {"name": field.name, "type": AVRO_TYPES[field.type] if field.required else ["null", AVRO_TYPES[field.type]]}
        for field in REQUEST_FIELDS
    ]
    return fastavro.parse_schema({"type": "record", "name": "Request", "fields": fields})


def main() -> bool:
    """Print the table. Raises AssertionError where the two forms hold different values."""
    pa.set_cpu_count(1)
    names = [field.name for field in REQUEST_FIELDS]
    table = decode_spans([encode(request, "otlp_proto") for request in exports(MESSAGES)], "otlp_proto")[0].select(
        names
    )
    rows, schema = table.num_rows, avro_schema()
    as_json = [text.encode() for text in request_json(table).to_pylist()]
    as_avro = _to_avro(table, schema)
    read = [{k: v for k, v in _from_avro(record, schema).items() if v is not None} for record in as_avro]
    assert read == [orjson.loads(record) for record in as_json], "the two forms differ"
    only_six = arrow_schema(SIX)

    def arrow_reader() -> pa.Table:
        one_thread = pyarrow.json.ReadOptions(use_threads=False)
        options = pyarrow.json.ParseOptions(explicit_schema=only_six, unexpected_field_behavior="ignore")
        return pyarrow.json.read_json(io.BytesIO(b"\n".join(as_json)), one_thread, options)

    assert arrow_reader().num_rows == rows == MESSAGES * SPANS
    sizes, packed = (_size(as_json), _size(as_avro)), (_lz4(as_json), _lz4(as_avro))
    write = us_per_span(lambda: request_json(table), rows), us_per_span(lambda: _to_avro(table, schema), rows, 3)
    parse = (
        us_per_span(lambda: [orjson.loads(record) for record in as_json], rows, 3),
        us_per_span(lambda: [_from_avro(record, schema) for record in as_avro], rows, 3),
    )
    print_table(
        f"Encoding of requests: {rows} records of {len(names)} fields, {len(orjson.loads(as_json[0]))} of them filled",
        [
            Row("bytes a record", "bytes", *sizes, ratio=sizes[0] / sizes[1]),
            Row(f"  lz4, {BATCH} records at once", "bytes", *packed, ratio=packed[0] / packed[1]),
            Row("write (request_json, fastavro)", "us/record", *write, ratio=write[1] / write[0]),
            Row("read all (orjson, fastavro)", "us/record", *parse, ratio=parse[1] / parse[0]),
            Row("read six columns (pyarrow.json)", "us/record", us_per_span(arrow_reader, rows, 5)),
        ],
        notes=["`us` is JSON and `peer` Avro; ratio is JSON over Avro for sizes and Avro over JSON for times."],
    )
    return True


def _to_avro(table: pa.Table, schema: fastavro.types.Schema) -> list[bytes]:
    """Return one schemaless Avro record a row."""
    records = []
    for row in table.to_pylist():
        if row["attributes"] is not None:
            row["attributes"] = dict(row["attributes"])
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        records.append(out.getvalue())
    return records


def _from_avro(record: bytes, schema: fastavro.types.Schema) -> dict[str, Any]:
    values = fastavro.schemaless_reader(io.BytesIO(record), schema, schema)
    assert isinstance(values, dict)
    return values


def _size(records: list[bytes]) -> float:
    return sum(map(len, records)) / len(records)


def _lz4(records: list[bytes]) -> float:
    batches = [b"".join(records[start : start + BATCH]) for start in range(0, len(records), BATCH)]
    return sum(len(pa.compress(batch, codec="lz4", asbytes=True)) for batch in batches) / len(records)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
