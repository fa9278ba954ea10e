"""decode_logs: both encodings alike, hostile messages, ids, severities."""

from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from tests.otlp_metrics import attribute
from udfs.telemetry.logs_json import SEVERITY_NAMES
from udfs.telemetry.otlp import decode_logs
from udfs.telemetry.otlp_logs import LOG_SCHEMA

RECORD: dict[str, Any] = {"timeUnixNano": "5000000000", "body": {"stringValue": "started"}}


def message(*records: Any, resource: dict[str, Any] | None = None) -> bytes:
    scope = {"scope": {"name": "engine"}, "logRecords": records}
    return orjson.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]})


def as_proto(data: bytes) -> bytes:
    """As Google's own JSON reader understands it; it takes ids for base64, so these go in without."""
    return json_format.Parse(data, ExportLogsServiceRequest()).SerializeToString()


def rows(data: bytes, encoding: str = "otlp_json", **options: Any) -> list[dict[str, Any]]:
    table, dead = decode_logs([data], encoding, **options)
    assert dead == []
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_records_read_alike_in_both_encodings() -> None:
    data = message(
        RECORD | {"severityNumber": 17, "severityText": "ERROR", "attributes": [attribute("pid", "7")]},
        {"observedTimeUnixNano": "6", "eventName": "gen_ai.evaluation.result", "body": {"intValue": "7"}},
        RECORD | {"body": {"kvlistValue": {"values": [attribute("msg", '{"a":1}'), {"key": "n", "value": {}}]}}},
        RECORD | {"body": {"arrayValue": {"values": [{"boolValue": True}, {"doubleValue": 0.5}]}}},
        RECORD | {"body": None, "severityNumber": 99},
        resource={"attributes": [attribute("service.name", "vllm"), attribute("host", "h")]},
    )
    in_json, in_proto = rows(data), rows(as_proto(data), "otlp_proto")
    assert in_json == in_proto
    error, event, of_map, of_list, empty = in_json
    assert (error["body"], error["severity_number"], dict(error["labels"])) == (
        "started",
        17,
        {"host": "h", "pid": "7"},
    )
    assert (event["time_ns"], event["observed_ns"], event["body"], event["body_kind"]) == (6, 6, "7", "int")
    assert (of_map["body"], of_map["body_kind"]) == ('{"msg":"{\\"a\\":1}","n":null}', "kvlist")
    assert (of_list["body"], empty["body"], empty["body_kind"]) == ("[true,0.5]", None, "null")
    assert (empty["severity_number"], empty["service_name"], empty["scope"]) == (0, "vllm", "engine")


def test_ids_are_hex_in_any_case_or_absent() -> None:
    ids = {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174"}
    named, none, zero = rows(
        message(RECORD | ids, RECORD | {"traceId": "", "spanId": None}, RECORD | {"traceId": "0" * 32})
    )
    assert (named["trace_id"], named["span_id"]) == (ids["traceId"].lower(), ids["spanId"].lower())
    assert {none["trace_id"], none["span_id"], zero["trace_id"]} == {None}
    request = ExportLogsServiceRequest.FromString(as_proto(message(RECORD, RECORD)))
    for record, width in zip(request.resource_logs[0].scope_logs[0].log_records, (16, 7), strict=True):
        record.trace_id = b"\x01" * width
    table, (letter,) = decode_logs([request.SerializeToString()], "otlp_proto")
    assert table.column("trace_id").to_pylist() == ["01" * 16]
    assert (letter.reason, letter.span_index) == (Reason.BAD_ID, 1)


def test_severity_names_are_opentelemetrys() -> None:
    assert dict(SeverityNumber.items()) == SEVERITY_NAMES
    named = message(RECORD | {"severityNumber": "SEVERITY_NUMBER_ERROR2"})
    (letter,) = decode_logs([named], "otlp_json")[1]
    assert letter.reason == Reason.ENUM_NAME
    assert rows(named, lenient=True)[0]["severity_number"] == 18


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"body": {"stringValue": "x"}}, Reason.BAD_TIME),
        (RECORD | {"timeUnixNano": "x"}, Reason.BAD_TIME),
        (RECORD | {"timeUnixNano": str(2**64)}, Reason.BAD_TIME),
        (RECORD | {"traceId": "zz"}, Reason.BAD_ID),
        (RECORD | {"spanId": 7}, Reason.BAD_ID),
        (RECORD | {"body": "x"}, Reason.MALFORMED_JSON),
        (RECORD | {"severityNumber": []}, Reason.MALFORMED_JSON),
        (RECORD | {"severityText": 7}, Reason.MALFORMED_JSON),
        (RECORD | {"attributes": 7}, Reason.MALFORMED_JSON),
        (7, Reason.MALFORMED_JSON),
    ],
)
def test_a_record_that_can_not_be_used_costs_only_itself(record: Any, reason: Reason) -> None:
    table, (letter,) = decode_logs([message(RECORD, record, RECORD)], "otlp_json")
    assert (table.num_rows, letter.reason, letter.span_index) == (2, reason, 1)
    assert orjson.loads(letter.payload) == record


def test_garbage_is_dead_and_empty_messages_are_empty() -> None:
    for encoding, reason in (("otlp_json", Reason.MALFORMED_JSON), ("otlp_proto", Reason.MALFORMED_PROTO)):
        table, (letter,) = decode_logs([b"", b"\xff\xfe garbage"], encoding)
        assert table.schema.equals(LOG_SCHEMA)
        assert (table.num_rows, letter.reason, letter.span_index) == (0, reason, WHOLE_MESSAGE)
    with pytest.raises(ValueError, match="unknown encoding 'avro'"):
        decode_logs([b""], "avro")


FINITE = st.floats(allow_nan=False, allow_infinity=False)  # others become null in JSON
MEMBERS = [*RECORD, "attributes", "traceId", "key", "value", "stringValue", "arrayValue"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FINITE | st.sampled_from(["", "5", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner),
    max_leaves=15,
)


@settings(max_examples=40)
@given(st.lists(JSON, max_size=3), st.binary(max_size=60))
def test_whatever_comes_nothing_raises(records: list[Any], noise: bytes) -> None:
    table, dead = decode_logs([message(*records)], "otlp_json")
    assert table.num_rows + len(dead) == sum(record is not None for record in records)
    decode_logs([noise], "otlp_proto")
