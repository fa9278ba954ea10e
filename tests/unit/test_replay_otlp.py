"""Encoding: byte for byte as the Collector writes it, readable by opentelemetry-proto, the same content in both."""

from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from infra.replay.otlp_messages import SpanEncoder, encode_requests, span_encoder
from infra.replay.request_block import Arrivals, RequestBlock
from infra.replay.service_model import ServiceModel, load_constants
from infra.replay.span_attributes import ATTRIBUTE_KEYS, CHILD_SPANS
from infra.replay.spans import SpanColumns, child_spans, request_spans
from infra.replay.trace import read_trace
from schemas.requests import request_fields
from schemas.semconv import FIELD_ALIASES
from udfs.telemetry.otlp import decode_spans

ENCODINGS = ("otlp_proto", "otlp_json")
EPOCH_NS = 1_700_000_000_000_000_000
ONE = SpanColumns(
    name="llm_request",
    kind=2,
    trace_id=[bytes.fromhex("5b8efff798038103d269b633813fc60c")],
    span_id=[bytes.fromhex("eee19b7ec3c1b174")],
    parent_id=[b""],
    start_ns=np.array([1]),
    end_ns=np.array([258]),
)


def one_message(encoding: str) -> bytes:
    encoder = span_encoder(encoding, {"service.name": "a"})
    attributes = [
        encoder.texts("t", np.array(["x"])),
        encoder.integers("i", np.array([300])),
        encoder.doubles("d", np.array([0.5])),
        encoder.booleans("b", np.array([False])),
        encoder.text_lists("l", np.array(["y"])),
    ]
    return encoder.message(encoder.spans(ONE, attributes))


def test_proto_is_what_the_collector_writes() -> None:
    """Written by hand from trace.proto and from pdata's marshaler, which keeps the empty parent id and status."""
    span = (
        "0a10 5b8efff798038103d269b633813fc60c"  # trace_id
        "1208 eee19b7ec3c1b174"  # span_id
        "2200"  # parent_span_id, empty
        "8501 00010000"  # flags: the parent's remoteness is known
        "2a0b 6c6c6d5f72657175657374"  # name
        "3002"  # kind SERVER
        "39 0100000000000000"  # start_time_unix_nano
        "41 0201000000000000"  # end_time_unix_nano
        "4a08 0a0174 1203 0a0178"  # t = "x"
        "4a08 0a0169 1203 18ac02"  # i = 300
        "4a0e 0a0164 1209 21 000000000000e03f"  # d = 0.5
        "4a07 0a0162 1202 1000"  # b = false
        "4a0c 0a016c 1207 2a05 0a03 0a0179"  # l = ["y"]
        "7a00"  # status, unset
    )
    scope = bytes.fromhex("0a11 0a0f") + b"vllm.llm_engine"
    scope_spans = scope + bytes.fromhex("12 8201" + span)  # 130 bytes
    resource = bytes.fromhex("0a15 0a13 0a0c") + b"service.name" + bytes.fromhex("1203 0a01") + b"a"
    resource_spans = resource + bytes.fromhex("12 9801") + scope_spans  # 152 bytes
    assert one_message("otlp_proto") == bytes.fromhex("0a b201") + resource_spans  # 178 bytes


def test_json_is_what_the_collector_writes() -> None:
    assert one_message("otlp_json").decode() == (
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]},'
        '"scopeSpans":[{"scope":{"name":"vllm.llm_engine"},"spans":[{'
        '"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","flags":256,"name":"llm_request",'
        '"kind":2,"startTimeUnixNano":"1","endTimeUnixNano":"258","attributes":['
        '{"key":"t","value":{"stringValue":"x"}},'
        '{"key":"i","value":{"intValue":"300"}},'
        '{"key":"d","value":{"doubleValue":0.5}},'
        '{"key":"b","value":{"boolValue":false}},'
        '{"key":"l","value":{"arrayValue":{"values":[{"stringValue":"y"}]}}}],"status":{}}]}]}]}'
    )


def block(rows: int = 40) -> RequestBlock:
    trace = read_trace()
    model = ServiceModel(load_constants(), np.random.default_rng(1))
    return model.serve(Arrivals(trace.arrival_ns[:rows], trace.input_tokens[:rows], trace.output_tokens[:rows]))


def encoded(encoder: SpanEncoder, requests: RequestBlock) -> bytes:
    """One message of all requests and the spans below them."""
    ids = np.random.default_rng(2)
    columns = request_spans(requests, EPOCH_NS, ids)
    below = [encoder.spans(phase, []) for phase in child_spans(columns, requests, ids)]
    return encoder.message(
        [span for row in zip(encode_requests(encoder, columns, requests), *below, strict=True) for span in row]
    )


