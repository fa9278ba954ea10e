"""decode_metrics: both encodings alike, hostile messages, canonical names."""

from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from tests.otlp_metrics import as_proto, at, attribute, counter, histogram, metrics_json
from udfs.telemetry.otlp import decode_metrics
from udfs.telemetry.otlp_metrics import METRIC_SCHEMA

EXPONENTIAL = {
    "name": "vllm:e2e_request_latency_seconds",
    "unit": "s",
    "exponentialHistogram": {
        "aggregationTemporality": 1,
        "dataPoints": [
            at(
                9,
                start=8,
                count="7",
                sum=3.5,
                min=0.25,
                max=2.0,
                scale=3,
                zeroCount="1",
                zeroThreshold=0.001,
                positive={"offset": -4, "bucketCounts": ["1", "0", "4"]},
                negative={"offset": 2, "bucketCounts": ["1"]},
            )
        ],
    },
}
EVERY_KIND = metrics_json(
    {"name": "vllm:num_requests_running", "gauge": {"dataPoints": [at(5, asDouble=3.5), at(6, asInt="-2")]}},
    counter(
        "vllm:prompt_tokens_total", at(5, start=1, asInt=str(2**62 + 1), attributes=[attribute("model_name", "m")])
    ),
    {"name": "level", "sum": {"aggregationTemporality": 2, "dataPoints": [at(5, asDouble=-1.5)]}},
    histogram(
        "gen_ai.server.request.duration",
        at(7, start=2, count="5", sum=1.5, min=0.1, max=0.9, explicitBounds=[0.1, 1.0], bucketCounts=["1", "4", "0"]),
    ),
    EXPONENTIAL,
    {"name": "old", "summary": {"dataPoints": [at(7, count="5", sum=1.5, quantileValues=[{"quantile": 0.5}])]}},
    {"name": "gone", "gauge": {"dataPoints": [at(8, flags=1)]}},
    {"name": "of a kind still unknown", "newHistogram": {"dataPoints": [at(8)]}},
    service="chat",
    **{"host.name": "h"},
)


def rows(message: bytes, encoding: str = "otlp_json", **options: Any) -> list[dict[str, Any]]:
    table, dead = decode_metrics([message], encoding, **options)
    assert dead == []
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def reasons(message: bytes, encoding: str = "otlp_json", **options: Any) -> list[str]:
    table, dead = decode_metrics([message], encoding, **options)
    assert table.num_rows == 0
    return [str(letter.reason) for letter in dead]


