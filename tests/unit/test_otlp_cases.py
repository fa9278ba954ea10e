"""The telemetry cases that others' bug trackers taught us, each from tests/cases/telemetry.json."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.dead_letters import Reason
from udfs.telemetry.any_value import any_value
from udfs.telemetry.otlp import KINDS, decode_spans

CASES = {
    case["id"]: case for case in orjson.loads((Path(__file__).parents[1] / "cases" / "telemetry.json").read_bytes())
}
SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "chat",
    "kind": 3,
    "endTimeUnixNano": "1700000000000000000",
}


def message(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> bytes:
    return orjson.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]})


def attribute(key: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"key": key, "value": value}


@pytest.mark.parametrize("case", ["otlp-int-string", "otlp-int-number", "otlp-empty-array", "otlp-null-anyvalue"])
def test_any_value(case: str) -> None:
    assert any_value(CASES[case]["input"]["value"]) == CASES[case]["expected"]["value"]


@pytest.mark.parametrize("case", ["otlp-int-string", "otlp-int-number", "otlp-empty-array", "otlp-null-anyvalue"])
def test_no_value_costs_the_span(case: str) -> None:
    table, dead = decode_spans([message(SPAN | {"attributes": [CASES[case]["input"]]})], "otlp_json")
    assert (table.num_rows, dead) == (1, [])


def test_string_and_number_integers_reach_the_record() -> None:
    pairs = [CASES["otlp-int-string"]["input"], CASES["otlp-int-number"]["input"]]
    (row,) = decode_spans([message(SPAN | {"attributes": pairs})], "otlp_json")[0].to_pylist()
    assert (row["input_tokens"], row["attributes"]) == (25, [("http.response_content_length", 5893.0)])


def test_ids_in_either_case_come_out_lower() -> None:
    case = CASES["otlp-id-hex-case"]
    (row,) = decode_spans([message(SPAN | case["input"])], "otlp_json")[0].to_pylist()
    assert {"traceId": row["trace_id"], "spanId": row["span_id"]} == case["expected"]


def test_base64_ids_are_dead_letters_when_strict_and_counted_when_lenient() -> None:
    case = CASES["otlp-id-base64-raw"]
    body = message(SPAN | case["input"])
    table, (letter,) = decode_spans([body], "otlp_json")
    assert (table.num_rows, letter.reason) == (0, Reason.BAD_ID)
    assert orjson.loads(letter.payload)["traceId"] == case["input"]["traceId"]
    table, dead = decode_spans([body], "otlp_json", lenient=True)
    (row,) = table.to_pylist()
    assert dead == []
    assert {"traceId": row["trace_id"], "spanId": row["span_id"], "counter": "id_base64"} == case["expected"]["lenient"]
    assert orjson.loads(table.schema.metadata[b"slacktide.lenient"]) == {"id_base64": 2}


def test_enum_names_are_dead_letters_when_strict_and_counted_when_lenient() -> None:
    case = CASES["otlp-enum-name"]
    body = message(SPAN | {"kind": case["input"]["kind"]})
    table, (letter,) = decode_spans([body], "otlp_json")
    assert (table.num_rows, letter.reason) == (0, Reason.ENUM_NAME)
    table, dead = decode_spans([body], "otlp_json", lenient=True)
    assert dead == []
    assert table.column("kind").to_pylist() == [KINDS[case["expected"]["lenient"]["kind"]]]
    assert orjson.loads(table.schema.metadata[b"slacktide.lenient"]) == {"enum_name": 1}


def test_kinds_are_otlp_numbers() -> None:
    case = CASES["otlp-kind-offset"]
    spans = [SPAN | {"kind": kind, "spanId": f"{kind + 1:016x}"} for kind in case["input"]["otlp_kind"]]
    assert decode_spans([message(*spans)], "otlp_json")[0].column("kind").to_pylist() == case["expected"]["names"]


def test_an_absent_status_is_unset_and_no_error() -> None:
    case = CASES["otlp-status-absent"]
    span = case["input"] | {"endTimeUnixNano": "1700000000000000000"}
    (row,) = decode_spans([message(span)], "otlp_json")[0].to_pylist()
    assert {"status": row["status"], "is_error": row["is_error"]} == case["expected"]


def test_empty_envelopes_hold_no_spans() -> None:
    case = CASES["otlp-empty-envelope"]
    table, dead = decode_spans([orjson.dumps(envelope) for envelope in case["input"]], "otlp_json")
    assert (table.num_rows, dead) == (case["expected"]["spans"], [])


def test_a_service_without_a_name_has_the_default() -> None:
    (row,) = decode_spans([message(SPAN, resource={})], "otlp_json")[0].to_pylist()
    assert row["service_name"] == CASES["otlp-empty-envelope"]["expected"]["service.name_default"]


def test_zero_is_a_value() -> None:
    case = CASES["zero-is-a-value"]
    names = {"input": "gen_ai.usage.input_tokens", "output": "gen_ai.usage.output_tokens", "total": "usage.total"}
    spans = [
        SPAN
        | {"spanId": f"{number + 1:016x}"}
        | {"attributes": [attribute(names[name], {"intValue": str(value)}) for name, value in usage.items()]}
        for number, usage in enumerate(case["input"]["usage"])
    ]
    spans[0]["attributes"].append(attribute("score", case["input"]["score"]))
    rows = decode_spans([message(*spans)], "otlp_json")[0].to_pylist()
    free = [dict(row["attributes"]) for row in rows]
    totals = [
        f.get("usage.total", row["input_tokens"] + row["output_tokens"]) for f, row in zip(free, rows, strict=True)
    ]
    assert totals == case["expected"]["totals"]
    assert free[0]["score"] == case["expected"]["score"]
