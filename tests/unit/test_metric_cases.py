"""The telemetry cases on metrics and logs that others' bug trackers taught us, each from tests/cases/telemetry.json."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from schemas.dead_letters import Reason
from schemas.measurements import DataQuality
from schemas.status import Status
from tests.otlp_metrics import as_proto, at, attribute, histogram, metrics_json
from udfs.sketches.explicit_histogram import ExplicitHistogram, histogram_quantile
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.telemetry.first_token_times import first_token_times
from udfs.telemetry.metric_quality import mean_findings
from udfs.telemetry.metric_series import Outcome, SeriesPolicy, SeriesState, step
from udfs.telemetry.otlp import decode_logs, decode_metrics
from udfs.telemetry.otlp_logs import body_fields
from udfs.telemetry.otlp_metrics import read_points

CASES = {
    case["id"]: case for case in orjson.loads((Path(__file__).parents[1] / "cases" / "telemetry.json").read_bytes())
}


def outcomes(message: bytes) -> list[Outcome]:
    """Return what becomes of each point of a message, in both encodings alike."""

    def run(data: bytes, encoding: str) -> list[Outcome]:
        states: dict[str, SeriesState] = {}
        found = []
        for place_and_point in read_points(0, data, encoding):
            assert isinstance(place_and_point, tuple)
            point = place_and_point[1]
            states[point.series_id], outcome = step(states.get(point.series_id, SeriesState()), point, SeriesPolicy())
            found.append(outcome)
        return found

    in_json = run(message, "otlp_json")
    assert in_json == run(as_proto(message), "otlp_proto")
    return in_json


def sum_metric(case: dict[str, Any], points: list[dict[str, Any]]) -> dict[str, Any]:
    kind = {name: case[name] for name in ("aggregationTemporality", "isMonotonic")}
    return {"name": "c", "sum": kind | {"dataPoints": points}}


def test_a_reset_loses_nothing_that_the_counter_still_holds() -> None:
    case = CASES["ctr-reset-basic"]
    samples = case["input"]["samples"]
    points = [at(case["input"]["step_s"] * (n + 1), asInt=str(value)) for n, value in enumerate(samples)]
    metric = sum_metric({"aggregationTemporality": 2, "isMonotonic": True}, points)
    measured = [o.measurement for o in outcomes(metrics_json(metric)) if o.measurement is not None]
    assert sum(m.value for m in measured) == case["expected"]["increase"]
    assert sum(DataQuality.RESET in m.data_quality for m in measured) == case["expected"]["resets"]


def test_a_new_start_time_is_a_reset_even_at_the_same_value() -> None:
    case = CASES["ctr-reset-same-value"]
    found = outcomes(metrics_json(sum_metric(case["input"], case["input"]["points"])))
    assert [o.measurement.value for o in found if o.measurement] == case["expected"]["deltas"]


def test_a_histogram_starts_anew_from_its_reset() -> None:
    case = CASES["hist-reset-rebase"]
    points = [
        at(60 * (n + 1), count=str(count), explicitBounds=[1.0], bucketCounts=[str(count), "0"])
        for n, count in enumerate(case["input"]["counts"])
    ]
    found = outcomes(metrics_json(histogram("h", *points)))
    counts = [o.measurement.count if o.measurement else None for o in found]
    assert counts == case["expected"]["deltas_policy_zero_origin"]


def test_delta_histograms_are_added_not_dropped() -> None:
    case = CASES["delta-hist-dropped"]
    points = [at(60 * (n + 1)) | point for n, point in enumerate(case["input"]["points"])]
    message = metrics_json(histogram("h", *points, temporality=case["input"]["aggregationTemporality"]))
    assert decode_metrics([message], "otlp_json")[1] == []
    assert sum(o.measurement.count for o in outcomes(message) if o.measurement) == case["expected"]["total_count"]


def test_unspecified_temporality_is_quarantined() -> None:
    case = CASES["temporality-unspecified"]
    message = metrics_json(sum_metric(case["input"], case["input"]["points"]))
    for encoding, data in (("otlp_json", message), ("otlp_proto", as_proto(message))):
        table, dead = decode_metrics([data], encoding)
        assert table.num_rows == 0
        assert [letter.reason for letter in dead] == [Reason.TEMPORALITY_UNSPECIFIED] * 2
    assert case["expected"]["route"].endswith(Reason.TEMPORALITY_UNSPECIFIED)


def test_a_quantile_beyond_the_last_bound_is_censored_there() -> None:
    case = CASES["hq-inf-bucket"]
    found = histogram_quantile(case["input"]["q"], [tuple(bucket) for bucket in case["input"]["buckets"]])
    assert {"value": found.value, "censored": found.censored} == {
        name: case["expected"][name] for name in ("value", "censored")
    }


def test_no_observations_and_no_infinity_are_no_quantile() -> None:
    case = CASES["hq-empty"]
    found = [histogram_quantile(case["input"]["q"], map(tuple, buckets)) for buckets in case["input"]["cases"]]
    assert [(q.value, q.status) for q in found] == [(None, Status.NO_DATA), (None, Status.INVALID)]
    # A point whose buckets are no histogram never gets so far.
    assert str(Reason.INVALID_HISTOGRAM) == case["expected"]["values"][1]


def test_a_threshold_between_two_edges_gives_bounds_and_an_estimate() -> None:
    case = CASES["ttft-edge-missing"]
    found = ExplicitHistogram.from_cumulative(map(tuple, case["input"]["buckets"])).good_ratio(
        case["input"]["threshold_s"]
    )
    assert [found.low, found.high] == case["expected"]["good_ratio_bounds"]
    assert found.estimate == pytest.approx(case["expected"]["good_ratio_linear"])
    assert (found.status, found.is_exact) == (Status.OK, False)


def test_a_mean_that_no_server_reaches_is_suspect() -> None:
    case = CASES["ttft-tiny-sum"]
    count, total = case["input"]["count"], case["input"]["sum"]
    assert total / count == pytest.approx(case["expected"]["mean_s"], rel=1e-3)
    assert mean_findings("time_to_first_token_seconds", count, total) == (case["expected"]["data_quality"],)
    point = at(60, start=1, count=str(count), sum=total, explicitBounds=[0.001], bucketCounts=[str(count), "0"])
    (found,) = outcomes(metrics_json(histogram("vllm:time_to_first_token_seconds", point)))
    assert found.measurement is not None
    assert found.measurement.data_quality == (case["expected"]["data_quality"],)


def test_only_streamed_answers_have_a_first_token() -> None:
    case = CASES["ttft-equals-e2e"]
    requests = [
        {
            "is_streaming": span["gen_ai.request.stream"],
            "end_to_end_seconds": span["duration_s"],
            "time_to_first_token_seconds": span["ttft_s"],
        }
        for span in case["input"]["spans"]
    ]
    found = first_token_times(requests)
    assert (found.seconds, dict(found.excluded)) == (case["expected"]["ttft_population"], case["expected"]["excluded"])
    unsaid = [request | {"is_streaming": None, "output_tokens": tokens} for request in requests for tokens in (1, 9)]
    found = first_token_times([*unsaid, {"is_streaming": True}])
    assert (found.seconds, dict(found.excluded)) == ([8.0, 0.4, 0.4], {"equals_end_to_end": 1})


def test_downscaling_an_odd_offset_keeps_both_counts() -> None:
    case = CASES["exphist-odd-offset"]
    given, expected = case["input"], case["expected"]
    found = ExponentialHistogram.of(given["scale"], 0, (given["offset"], [int(n) for n in given["bucketCounts"]]))
    found = found.at_scale(given["scale"] - given["downscale_by"])
    (offset, counts), _ = found.wire()
    assert (found.scale, offset, list(map(str, counts))) == (
        expected["scale"],
        expected["offset"],
        expected["bucketCounts"],
    )
    assert found.count == expected["total"]


def test_merging_into_nothing_changes_nothing() -> None:
    case = CASES["exphist-merge-empty"]
    a, b = (
        ExponentialHistogram.of(
            side["scale"], int(side["zeroCount"]), (side["offset"], [int(count) for count in side["bucketCounts"]])
        )
        for side in (case["input"]["a"], case["input"]["b"])
    )
    for merged in (a.merge(b), b.merge(a)):
        (offset, counts), (_, negative) = merged.wire()
        assert (merged.scale, offset, list(map(str, counts))) == tuple(
            case["expected"][name] for name in ("scale", "offset", "bucketCounts")
        )
        assert merged.count == case["expected"]["count"] == merged.zero_count + sum(counts) + sum(negative)


@pytest.mark.parametrize("case", ["otlp-int-string", "otlp-int-number", "otlp-empty-array", "otlp-null-anyvalue"])
def test_no_attribute_costs_a_point_or_a_record(case: str) -> None:
    pair = CASES[case]["input"]
    point = metrics_json({"name": "g", "gauge": {"dataPoints": [at(5, asInt=1, attributes=[pair])]}})
    table, dead = decode_metrics([point], "otlp_json")
    assert (table.num_rows, dead) == (1, [])
    record = {"timeUnixNano": "5", "attributes": [pair], "body": pair["value"]}
    table, dead = decode_logs([logs_json(record)], "otlp_json")
    assert (table.num_rows, dead) == (1, [])
    text = dict(table.column("labels").to_pylist()[0])[pair["key"]]
    assert orjson.loads(text) == CASES[case]["expected"]["value"]


def test_enum_names_of_metrics() -> None:
    case = CASES["otlp-enum-name"]
    name = case["input"]["aggregationTemporality"]
    message = metrics_json(histogram("h", at(5, count="3"), temporality=name))
    (letter,) = decode_metrics([message], "otlp_json")[1]
    assert case["expected"]["strict"].endswith(letter.reason)
    table, dead = decode_metrics([message], "otlp_json", lenient=True)
    assert (dead, table.column("temporality").to_pylist()) == ([], ["delta"])
    assert list(orjson.loads(table.schema.metadata[b"slacktide.lenient"])) == [case["expected"]["lenient"]["counter"]]


def test_ids_of_log_records() -> None:
    case = CASES["otlp-id-base64-raw"]
    message = logs_json({"timeUnixNano": "5"} | case["input"])
    (letter,) = decode_logs([message], "otlp_json")[1]
    assert letter.reason == Reason.BAD_ID
    (row,) = decode_logs([message], "otlp_json", lenient=True)[0].to_pylist()
    assert {"traceId": row["trace_id"], "spanId": row["span_id"]} | {"counter": "id_base64"} == case["expected"][
        "lenient"
    ]
    case = CASES["otlp-id-hex-case"]
    (row,) = decode_logs([logs_json({"timeUnixNano": "5"} | case["input"])], "otlp_json")[0].to_pylist()
    assert {"traceId": row["trace_id"], "spanId": row["span_id"]} == case["expected"]


def test_empty_envelopes_of_metrics_and_logs() -> None:
    case = CASES["otlp-empty-envelope"]
    for signal, item, decode in (("Metrics", "metrics", decode_metrics), ("Logs", "logRecords", decode_logs)):
        texts = [
            orjson.dumps(envelope).decode().replace("Spans", signal).replace('"spans"', f'"{item}"')
            for envelope in case["input"]
        ]
        table, dead = decode([text.encode() for text in texts], "otlp_json")
        assert (table.num_rows, dead) == (0, [])
    gauge = {"name": "g", "gauge": {"dataPoints": [at(5, asInt=0)]}}
    (row,) = decode_metrics([metrics_json(gauge, service=None)], "otlp_json")[0].to_pylist()
    assert row["service_name"] == case["expected"]["service.name_default"]
    assert (row["value"], row["integer_value"]) == (0.0, 0)  # zero is a value


def test_a_text_that_is_json_stays_a_text() -> None:
    case = CASES["log-nested-json-string"]
    body = {"stringValue": case["input"]}
    (row,) = decode_logs([logs_json({"timeUnixNano": "5", "body": body})], "otlp_json")[0].to_pylist()
    assert (row["body"], row["body_kind"]) == (case["input"], "string")
    fields = body_fields(row["body"])
    assert fields is not None
    assert (fields["msg"], type(fields["msg"])) == (case["expected"]["msg"], str)
    assert body_fields(case["expected"]["msg"]) == case["expected"]["parsed_only_on_request"]
    # As a map, its member is still the text.
    of_map = {"kvlistValue": {"values": [attribute("msg", case["expected"]["msg"])]}}
    (row,) = decode_logs([logs_json({"timeUnixNano": "5", "body": of_map})], "otlp_json")[0].to_pylist()
    assert (body_fields(row["body"]), row["body_kind"]) == ({"msg": case["expected"]["msg"]}, "kvlist")


def logs_json(*records: dict[str, Any]) -> bytes:
    return orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