def test_every_kind_reads_alike_in_both_encodings() -> None:
    known = orjson.loads(EVERY_KIND)
    del known["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][-1]  # Google's JSON reader refuses unknown members
    in_json, in_proto = rows(EVERY_KIND), rows(as_proto(orjson.dumps(known)), "otlp_proto")
    assert in_json == in_proto
    assert [row["type"] for row in in_json] == [
        "gauge", "gauge", "sum", "sum", "histogram", "exponential_histogram", "summary", "gauge",
    ]  # fmt: skip
    running, below, tokens, level, duration, latency, old, gone = in_json
    assert (running["name"], running["value"], running["integer_value"]) == ("requests_running", 3.5, None)
    assert (below["value"], below["integer_value"]) == (-2.0, -2)
    assert (tokens["name"], tokens["integer_value"], tokens["model"]) == ("input_tokens", 2**62 + 1, "m")
    assert dict(tokens["labels"]) == {"model_name": "m", "host.name": "h"}
    assert (level["value"], level["is_monotonic"], level["temporality"]) == (-1.5, False, "cumulative")
    assert (duration["bounds"], duration["bucket_counts"], duration["sum"]) == ([0.1, 1.0], [1, 4, 0], 1.5)
    assert (latency["positive_offset"], latency["positive_counts"], latency["negative_counts"]) == (-4, [1, 0, 4], [1])
    assert (old["count"], old["sum"], gone["has_no_value"]) == (5, 1.5, True)
    assert {row["service_name"] for row in in_json} == {"chat"}
    assert len({row["series_id"] for row in in_json}) == 7


def test_the_schema_is_the_same_without_rows() -> None:
    assert decode_metrics([], "otlp_proto")[0].schema.equals(METRIC_SCHEMA)
    assert isinstance(decode_metrics([EVERY_KIND], "otlp_json")[0], pa.Table)


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown encoding 'avro'"):
        decode_metrics([b""], "avro")


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (counter("c", at(5, asInt="5"), temporality=0), Reason.TEMPORALITY_UNSPECIFIED),
        (histogram("h", at(5, count="5"), temporality=0), Reason.TEMPORALITY_UNSPECIFIED),
        (counter("c", {"asInt": "5"}), Reason.BAD_TIME),
        (counter("c", at(5, start=6, asInt="5")), Reason.BAD_TIME),
        (counter("c", at(5, asInt="-5")), Reason.BAD_VALUE),
        (counter("c", at(5)), Reason.BAD_VALUE),
        (counter("c", at(5, asDouble="NaN")), Reason.BAD_VALUE),
        ({"name": "g", "gauge": {"dataPoints": [at(5, asDouble="-Infinity")]}}, Reason.BAD_VALUE),
        (
            {"name": "d", "sum": {"aggregationTemporality": 1, "dataPoints": [at(5, asInt="1")]}},
            Reason.UNSUPPORTED_METRIC,
        ),
        (histogram("h", at(5, count="3", explicitBounds=[1], bucketCounts=["1", "1"])), Reason.INVALID_HISTOGRAM),
        (histogram("h", at(5, count="2", explicitBounds=[1], bucketCounts=["2"])), Reason.INVALID_HISTOGRAM),
        (
            histogram("h", at(5, count="2", explicitBounds=[2, 1], bucketCounts=["2", "0", "0"])),
            Reason.INVALID_HISTOGRAM,
        ),
        (
            histogram("h", at(5, count="2", explicitBounds=["NaN"], bucketCounts=["2", "0"])),
            Reason.INVALID_HISTOGRAM,
        ),
        (
            histogram("h", at(5, count="0", explicitBounds=list(range(2000)), bucketCounts=["0"] * 2001)),
            Reason.INVALID_HISTOGRAM,
        ),
        (
            {
                "name": "e",
                "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [at(5, count="1", scale=-40)]},
            },
            Reason.INVALID_HISTOGRAM,
        ),
    ],
)
def test_what_can_not_be_used_is_one_dead_letter_in_both_encodings(metric: dict[str, Any], reason: Reason) -> None:
    message = metrics_json(metric)
    assert reasons(message) == reasons(as_proto(message), "otlp_proto") == [reason]
    (letter,) = decode_metrics([message], "otlp_json")[1]
    assert orjson.loads(letter.payload)["name"] == metric["name"]


@pytest.mark.parametrize(
    "metric",
    [
        7,
        {"name": 7, "gauge": {}},
        {"name": "g", "gauge": 7},
        {"name": "g", "gauge": {"dataPoints": 7}},
        {"name": "g", "gauge": {}, "sum": {}},
        {"name": "g", "gauge": {"dataPoints": [7]}},
        {"name": "g", "gauge": {"dataPoints": [at(5, attributes={})]}},
        {"name": "g", "gauge": {"dataPoints": [at(5, attributes=[7])]}},
        {"name": "g", "gauge": {"dataPoints": [at(5, attributes=[{"key": 7}])]}},
        {"name": "g", "gauge": {"dataPoints": [at(5, flags="x")]}},
        {"name": "g", "sum": {"isMonotonic": "yes", "aggregationTemporality": 2, "dataPoints": [at(5)]}},
        {"name": "g", "sum": {"aggregationTemporality": [], "isMonotonic": 1, "dataPoints": [at(5)]}},
    ],
)
def test_a_wrong_shape_costs_only_itself(metric: Any) -> None:
    good = {"name": "ok", "gauge": {"dataPoints": [at(5, asInt=1)]}}
    table, (letter,) = decode_metrics([metrics_json(good, metric, good)], "otlp_json")
    assert (table.num_rows, letter.reason, letter.span_index) == (2, Reason.MALFORMED_JSON, 1)
    assert table.column("point_index").to_pylist() == [0, 2]


