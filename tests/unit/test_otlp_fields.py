"""Attributes to request fields: precedence, units, types, zero, NaN, resources, duplicates, free-form attributes."""

import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from schemas.requests import MAX_ATTRIBUTES, REQUEST_FIELDS, FieldType
from schemas.semconv import FIELD_ALIASES, OPERATION_KEYS, Alias
from tests.otlp import export, ids
from tests.otlp_encodings import encode
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.request_lines import request_json

END_MS = 1_700_000_000_000
TYPES = {field.name: field.type for field in REQUEST_FIELDS}


def any_value(value: Any) -> AnyValue:
    if isinstance(value, AnyValue):
        return value
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[any_value(item) for item in value]))
    kind = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value", bytes: "bytes_value"}
    return AnyValue(**{kind[type(value)]: value})


def span(*pairs: tuple[str, Any], number: int = 1) -> Span:
    trace_id, span_id = ids(number)
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        kind=Span.SPAN_KIND_SERVER,
        end_time_unix_nano=END_MS * 1_000_000,
        attributes=[KeyValue(key=key, value=any_value(value)) for key, value in pairs],
    )


def decode(
    *pairs: tuple[str, Any], resource: tuple[tuple[str, Any], ...] = ()
) -> tuple[dict[str, Any], dict[str, int]]:
    request = export([span(*pairs)])
    attributes = request.resource_spans[0].resource.attributes
    attributes.extend(KeyValue(key=key, value=any_value(value)) for key, value in resource)
    table, dead = decode_spans([request.SerializeToString()], "otlp_proto")
    assert dead == []
    return table.to_pylist()[0], orjson.loads(table.schema.metadata[b"slacktide.nulled"])


SAMPLES = {FieldType.STRING: "a", FieldType.BOOL: True, FieldType.INT64: 7, FieldType.FLOAT64: 0.25}
SPELLINGS = [(field, alias) for field, aliases in FIELD_ALIASES.items() for alias in aliases]


@pytest.mark.parametrize(("field", "alias"), SPELLINGS, ids=[f"{field}-{alias.key}" for field, alias in SPELLINGS])
def test_every_spelling_fills_its_field_in_its_unit(field: str, alias: Alias) -> None:
    value: Any = SAMPLES[TYPES[field]]
    sent = value * alias.per_unit if alias.per_unit != 1 else value
    row, nulled = decode((alias.key, f'{{"{alias.in_json}": {value}, "x": 1}}' if alias.in_json else sent))
    expected = "chat" if field == "service_name" and alias.key != "service.name" else value
    assert (row[field], nulled) == (expected, {})
    assert row["attributes"] is None


@pytest.mark.parametrize("field", [field for field, aliases in FIELD_ALIASES.items() if len(aliases) > 1])
def test_the_first_spelling_wins_whatever_the_order_on_the_wire(field: str) -> None:
    first, *_, last = (alias for alias in FIELD_ALIASES[field] if not alias.in_json and alias.per_unit == 1)
    values = {FieldType.STRING: ("a", "b"), FieldType.BOOL: (False, True)}.get(TYPES[field], (0, 5))
    for pairs in ([(first.key, values[0]), (last.key, values[1])], [(last.key, values[1]), (first.key, values[0])]):
        assert decode(*pairs)[0][field] == values[0]


def test_milliseconds_and_nanoseconds_become_seconds_to_the_last_bit() -> None:
    assert decode(("ai.response.msToFirstChunk", 7))[0]["time_to_first_token_seconds"] == 0.007
    name = "slacktide.time_to_first_token_nanoseconds"
    assert decode((name, 250_000_001))[0]["time_to_first_token_seconds"] == 0.250000001


NUMBERS: list[tuple[Any, Any, Any]] = [
    # sent, as an INT64 field, as a FLOAT64 field; None means null and counted
    (0, 0, 0.0),
    (0.0, 0, 0.0),
    (12, 12, 12.0),
    (12.0, 12, 12.0),
    (12.5, None, 12.5),
    (2**63 - 1, 2**63 - 1, 2.0**63),
    (2.0**60, None, 2.0**60),
    (math.inf, None, math.inf),
    ("12", 12, 12.0),
    ("-0.5", None, -0.5),
    ("1e3", None, 1000.0),
    ("twelve", None, None),
    ("", None, None),
    ("1_000", None, None),
    ("１２", None, None),
    ("9" * 500, None, None),
    (True, None, None),
    ([1], None, None),
    (b"12", None, None),
]


@pytest.mark.parametrize(("sent", "as_integer", "as_real"), NUMBERS)
def test_numbers_in_any_form_or_null_and_counted(sent: Any, as_integer: int | None, as_real: float | None) -> None:
    row, nulled = decode(("gen_ai.usage.input_tokens", sent), ("slacktide.perplexity", sent))
    assert (row["input_tokens"], row["perplexity"]) == (as_integer, as_real)
    missing = [name for name in ("input_tokens", "perplexity") if row[name] is None]
    assert nulled == dict.fromkeys(missing, 1)


def test_nan_is_kept_for_a_real_field_and_is_no_integer() -> None:
    row, nulled = decode(("gen_ai.usage.input_tokens", math.nan), ("slacktide.perplexity", math.nan))
    assert math.isnan(row["perplexity"])
    assert (row["input_tokens"], nulled) == (None, {"input_tokens": 1})


