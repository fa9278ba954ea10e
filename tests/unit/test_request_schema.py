"""The one list of a request's fields and everything derived from it, and the alias table over it."""

from pathlib import Path

import orjson
import pytest
from jsonschema import Draft202012Validator

import schemas.requests
from schemas.field_types import FieldType
from schemas.requests import (
    REQUEST_FIELDS,
    arrow_schema,
    flink_columns,
    json_schema,
    numeric_field_names,
    request_fields,
    spark_ddl,
)
from schemas.semconv import (
    EVIDENCE_FIELDS,
    FIELD_ALIASES,
    HASHED_FIELDS,
    LIST_KEYS,
    OPERATION_KEYS,
    PHASE_SPANS,
    REQUEST_OPERATIONS,
    VECTOR_KEYS,
)
from schemas.text_attributes import TEXT_CUT, TEXT_FIELDS, TEXT_KEYS

NAMES = [field.name for field in REQUEST_FIELDS]


def test_the_committed_json_schema_is_the_derived_one() -> None:
    committed = Path(schemas.requests.__file__).with_name("requests.schema.json")
    assert orjson.loads(committed.read_bytes()) == json_schema()
    Draft202012Validator.check_schema(json_schema())


def test_every_derived_schema_has_every_field_in_order() -> None:
    assert arrow_schema().names == NAMES
    assert [line.split("`")[1] for line in flink_columns().splitlines()] == NAMES
    assert [column.split()[0] for column in spark_ddl().replace("MAP<STRING, ", "MAP<STRING,").split(", ")] == NAMES
    assert list(json_schema()["properties"]) == NAMES


def test_names_are_distinct_and_say_their_unit() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for name in NAMES:
        assert not name.endswith(("_ns", "_s", "_millis"))
        assert "seconds" not in name or name.endswith("_seconds")


def test_a_name_that_is_no_field_is_refused_with_the_fields() -> None:
    with pytest.raises(ValueError, match="no field of a request: speed; the fields are trace_id"):
        request_fields(["model", "speed"])


def test_numeric_fields_are_those_that_hold_one_number() -> None:
    kinds = {field.type for field in request_fields(numeric_field_names())}
    assert kinds == {FieldType.INT64, FieldType.FLOAT64}


def test_aliases_fill_fields_that_exist_and_each_key_fills_a_field_once() -> None:
    assert set(FIELD_ALIASES) <= set(NAMES)
    for field, aliases in FIELD_ALIASES.items():
        keys = [alias.key for alias in aliases]
        assert len(set(keys)) == len(keys), field
    kinds = {field.name: field.type for field in REQUEST_FIELDS}
    assert all(
        kinds[f] is FieldType.FLOAT64 for f, aliases in FIELD_ALIASES.items() for a in aliases if a.per_unit != 1
    )


def test_a_key_fills_two_fields_only_as_members_of_one_json_text() -> None:
    owners: dict[str, list[str]] = {}
    for aliases in FIELD_ALIASES.values():
        for alias in aliases:
            owners.setdefault(alias.key, []).append(alias.in_json)
    assert {key for key, members in owners.items() if len(members) > 1 and "" in members} == set()


def test_every_field_but_those_of_the_span_itself_has_our_own_spelling_first() -> None:
    own = {"trace_id", "span_id", "parent_span_id", "event_time_ms", "start_time_ms", "is_error", "child_span_count"}
    assert [TEXT_KEYS[name][0] for name in TEXT_FIELDS] == ["slacktide.prompt", "slacktide.response"]
    for name in set(NAMES) - own - {"service_name", "attributes", *TEXT_FIELDS, TEXT_CUT}:
        expected = "slacktide.user_id" if name == "user_hash" else f"slacktide.{name}"
        assert FIELD_ALIASES[name][0].key == expected


def test_the_words_of_the_table_are_used_consistently() -> None:
    keys = {alias.key for aliases in FIELD_ALIASES.values() for alias in aliases}
    kinds = {field.name: field.type for field in REQUEST_FIELDS}
    assert keys >= LIST_KEYS
    vectors = {f.name for f in REQUEST_FIELDS if f.type is FieldType.DOUBLE_ARRAY}
    assert {alias.key for field in vectors for alias in FIELD_ALIASES[field]} == VECTOR_KEYS
    assert {kind for f, kind in kinds.items() if f in HASHED_FIELDS} == {FieldType.STRING}
    assert not keys & set(OPERATION_KEYS)
    assert set(FIELD_ALIASES) >= EVIDENCE_FIELDS
    assert set(PHASE_SPANS.values()) <= set(NAMES)
    assert all(operation == operation.lower() for operation in REQUEST_OPERATIONS)