@pytest.mark.parametrize("figure", ["count", "sum", "scale", "zeroCount", "positive"])
def test_a_figure_that_is_no_number_is_named(figure: str) -> None:
    point = at(5, count="0") | {figure: {"offset": "x"} if figure == "positive" else "x"}
    metric = {"name": "e", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [point]}}
    ((letter),) = decode_metrics([metrics_json(metric)], "otlp_json")[1]
    assert letter.reason in (Reason.BAD_VALUE, Reason.INVALID_HISTOGRAM)


@pytest.mark.parametrize(
    "body",
    [{"resourceMetrics": []}, {"resourceMetrics": None}, {}, {"resourceMetrics": [None]},
     {"resourceMetrics": [{"resource": {}, "scopeMetrics": []}]}, {"resourceMetrics": [{"scopeMetrics": [None]}]},
     {"resourceMetrics": [{"scopeMetrics": [{"metrics": None}]}]},
     {"resourceMetrics": [{"scopeMetrics": [{"metrics": [None, {"name": "x"}, {"name": "y", "gauge": None}]}]}]},
     {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"gauge": {"dataPoints": [None]}}]}]}]}],
)  # fmt: skip
def test_empty_envelopes_hold_no_points(body: dict[str, Any]) -> None:
    assert rows(orjson.dumps(body)) == []


def test_garbage_is_dead_and_empty_messages_are_empty() -> None:
    for encoding, reason in (("otlp_json", Reason.MALFORMED_JSON), ("otlp_proto", Reason.MALFORMED_PROTO)):
        table, (letter,) = decode_metrics([b"", b"\xff\xfe garbage"], encoding)
        assert (table.num_rows, letter.reason, letter.message_index) == (0, reason, 1)
        assert (letter.span_index, letter.payload) == (WHOLE_MESSAGE, b"\xff\xfe garbage")
    # Groups nested deeper than any parser's stack.
    assert reasons(b"\x0b" * 300_000, "otlp_proto") == [Reason.MALFORMED_PROTO]


def test_strict_refuses_what_lenient_counts() -> None:
    named = histogram("h", at(5, count="3"), temporality="AGGREGATION_TEMPORALITY_DELTA")
    assert reasons(metrics_json(named)) == [Reason.ENUM_NAME]
    table, dead = decode_metrics([metrics_json(named)], "otlp_json", lenient=True)
    assert (dead, table.column("temporality").to_pylist()) == ([], ["delta"])
    assert orjson.loads(table.schema.metadata[b"slacktide.lenient"]) == {"enum_name": 1}
    unknown = histogram("h", at(5, count="3"), temporality="AGGREGATION_TEMPORALITY_SOMETIMES")
    assert reasons(metrics_json(unknown), lenient=True) == [Reason.ENUM_NAME]


