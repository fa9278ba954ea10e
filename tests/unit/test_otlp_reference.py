"""Both encodings, held to the values of a plain walk over the official protobuf classes, on random messages."""

import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from schemas.semconv import FIELD_ALIASES, OPERATION_KEYS, PHASE_SPANS
from tests.bench.walk_spans import walk
from tests.otlp_encodings import encode
from udfs.telemetry.otlp import SPAN_SCHEMA, decode_spans

NOW_NS = 1_700_000_000_000_000_000
KEYS = sorted({alias.key for aliases in FIELD_ALIASES.values() for alias in aliases} | {*OPERATION_KEYS})
TEXTS = st.one_of(
    st.sampled_from(["chat", "LLM", "embeddings", "true", "False", "12", "0", "0.5", "1e3", "nan", "x", ""]),
    st.sampled_from(['{"input": 12, "output":3}', '{"input":0}', '{"inputs": 4}', "{"]),
    st.text(max_size=8),
)
VALUES = st.one_of(
    st.builds(AnyValue),
    TEXTS.map(lambda text: AnyValue(string_value=text)),
    st.booleans().map(lambda flag: AnyValue(bool_value=flag)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
    st.integers(-3, 3).map(lambda number: AnyValue(int_value=number)),
    st.floats().map(lambda number: AnyValue(double_value=number)),
    st.sampled_from([0.0, 2.0, -1.0, 2.0**60]).map(lambda number: AnyValue(double_value=number)),
    st.lists(TEXTS, max_size=2).map(
        lambda texts: AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=text) for text in texts]))
    ),
    st.just(
        AnyValue(array_value=ArrayValue(values=[AnyValue(), AnyValue(int_value=3), AnyValue(string_value="last")]))
    ),
    st.lists(st.one_of(st.integers(-3, 3), st.floats(width=16)), max_size=3).map(
        lambda numbers: AnyValue(
            array_value=ArrayValue(
                values=[AnyValue(int_value=n) if isinstance(n, int) else AnyValue(double_value=n) for n in numbers]
            )
        )
    ),
    st.just(AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(int_value=1))]))),
    st.binary(max_size=3).map(lambda data: AnyValue(bytes_value=data)),
)
PAIRS = st.builds(KeyValue, key=st.sampled_from([*KEYS, "free.a", "free.b", ""]), value=VALUES)
IDS = st.integers(1, 6).map(lambda number: number.to_bytes(8, "big"))


@st.composite
def spans(draw: st.DrawFn) -> Span:
    start_ns = NOW_NS + draw(st.integers(0, 10**10))
    return Span(
        trace_id=draw(st.integers(1, 2)).to_bytes(16, "big"),
        span_id=draw(IDS),
        parent_span_id=draw(st.one_of(st.just(b""), st.just(bytes(8)), IDS)),
        name=draw(st.sampled_from([*PHASE_SPANS, "llm_request", ""])),
        kind=draw(st.integers(0, 7)),
        start_time_unix_nano=draw(st.sampled_from([0, start_ns])),
        end_time_unix_nano=start_ns + draw(st.integers(0, 10**10)),
        attributes=draw(st.lists(PAIRS, max_size=6)),
        status=draw(st.sampled_from([None, Status(), Status(code=1), Status(code=2), Status(code=7)])),
    )


@st.composite
def exports(draw: st.DrawFn) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    for _ in range(draw(st.integers(0, 2))):
        resource_spans = request.resource_spans.add()
        if draw(st.booleans()):
            resource_spans.resource.attributes.extend(draw(st.lists(PAIRS, max_size=3)))
        for _ in range(draw(st.integers(0, 2))):
            resource_spans.scope_spans.add().spans.extend(draw(st.lists(spans(), max_size=4)))
    return request


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        row["attributes"] = row["attributes"] and dict(row["attributes"])
    return rows


def comparable(value: Any) -> Any:
    """NaN equals NaN; sums of durations may differ in the last bit."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items()}
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.14e}")
    return value


@given(st.lists(exports(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_both_encodings_give_what_a_walk_over_the_messages_gives(requests: list[ExportTraceServiceRequest]) -> None:
    messages = [request.SerializeToString() for request in requests]
    proto, dead_proto = decode_spans(messages, "otlp_proto")
    json, dead_json = decode_spans([encode(request, "otlp_json") for request in requests], "otlp_json")
    assert dead_proto == dead_json == []
    assert proto.schema.equals(SPAN_SCHEMA)
    assert json.schema.equals(SPAN_SCHEMA)
    expected = [comparable(row) for row in walk(messages)]
    assert [comparable(row) for row in as_rows(proto)] == expected
    assert [comparable(row) for row in as_rows(json)] == expected
    assert proto.schema.metadata == json.schema.metadata
