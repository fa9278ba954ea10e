"""Attributes to request fields: precedence, units, types, zero, NaN, resources, duplicates, free-form attributes."""

import hashlib
import math
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from schemas.field_types import MAX_ATTRIBUTES, MAX_EMBEDDING_LENGTH, FieldType
from schemas.requests import REQUEST_FIELDS
from schemas.semconv import FIELD_ALIASES, HASHED_FIELDS, OPERATION_KEYS, Alias
from tests.otlp import export, ids
from tests.otlp_encodings import encode
from udfs.telemetry.embeddings import vector_from_proto
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


SAMPLES = {
    FieldType.STRING: "a",
    FieldType.BOOL: True,
    FieldType.INT64: 7,
    FieldType.FLOAT64: 0.25,
    FieldType.DOUBLE_ARRAY: [0.0, -0.5],
}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


SPELLINGS = [(field, alias) for field, aliases in FIELD_ALIASES.items() for alias in aliases]


@pytest.mark.parametrize(("field", "alias"), SPELLINGS, ids=[f"{field}-{alias.key}" for field, alias in SPELLINGS])
def test_every_spelling_fills_its_field_in_its_unit(field: str, alias: Alias) -> None:
    value: Any = SAMPLES[TYPES[field]]
    sent = value * alias.per_unit if alias.per_unit != 1 else value
    row, nulled = decode((alias.key, f'{{"{alias.in_json}": {value}, "x": 1}}' if alias.in_json else sent))
    expected = "chat" if field == "service_name" and alias.key != "service.name" else value
    expected = sha256(value) if field in HASHED_FIELDS else expected
    assert (row[field], nulled) == (expected, {})
    assert row["attributes"] is None


@pytest.mark.parametrize("field", [field for field, aliases in FIELD_ALIASES.items() if len(aliases) > 1])
def test_the_first_spelling_wins_whatever_the_order_on_the_wire(field: str) -> None:
    first, *_, last = (alias for alias in FIELD_ALIASES[field] if not alias.in_json and alias.per_unit == 1)
    values = {FieldType.STRING: ("a", "b"), FieldType.BOOL: (False, True)}.get(TYPES[field], (0, 5))
    for pairs in ([(first.key, values[0]), (last.key, values[1])], [(last.key, values[1]), (first.key, values[0])]):
        assert decode(*pairs)[0][field] == (sha256("a") if field in HASHED_FIELDS else values[0])


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


def decode_both(*pairs: tuple[str, Any]) -> tuple[dict[str, Any], dict[str, int], str]:
    """Return the row, what was nulled and the request's JSON, the same from both encodings."""
    found = []
    for encoding in ("otlp_proto", "otlp_json"):
        table, dead = decode_spans([encode(export([span(*pairs)]), encoding)], encoding)
        assert dead == []
        nulled = orjson.loads(table.schema.metadata[b"slacktide.nulled"])
        found.append((table.to_pylist()[0], nulled, request_json(table)[0].as_py()))
    assert found[0] == found[1]
    return found[0]


EMBEDDINGS: list[tuple[list[Any], list[float] | None]] = [
    ([0.1, -0.2, 3e300], [0.1, -0.2, 3e300]),
    ([0.0, 0.0], [0.0, 0.0]),
    ([1, 0.5, -2], [1.0, 0.5, -2.0]),
    ([0], [0.0]),
    ([0.25] * MAX_EMBEDDING_LENGTH, [0.25] * MAX_EMBEDDING_LENGTH),
    ([0.25] * (MAX_EMBEDDING_LENGTH + 1), None),
    ([1] * (MAX_EMBEDDING_LENGTH + 1), None),
    ([0.1, math.nan], None),
    ([0.1, math.inf], None),
    ([], None),
    ([AnyValue()], None),
    ([0.1, AnyValue()], None),
    ([0.1, "0.2"], None),
    ([0.1, True], None),
    ([[0.1], [0.2]], None),
]


@pytest.mark.parametrize("field", ["prompt_embedding", "response_embedding"])
@pytest.mark.parametrize(("sent", "expected"), EMBEDDINGS)
def test_embeddings_are_lists_of_finite_numbers_or_left_out_and_counted(
    field: str, sent: list[Any], expected: list[float] | None
) -> None:
    row, nulled, text = decode_both((f"slacktide.{field}", sent))
    assert (row[field], orjson.loads(text).get(field)) == (expected, expected)
    assert nulled == ({} if expected else {field: 1})


