"""Request rows to the JSON values of topic `requests`, by Arrow's string kernels: no Python step per row.

Measured against the ways at hand (tests/bench/bench_decode.py): building dictionaries for orjson costs several times
as much, nearly all of it in making the Python values.
"""

from collections.abc import Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from schemas.field_types import FieldType
from schemas.requests import REQUEST_FIELDS

_NEEDS_ESCAPING = r'["\\\x00-\x1f]'
_NON_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def request_json(table: pa.Table) -> pa.StringArray:
    """Return one JSON object a row, in the order of schemas.requests.REQUEST_FIELDS, nulls left out.

    `table` holds the request fields; other columns are ignored. Numbers are the shortest texts that read back as the
    same double or int64; NaN and the infinities are the texts "NaN", "Infinity", "-Infinity". An object never holds a
    raw line break. O(total length), about 1.5 microseconds a row of 20 fields.

    >>> from schemas.requests import arrow_schema
    >>> row = pa.Table.from_pylist([{"trace_id": "a" * 32, "input_tokens": 0, "perplexity": float("inf")}],
    ...     schema=pa.schema([field.with_nullable(True) for field in arrow_schema()]))
    >>> request_json(row)[0].as_py()
    '{"trace_id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","input_tokens":0,"perplexity":"Infinity"}'
    """
    parts: list[pa.Array | str] = ["{"]
    comma = ""  # the first column, trace_id, is in every row
    for field in REQUEST_FIELDS:
        values = _whole(table.column(field.name))
        if values.null_count == len(values):
            continue
        name, texts = f'{comma}"{field.name}":', ENCODERS[field.type](values)
        # A part that is null is left out, so a name may stand alone only where every row has the value.
        parts += [pc.binary_join_element_wise(name, texts, "")] if values.null_count else [name, texts]
        comma = ","
    if len(parts) == 1:
        return pa.array(["{}"] * table.num_rows, pa.string())
    return pc.binary_join_element_wise(*parts, "}", "", null_handling="skip")


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _strings(values: pa.StringArray) -> pa.StringArray:
    if pc.any(pc.match_substring_regex(values, _NEEDS_ESCAPING)).as_py():
        encoded = values.dictionary_encode()
        return _quoted(encoded.dictionary.to_pylist()).take(encoded.indices)
    return pc.binary_join_element_wise('"', values, '"', "")


def _quoted(texts: Sequence[str]) -> pa.StringArray:
    return pa.array([orjson.dumps(text).decode() for text in texts], pa.string())


def _integers(values: pa.Int64Array) -> pa.StringArray:
    return values.cast(pa.string())


def _doubles(values: pa.DoubleArray) -> pa.StringArray:
    texts = values.cast(pa.string())
    if pc.all(pc.is_finite(values)).as_py() is not False:
        return texts
    for plain, quoted in _NON_FINITE.items():
        texts = pc.if_else(pc.equal(texts, plain), quoted, texts)
    return texts


def _booleans(values: pa.BooleanArray) -> pa.StringArray:
    return pc.if_else(values, "true", "false")


def _maps(values: pa.MapArray) -> pa.StringArray:
    encoded = values.keys.dictionary_encode()
    keys = _quoted(encoded.dictionary.to_pylist()).take(encoded.indices)
    pairs = pc.binary_join_element_wise(keys, _doubles(values.items), ":")
    joined = pc.binary_join(pa.ListArray.from_arrays(values.offsets, pairs), ",")
    objects = pc.binary_join_element_wise("{", joined, "}", "")
    return pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.string()))


def _arrays(values: pa.ListArray) -> pa.StringArray:
    joined = pc.binary_join(pa.ListArray.from_arrays(values.offsets, _doubles(values.values)), ",")
    arrays = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(values.is_valid(), arrays, pa.scalar(None, pa.string()))


ENCODERS = {
    FieldType.STRING: _strings,
    FieldType.INT64: _integers,
    FieldType.FLOAT64: _doubles,
    FieldType.BOOL: _booleans,
    FieldType.DOUBLE_MAP: _maps,
    FieldType.DOUBLE_ARRAY: _arrays,
}