@pytest.mark.parametrize(("sent", "expected"), [(True, True), ("False", False), ("yes", None), (1, None)])
def test_booleans(sent: Any, expected: bool | None) -> None:
    row, nulled = decode(("gen_ai.request.stream", sent))
    assert (row["is_streaming"], nulled) == (expected, {} if expected is not None else {"is_streaming": 1})


@pytest.mark.parametrize(
    ("sent", "expected"),
    [("v2", "v2"), (2, "2"), (-(2**63), str(-(2**63))), (2.5, None), (True, None), (["v2"], None)],
)
def test_texts(sent: Any, expected: str | None) -> None:
    row, nulled = decode(("gen_ai.prompt.version", sent))
    assert row["prompt_template_version"] == expected
    assert nulled == ({} if expected else {"prompt_template_version": 1})


@pytest.mark.parametrize(
    ("sent", "expected"),
    [(["stop", "length"], "stop"), ([AnyValue(), 3, "length"], "length"), ("stop", "stop"), ([], None), ([1], None)],
)
def test_finish_reasons_give_the_first_text(sent: Any, expected: str | None) -> None:
    assert decode(("gen_ai.response.finish_reasons", sent))[0]["finish_reason"] == expected


def test_an_empty_value_is_absent_and_not_wrong() -> None:
    row, nulled = decode(("gen_ai.usage.input_tokens", AnyValue()), ("tenant", ""), ("tenant.id", AnyValue()))
    assert (row["input_tokens"], row["tenant"], nulled) == (None, None, {})


def test_a_wrong_type_leaves_the_field_to_the_next_spelling() -> None:
    row, nulled = decode(("gen_ai.usage.input_tokens", "many"), ("gen_ai.usage.prompt_tokens", 5))
    assert (row["input_tokens"], nulled) == (5, {"input_tokens": 1})


def test_of_one_key_given_twice_the_last_counts() -> None:
    row, _ = decode(("tenant", "a"), ("x", 1), ("tenant", "b"), ("y", 1), ("x", 2))
    assert (row["tenant"], row["attributes"]) == ("b", [("y", 1.0), ("x", 2.0)])


def test_a_resource_gives_what_the_span_does_not() -> None:
    shared = (("gpu.model", "H100"), ("tenant", "a"), ("process.pid", 12))
    row, _ = decode(("tenant", "b"), resource=shared)
    assert (row["accelerator_type"], row["tenant"], row["service_name"]) == ("H100", "b", "chat")
    assert row["attributes"] is None


def test_free_attributes_are_numeric_and_unclaimed() -> None:
    row, _ = decode(("a", 0), ("b", 1.5), ("c", "12"), ("d", True), ("lora.rank", 16), ("gen_ai.usage.input_tokens", 3))
    assert row["attributes"] == [("a", 0.0), ("b", 1.5), ("lora.rank", 16.0)]


def test_a_request_has_at_most_64_free_attributes_and_the_rest_is_counted() -> None:
    row, nulled = decode(*((f"feature.{number}", number) for number in range(MAX_ATTRIBUTES + 6)))
    assert [value for _, value in row["attributes"]] == list(range(MAX_ATTRIBUTES))
    assert nulled == {"attributes": 6}


SECRET = "the patient's name is Ada"
CONTENT_KEYS = [
    "gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.prompt.0.content", "gen_ai.completion.0.content", "gen_ai.request.messages", "gen_ai.tool.call.arguments",
    "llm.prompts", "llm.input_messages.0.message.content", "llm.output_messages.0.message.content",
    "llm.prompt_template.template", "llm.prompt_template.variables", "input.value", "output.value",
    "traceloop.entity.input", "traceloop.entity.output", "traceloop.prompt.template", "ai.prompt.messages",
    "ai.response.text", "langfuse.observation.input", "langfuse.observation.output", "exception.message",
    "retrieval.documents.0.document.content", "gen_ai.retrieval.documents", "gen_ai.retrieval.query.text",
    "db.query.text",
    "user.email",
]  # fmt: skip


@pytest.mark.parametrize("form", [SECRET, [SECRET], SECRET.encode()])
def test_no_prompt_or_response_ever_comes_out(form: Any) -> None:
    assert not set(CONTENT_KEYS) & ({alias.key for _, alias in SPELLINGS} | set(OPERATION_KEYS))
    request = export([span(("gen_ai.operation.name", "chat"), *((key, form) for key in CONTENT_KEYS))])
    for encoding in ("otlp_proto", "otlp_json"):
        table, dead = decode_spans([encode(request, encoding)], encoding)
        assert (table.column("is_request").to_pylist(), dead) == ([True], [])
        assert "Ada" not in repr(table.to_pylist())
        assert "Ada" not in request_json(table)[0].as_py()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 4))
def test_columns_have_the_same_values_in_any_batch(numbers: list[int], size: int) -> None:
    messages = [
        export([span(("a", number), ("tenant", str(number)), number=number + 1)]).SerializeToString()
        for number in numbers
    ]
    whole = decode_spans(messages, "otlp_proto")[0].drop_columns("message_index").to_pylist()
    parts = [messages[start : start + size] for start in range(0, len(messages), size)]
    apart = [decode_spans(part, "otlp_proto")[0].drop_columns("message_index").to_pylist() for part in parts]
    assert whole == [row for rows in apart for row in rows]
