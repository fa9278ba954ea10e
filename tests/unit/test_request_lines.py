"""Request rows to JSON and back, for any value a field may have."""

import json
import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from schemas.field_types import FieldType
from schemas.requests import REQUEST_FIELDS, arrow_schema, json_schema
from udfs.telemetry.request_lines import request_json

REALS = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1e22, 1e-7, 5e-324, math.nan, math.inf, -math.inf]))
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(['"', "\\", "\n", "\x00", "é", "\u2028", "😀", '",{}']))
VALUES = {
    FieldType.STRING: TEXTS,
    FieldType.INT64: st.integers(-(2**63), 2**63 - 1),
    FieldType.FLOAT64: REALS,
    FieldType.BOOL: st.booleans(),
    FieldType.DOUBLE_ARRAY: st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3),
    FieldType.DOUBLE_MAP: st.dictionaries(TEXTS, REALS, max_size=3).map(lambda held: list(held.items())),
}
ROWS = st.fixed_dictionaries(
    {
        field.name: VALUES[field.type] if field.required else st.one_of(st.none(), VALUES[field.type])
        for field in REQUEST_FIELDS
    }
)
VALIDATOR = Draft202012Validator(json_schema())


def as_read(value: Any) -> Any:
    """What a JSON reader has for a field's value."""
    if isinstance(value, list):
        is_map = all(isinstance(item, tuple) for item in value)
        return {key: as_read(item) for key, item in value} if is_map else value
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_every_row_reads_back_as_it_was_and_is_valid(rows: list[dict[str, Any]]) -> None:
    texts = request_json(pa.Table.from_pylist(rows, schema=arrow_schema())).to_pylist()
    assert len(texts) == len(rows)
    for text, row in zip(texts, rows, strict=True):
        read = json.loads(text)
        assert read == {name: as_read(value) for name, value in row.items() if value is not None}
        assert list(read) == [field.name for field in REQUEST_FIELDS if row[field.name] is not None]
        assert not any(type(value) is bool and type(read[name]) is not bool for name, value in row.items())
        assert "\n" not in text
        VALIDATOR.validate(read)


def test_a_table_in_many_chunks_is_as_one() -> None:
    row = {field.name: {"STRING": "a", "INT64": 1, "BOOL": True}.get(field.type.name) for field in REQUEST_FIELDS}
    table = pa.Table.from_pylist([row], schema=arrow_schema())
    assert request_json(pa.concat_tables([table, table])).to_pylist() == request_json(table).to_pylist() * 2


def test_no_rows_give_no_lines() -> None:
    assert request_json(arrow_schema().empty_table()).to_pylist() == []