def test_figures_come_in_the_canonical_unit() -> None:
    of_name = histogram("kernel_latency_ms", at(5, count="1", sum=20, explicitBounds=[50], bucketCounts=["1", "0"]))
    of_unit = histogram("gen_ai.server.request.duration", at(5, count="1", sum=20, min=20, max=20)) | {"unit": "ms"}
    used = {"name": "DCGM_FI_DEV_FB_USED", "gauge": {"dataPoints": [at(5, asInt="2")]}}
    kernel, request, memory = rows(metrics_json(of_name, of_unit, used))
    assert (kernel["name"], kernel["unit"], kernel["sum"], kernel["bounds"]) == ("kernel_seconds", "s", 0.02, [0.05])
    assert (request["name"], request["sum"], request["min"]) == ("end_to_end_seconds", 0.02, 0.02)
    assert (memory["name"], memory["value"], memory["unit"]) == ("gpu_memory_used_bytes", 2.0 * 2**20, "By")
    # Powers of two never fall on powers of a thousand: such buckets keep name and unit.
    (kept,) = rows(metrics_json(EXPONENTIAL | {"unit": "ms"}))
    assert (kept["name"], kept["unit"]) == ("vllm:e2e_request_latency_seconds", "ms")
    assert kept["data_quality"] == ["unit_kept"]


def test_sums_that_are_not_finite_are_none_and_cost_no_count() -> None:
    point = at(5, count="2", sum="NaN", min="-Infinity", max="Infinity", explicitBounds=[1], bucketCounts=["2", "0"])
    scaled = at(5, count="2", sum=1e308, max=1e308)
    memory = histogram("gpu_memory_peak", scaled) | {"unit": "GiBy"}
    for row in rows(metrics_json(histogram("h", point), memory)):
        assert (row["count"], row["sum"], row["min"], row["max"]) == (2, None, None, None)


def test_series_are_told_apart_by_all_that_makes_a_counter() -> None:
    def series(message: bytes) -> str:
        return str(rows(message)[0]["series_id"])

    base = at(5, asInt=1, attributes=[attribute("a", "1,b=2")])
    other = at(5, asInt=1, attributes=[attribute("a", "1"), attribute("b", "2")])
    turned = at(5, asInt=1, attributes=[attribute("b", "2"), attribute("a", "1")])
    found = [
        series(metrics_json(counter("c", base))),
        series(metrics_json(counter("c", other))),
        series(metrics_json(counter("d", base))),
        series(metrics_json(counter("c", base, temporality=1))),
        series(metrics_json(counter("c", base), service="other")),
        series(metrics_json(counter("c", base), **{"service.instance.id": "2"})),
        series(metrics_json(counter("c", at(5, asInt=1)), a="1,b=2")),
    ]
    assert len(set(found)) == len(found)
    assert series(metrics_json(counter("c", turned))) == series(metrics_json(counter("c", other)))


def test_more_labels_than_a_record_may_carry_are_cut_and_it_is_said() -> None:
    point = at(5, asInt=1, attributes=[attribute(f"a{n}", "x") for n in range(70)])
    (row,) = rows(metrics_json(counter("c", point)))
    assert (len(row["labels"]), row["data_quality"]) == (64, ["labels_cut"])


MEMBERS = [
    "resourceMetrics",
    "scopeMetrics",
    "metrics",
    "resource",
    "attributes",
    "key",
    "value",
    "stringValue",
    "name",
    "gauge",
    "sum",
    "histogram",
    "summary",
    "exponentialHistogram",
    "dataPoints",
    "timeUnixNano",
    "asInt",
    "asDouble",
    "count",
    "bucketCounts",
    "explicitBounds",
    "positive",
    "offset",
    "scale",
    "flags",
    "aggregationTemporality",
    "isMonotonic",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.sampled_from(["", "5", "NaN", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=60)
@given(st.lists(JSON, max_size=3), st.binary(max_size=60), st.booleans())
def test_whatever_comes_nothing_raises_and_nothing_is_lost(metrics: list[Any], noise: bytes, lenient: bool) -> None:
    message = orjson.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]})
    for encoding in ("otlp_json", "otlp_proto"):
        table, dead = decode_metrics([message, noise], encoding, lenient=lenient)
        places = [
            *zip(table.column("message_index").to_pylist(), table.column("point_index").to_pylist(), strict=True),
            *((letter.message_index, letter.span_index) for letter in dead),
        ]
        assert len(places) == len(set(places))
