"""The one list of a measurement's fields and everything derived from it; golden records; the alias table of metrics."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import schemas.measurements
from schemas.measurements import (
    MEASUREMENT_FIELDS,
    Measurement,
    MeasurementKind,
    arrow_schema,
    flink_columns,
    json_schema,
    measurement_fields,
    spark_ddl,
)
from schemas.metric_names import CANONICAL_METRICS, METRIC_ALIASES, UNIT_FACTORS, canonical_metric
from schemas.requests import REQUEST_FIELDS
from tests.otlp_metrics import at, attribute, counter, gauge, histogram, metrics_json
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.telemetry.measurement_histogram import histogram_fields, histogram_of
from udfs.telemetry.metric_lines import POINT_AT, metric_lines
from udfs.telemetry.metric_points import MetricPoint
from udfs.telemetry.metric_series import SeriesPolicy, SeriesState, step

NAMES = [field.name for field in MEASUREMENT_FIELDS]
VALIDATOR = Draft202012Validator(json_schema())
GOLDEN = Path(__file__).parent.parent / "golden" / "measurements" / "measurements.jsonl"
BEGIN = 1_700_000_000

# A vLLM server's endpoint, scraped twice by the Collector's Prometheus receiver; then an SDK with deltas.
SCRAPED = [
    metrics_json(
        counter("vllm:generation_tokens_total", at(BEGIN + second, BEGIN, asDouble=holds, attributes=VLLM)),
        gauge("vllm:kv_cache_usage_perc", at(BEGIN + second, asDouble=0.25, attributes=VLLM)),
        histogram(
            "vllm:time_to_first_token_seconds",
            at(BEGIN + second, BEGIN, count=str(2 * holds), sum=holds / 4, explicitBounds=[0.1, 0.5], attributes=VLLM,
               bucketCounts=[str(holds), str(holds), "0"]),
        ),
        service="vllm",
    )
    for VLLM in [[attribute("model_name", "m-8b"), attribute("engine", "0")]]
    for second, holds in ((15, 4), (30, 10))
] + [
    metrics_json(
        {
            "name": "gen_ai.client.token.usage",
            "unit": "{token}",
            "exponentialHistogram": {
                "aggregationTemporality": 1,
                "dataPoints": [
                    at(BEGIN + 60, BEGIN, count="3", sum=900, scale=0, positive={"offset": 7, "bucketCounts": ["1", 2]},
                       attributes=[attribute("gen_ai.token.type", "input"), attribute("gen_ai.request.model", "m-8b")])
                ],
            },
        },
        service="gateway",
    )
]  # fmt: skip


def found() -> bytes:
    states: dict[str, SeriesState] = {}
    records = []
    for line in "\n".join(metric_lines(SCRAPED, [-1] * len(SCRAPED), max_skew_ms=0)).splitlines():
        if line[0] == "P":
            point = MetricPoint.from_json(line[POINT_AT:])
            states[point.series_id], outcome = step(states.get(point.series_id, SeriesState()), point, SeriesPolicy())
            records += [] if outcome.measurement is None else [outcome.measurement.to_json() + b"\n"]
    return b"".join(records)


def test_records_as_committed() -> None:
    assert found() == GOLDEN.read_bytes()
    assert len(GOLDEN.read_bytes().splitlines()) == 7


def test_golden_records_keep_the_contract_and_come_back() -> None:
    for line in GOLDEN.read_bytes().splitlines():
        VALIDATOR.validate(orjson.loads(line))
        assert Measurement.from_json(line).to_json() == line


def test_the_committed_json_schema_is_the_derived_one() -> None:
    committed = Path(schemas.measurements.__file__).with_name("measurements.schema.json")
    assert orjson.loads(committed.read_bytes()) == json_schema()
    Draft202012Validator.check_schema(json_schema())


def test_every_derived_schema_has_every_field_in_order() -> None:
    assert arrow_schema().names == NAMES
    assert [line.split("`")[1] for line in flink_columns().splitlines()] == NAMES
    assert [column.split()[0] for column in spark_ddl().replace("STRING, STRING", "STRING,STRING").split(", ")] == NAMES
    with pytest.raises(ValueError, match="no field of a measurement: speed; the fields are measurement_id"):
        measurement_fields(["speed"])


@pytest.mark.parametrize(
    "change",
    [{"kind": "rate"}, {"value": None}, {"value": "NaN"}, {"data_quality": ["odd"]}, {"bounds": [1.0]}, {"more": 1},
     {"kind": "counter_delta"}, {"kind": "histogram_delta"}, {"scale": 3}],
)  # fmt: skip
def test_the_contract_refuses(change: dict[str, object]) -> None:
    found = orjson.loads(Measurement("s", "n", "n", MeasurementKind.GAUGE, "api", {}, 5, value=1.0).to_json())
    VALIDATOR.validate(found)
    assert not VALIDATOR.is_valid(found | change)


def test_what_is_no_measurement_is_refused_and_what_is_new_passed_over() -> None:
    point = Measurement("s", "n", "n", MeasurementKind.GAUGE, "api", {}, 5, value=1.0)
    assert Measurement.from_json(orjson.dumps(orjson.loads(point.to_json()) | {"later": 1})) == point
    for wrong in (b"{}", b"[]", b"7", b"{", b"\xff"):
        with pytest.raises(ValueError, match="no measurement"):
            Measurement.from_json(wrong)
    with pytest.raises(ValueError, match="kind gauge has no histogram"):
        histogram_of(point)


HISTOGRAMS = st.builds(
    lambda counts, total: ExplicitHistogram.of([0.5, 1.0], counts, total),
    st.lists(st.integers(0, 2**60), min_size=3, max_size=3),
    st.none() | st.floats(0, 1e6),
) | st.builds(
    lambda scale, zeros, offset, counts: ExponentialHistogram.of(scale, zeros, (offset, counts), zero_threshold=0.5),
    st.integers(-3, 20),
    st.integers(0, 9),
    st.integers(-900, 900),
    st.lists(st.integers(0, 2**40), max_size=5),
)


@given(HISTOGRAMS)
def test_histograms_travel_unchanged(histogram: ExplicitHistogram | ExponentialHistogram) -> None:
    point = Measurement("s", "n", "n", MeasurementKind.HISTOGRAM_DELTA, "a", {}, 5, 4, **histogram_fields(histogram))
    VALIDATOR.validate(orjson.loads(point.to_json()))
    assert histogram_of(Measurement.from_json(point.to_json())) == histogram


def test_canonical_names_say_their_unit_and_agree_with_requests() -> None:
    for name, metric in CANONICAL_METRICS.items():
        assert (metric.unit == "s") == name.endswith("_seconds")
        assert (metric.unit == "By") == name.endswith("_bytes")
        assert (metric.unit == "1") == name.endswith(("_ratio", "_fragmentation"))
    assert METRIC_ALIASES.keys() <= CANONICAL_METRICS.keys()
    shared = {field.name for field in REQUEST_FIELDS} & CANONICAL_METRICS.keys()
    assert {"time_to_first_token_seconds", "queue_seconds", "input_tokens", "kv_cache_used_ratio"} <= shared
    assert all(1.0 in factors.values() and unit in factors for unit, factors in UNIT_FACTORS.items())


def test_no_spelling_has_two_meanings() -> None:
    seen: dict[tuple[str, object], str] = {}
    for name, aliases in METRIC_ALIASES.items():
        for alias in aliases:
            labels = dict([alias.where]) if alias.where else {}
            assert canonical_metric(alias.name, "", labels).name == name
            assert seen.setdefault((alias.name, alias.where), name) == name


@pytest.mark.parametrize(
    ("source", "unit", "name", "per_unit"),
    [
        ("vllm:time_to_first_token_seconds", "", "time_to_first_token_seconds", 1.0),
        ("vllm_e2e_request_latency_seconds", "s", "end_to_end_seconds", 1.0),
        ("vllm:gpu_cache_usage_perc", "1", "kv_cache_used_ratio", 1.0),
        ("gen_ai_server_request_duration_seconds", "", "end_to_end_seconds", 1.0),
        ("sglang:num_queue_reqs", "", "requests_waiting", 1.0),
        ("vllm:request_success_total", "", "requests_succeeded", 1.0),
        ("kernel_latency_ms", "", "kernel_seconds", 1e3),
        ("kernel_latency_ms", "us", "kernel_seconds", 1e6),
        ("gpu_memory_peak", "MiBy", "gpu_memory_peak_bytes", 2.0**-20),
        ("DCGM_FI_DEV_GPU_UTIL", "", "gpu_used_ratio", 100.0),
        ("hw.gpu.utilization", "1", "gpu_used_ratio", 1.0),
        ("slacktide.gpu_memory_peak_bytes", "By", "gpu_memory_peak_bytes", 1.0),
        ("gen_ai.client.token.usage", "{token}", "gen_ai.client.token.usage", 1.0),  # of neither type
        ("http.server.duration", "ms", "http.server.duration", 1.0),
    ],
)
def test_spellings(source: str, unit: str, name: str, per_unit: float) -> None:
    naming = canonical_metric(source, unit, {})
    assert (naming.name, naming.per_unit) == (name, per_unit)


if __name__ == "__main__":
    GOLDEN.write_bytes(found())