@pytest.mark.parametrize("sent", ["[0.1, 0.2]", 0.1, b"0.1"])
def test_what_is_no_list_is_no_embedding(sent: Any) -> None:
    row, nulled, _ = decode_both(("slacktide.prompt_embedding", sent))
    assert (row["prompt_embedding"], nulled) == (None, {"prompt_embedding": 1})


def test_bytes_that_only_look_like_doubles_are_no_embedding() -> None:
    """An ArrayValue field cut short, as ptars hands it on unread."""
    whole = b"\x0a\x09\x21" + struct.pack("<d", 0.5)
    assert vector_from_proto(whole * 2).tolist() == [0.5, 0.5]  # type: ignore[union-attr]
    assert vector_from_proto(whole[:-1]) is None
    assert vector_from_proto(b"\x0a\x09\x22" + whole[3:]) is None


def test_embeddings_stay_with_their_spans_whatever_the_batch() -> None:
    spans = [span(("a", n), *([("slacktide.prompt_embedding", [float(n), 1.0])] if n % 3 else []), number=n + 1)
             for n in range(9)]  # fmt: skip
    table, _ = decode_spans(
        [export(spans[:5]).SerializeToString(), export(spans[5:]).SerializeToString()], "otlp_proto"
    )
    expected = [[float(n), 1.0] if n % 3 else None for n in range(9)]
    assert table.column("prompt_embedding").to_pylist() == expected
    assert [orjson.loads(t).get("prompt_embedding") for t in request_json(table.slice(2)).to_pylist()] == expected[2:]


def test_a_child_gives_its_request_the_embedding_it_lacks() -> None:
    child = span(("slacktide.response_embedding", [0.5]), ("slacktide.prompt_embedding", [9.0]), number=2)
    parent = span(("gen_ai.operation.name", "chat"), ("slacktide.prompt_embedding", [1.0]))
    child.trace_id, child.parent_span_id, child.kind = parent.trace_id, parent.span_id, Span.SPAN_KIND_INTERNAL
    row = decode_spans([export([parent, child]).SerializeToString()], "otlp_proto")[0].to_pylist()[0]
    assert (row["prompt_embedding"], row["response_embedding"]) == ([1.0], [0.5])


USER = "ada@example.com"
USER_KEYS = [alias.key for alias in FIELD_ALIASES["user_hash"]]


@pytest.mark.parametrize("key", USER_KEYS)
@pytest.mark.parametrize("sent", [USER, -471147114711])
def test_a_users_id_is_hashed_whichever_spelling_gives_it_and_never_carried(key: str, sent: Any) -> None:
    row, _, text = decode_both((key, sent))
    assert row["user_hash"] == sha256(str(sent))
    assert str(sent) not in repr(row)
    assert str(sent) not in text


def test_only_the_first_of_several_user_ids_counts_and_a_hash_is_hashed_again() -> None:
    row, _, text = decode_both(*((key, f"{USER}{number}") for number, key in enumerate(USER_KEYS)))
    assert row["user_hash"] == sha256(USER + "0")
    assert "ada@" not in text
    assert decode(("user.hash", sha256(USER)))[0]["user_hash"] == sha256(sha256(USER))


def test_a_resource_may_name_the_user_and_each_user_has_one_hash() -> None:
    assert decode(resource=(("user.id", USER),))[0]["user_hash"] == sha256(USER)
    spans = [span(("user.id", user), number=n + 1) for n, user in enumerate(["a", "b", "a"])]
    hashes = decode_spans([export(spans).SerializeToString()], "otlp_proto")[0].column("user_hash").to_pylist()
    assert hashes == [sha256("a"), sha256("b"), sha256("a")]


def test_the_version_of_a_service_is_not_the_version_of_its_model() -> None:
    row, _ = decode(("service.version", "7"), ("model.version", "2026-03"), resource=(("service.version", "8"),))
    assert row["model_version"] == "2026-03"
    assert decode(resource=(("service.version", "8"),))[0]["model_version"] is None


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