def proto_value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [proto_value(member) for member in value.array_value.values]
    return getattr(value, kind)


def json_value(value: dict[str, Any]) -> Any:
    [(kind, held)] = value.items()
    if kind == "arrayValue":
        return [json_value(member) for member in held["values"]]
    return int(held) if kind == "intValue" else held


def spans_of(message: bytes, encoding: str) -> list[dict[str, Any]]:
    """Read a message without any code of ours: by opentelemetry-proto, or as JSON."""
    if encoding == "otlp_json":
        [resource] = orjson.loads(message)["resourceSpans"]
        return [
            {
                "trace_id": bytes.fromhex(span["traceId"]),
                "span_id": bytes.fromhex(span["spanId"]),
                "parent": bytes.fromhex(span.get("parentSpanId", "")),
                "name": span["name"],
                "kind": span["kind"],
                "start": int(span["startTimeUnixNano"]),
                "end": int(span["endTimeUnixNano"]),
                "attributes": {a["key"]: json_value(a["value"]) for a in span.get("attributes", [])},
            }
            for span in resource["scopeSpans"][0]["spans"]
        ]
    request = ExportTraceServiceRequest.FromString(message)
    return [
        {
            "trace_id": span.trace_id,
            "span_id": span.span_id,
            "parent": span.parent_span_id,
            "name": span.name,
            "kind": span.kind,
            "start": span.start_time_unix_nano,
            "end": span.end_time_unix_nano,
            "attributes": {a.key: proto_value(a.value) for a in span.attributes},
        }
        for span in request.resource_spans[0].scope_spans[0].spans
    ]


def test_both_encodings_have_the_same_content() -> None:
    requests = block()
    by_encoding = [spans_of(encoded(span_encoder(e, {"service.name": "a"}), requests), e) for e in ENCODINGS]
    assert by_encoding[0] == by_encoding[1]
    assert len(by_encoding[0]) == len(requests) * (1 + len(CHILD_SPANS))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_field_arrives_under_its_attribute(encoding: str) -> None:
    requests = block()
    spans = [s for s in spans_of(encoded(span_encoder(encoding, {}), requests), encoding) if s["name"] == "llm_request"]
    for field, key in ATTRIBUTE_KEYS.items():
        arrived = [span["attributes"][key] for span in spans]
        sent = requests.fields[field].tolist()
        assert arrived == ([[value] for value in sent] if field == "finish_reason" else sent)
    assert {span["attributes"]["gen_ai.operation.name"] for span in spans} == {"chat"}
    assert [span["end"] - EPOCH_NS for span in spans] == requests.end_ns.tolist()


def test_phases_lie_below_their_request_and_fill_it() -> None:
    spans = spans_of(encoded(span_encoder("otlp_proto", {}), block()), "otlp_proto")
    for request, prefill, decode in zip(spans[::3], spans[1::3], spans[2::3], strict=True):
        assert (prefill["name"], decode["name"]) == ("prefill", "decode")
        assert {prefill["trace_id"], decode["trace_id"]} == {request["trace_id"]}
        assert {prefill["parent"], decode["parent"]} == {request["span_id"]}
        assert request["parent"] == b""
        assert request["start"] <= prefill["start"] < prefill["end"] == decode["start"]
        assert decode["end"] == request["end"]
        attributes = request["attributes"]
        first_token_ns = attributes["gen_ai.latency.time_to_first_token"] * 1e9
        assert prefill["end"] - request["start"] == pytest.approx(first_token_ns, abs=3)
    assert len({span["span_id"] for span in spans}) == len(spans)


def test_spellings_are_those_of_the_alias_table() -> None:
    known = {alias.key: field for field, aliases in FIELD_ALIASES.items() for alias in aliases if alias.per_unit == 1}
    assert {key: known.get(key) for key in ATTRIBUTE_KEYS.values()} == {key: f for f, key in ATTRIBUTE_KEYS.items()}
    request_fields(ATTRIBUTE_KEYS)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ingest_reads_every_field_back(encoding: str) -> None:
    requests = block()
    resource = {"service.name": "vllm-chat", "gpu.model": "H100"}
    table, dead = decode_spans([encoded(span_encoder(encoding, resource), requests)], encoding)
    assert dead == []
    read = table.filter(table["is_request"])
    below = table.filter(pc.invert(table["is_request"]))
    assert below["name"].to_pylist() == list(CHILD_SPANS) * len(requests)
    for field, values in requests.fields.items():
        assert read[field].to_pylist() == values.tolist(), field
    assert set(read["service_name"].to_pylist()) == {"vllm-chat"}
    assert set(read["child_span_count"].to_pylist()) == {2}
