"""Whatever stands in a record, no indicator raises, and no verdict holds a figure that is none: a job never stops."""

import json
import math
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.status import Status
from tests.slo_files import ERRORS, START_MS, TTFT, TTFT_WINDOW, slo
from udfs.slicing.body import decoder
from udfs.slicing.fields import column, field_of
from udfs.slo.conditions import NumberIs, TextIs, WithinAdaptiveLatency
from udfs.slo.indicators import Ratio, Tally, Throughput, tallies
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.metric_ratio import MetricRatio
from udfs.slo.slo import Slo, WindowRule
from udfs.slo.step import SloSeries

NAMED = (TextIs("name", ("m",)),)
FAR = WindowRule(0.5, "above", 60_000, 60_000, is_point=True)
SLOS = [
    slo("errors", indicator=ERRORS),
    slo("scored", indicator=Ratio((), (NumberIs("value", "lt", 0.5),), judge_f1="judge.f1", chance="sampling_rate")),
    slo("adaptive", indicator=Ratio((), (WithinAdaptiveLatency(),))),
    slo("ttft", indicator=TTFT, window=TTFT_WINDOW),
    slo("throughput", indicator=Throughput(), window=FAR),
    slo("counted", indicator=MetricRatio(NAMED, NAMED, at_most=0.8)),
    slo("pair", indicator=MetricRatio(NAMED, (TextIs("name", ("n",)),), part_is_good=False)),
    slo("quantile", indicator=MetricQuantile(NAMED, 0.9), window=FAR),
]
INPUTS = tuple(dict.fromkeys(given for of in SLOS for given in of.indicator.inputs))

edges = [0, 1, -1, 0.3, 1e12, 2**53, 2**63, 2**64, 1e300, -1e300, 1.7e308, 1e-320, "Infinity", "-Infinity", "NaN"]
numbers = st.sampled_from(edges) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 100)
values = numbers | st.none() | st.booleans() | st.sampled_from(["m", "n", "true", "", "x\x00,=\"'\n", "\u2028"])
lists = st.lists(numbers, max_size=4) | st.lists(values, max_size=3)
names = sorted({field_of(given.field) for given in INPUTS})
KINDS = ["counter_delta", "histogram_delta", "gauge", "kind", None]
bodies = st.fixed_dictionaries(
    {"name": st.sampled_from(["m", "m", "n"]), "kind": st.sampled_from(KINDS)},
    optional={
        name: values | lists | st.dictionaries(st.sampled_from(["f1", "", "a"]), values, max_size=2)
        for name in names
        if name not in ("name", "kind", "event_time_ms")
    },
)


def finite(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def through(of: Slo, slices: list[list[bytes]]) -> list[dict[str, Any]]:
    """What an SLO says of these records, by the way of the job: taken apart, tallied, packed, stepped."""
    decode, series = decoder(tuple(names)).decode, SloSeries(of, ("m1",), 30_000)
    state, said = None, []
    for number, slice_ in enumerate(slices):
        found = [decode(body) for body in slice_]
        columns = [column(found, given) for given in INPUTS]
        (tally,) = tallies([of.indicator], INPUTS, columns)
        state, verdicts = series.step(state, START_MS + 30_000 * (number + 1), Tally.from_bytes(tally.to_bytes()))
        said += verdicts
    return [orjson.loads(verdict.to_json()) for verdict in said]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(bodies, min_size=1, max_size=4), min_size=2, max_size=4))
def test_no_record_stops_a_service_level(slices: list[list[dict[str, Any]]]) -> None:
    records = [[json.dumps({"event_time_ms": START_MS} | body).encode() for body in of] for of in slices]
    for of in SLOS:
        for body in through(of, records):
            assert finite(body)
            assert (body["status"] == Status.OK) == (body["statistic"] is not None) == (body["drifted"] is not None)


def test_bounds_without_counts_say_nothing() -> None:
    """Two bounds and one count: the law above came upon it."""
    point = {"name": "m", "kind": "counter_delta", "value": 0, "bucket_counts": [0], "bounds": [0, 0]}
    slices = [[json.dumps({"event_time_ms": START_MS} | body).encode()] for body in ({"name": "n"}, point)]
    for of in SLOS:
        assert all(map(finite, through(of, slices)))
