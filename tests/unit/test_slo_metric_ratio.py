"""Counters and histograms as service levels, against counts by hand; scores of judges that don't qualify."""

from typing import Any

import numpy as np
import pytest

from udfs.judging.window_judge import Input, InputKind
from udfs.slo.conditions import NumberIs, TextIs
from udfs.slo.indicators import Indicator, Ratio, Tally, tallies
from udfs.slo.metric_ratio import MetricRatio

NAN = np.nan


def tally_of(indicator: Indicator, *records: dict[str, Any]) -> Tally:
    columns = []
    for given in indicator.inputs:
        found = [record.get(given.field) for record in records]
        if given.kind is InputKind.NUMBER:
            columns.append(np.array([NAN if value is None else value for value in found], dtype=float))
        elif given.kind is InputKind.VECTOR:
            columns.append([None if value is None else np.array(value, dtype=float) for value in found])
        else:
            columns.append(found)
    return tallies([indicator], indicator.inputs, columns)[0]


def explicit(bounds: list[float], counts: list[float], **more: Any) -> dict[str, Any]:
    histogram = {"name": "ttft", "kind": "histogram_delta", "bounds": bounds, "bucket_counts": counts}
    return histogram | {"count": float(sum(counts)), "sum": 1.0} | more


def named(name: str) -> tuple[TextIs, ...]:
    return (TextIs("name", (name,)),)


UNDER = MetricRatio(named("ttft"), named("ttft"), at_most=0.8)


def test_two_counters() -> None:
    ratio = MetricRatio(named("all"), named("failed"), part_is_good=False)
    points = [{"name": "all", "kind": "counter_delta", "value": 70.0}] * 2
    points += [
        {"name": "failed", "kind": "counter_delta", "value": 3.0},
        {"name": "all", "kind": "gauge", "value": 9.0},
    ]
    assert tally_of(ratio, *points) == Tally(137, 140, n_null=1)


@pytest.mark.parametrize("value", [1e300, -1e300, np.inf, -np.inf, 1.1e12])
def test_a_count_that_no_server_reaches_is_none(value: float) -> None:
    ratio = MetricRatio(named("all"), named("failed"), part_is_good=False)
    points = [{"name": "all", "kind": "counter_delta", "value": number} for number in (value, 5.0)]
    found = tally_of(ratio, *points)
    assert found == Tally(5, 5, n_null=1)
    assert Tally.from_bytes(found.to_bytes()) == found
    assert tally_of(UNDER, explicit([0.8], [value, 1.0])).total == 0


def test_more_good_than_all_comes_back_as_it_is() -> None:
    ratio = MetricRatio(named("all"), named("good"))
    found = tally_of(ratio, {"name": "all", "kind": "counter_delta", "value": 5.0},
                     {"name": "good", "kind": "counter_delta", "value": 6.0})  # fmt: skip
    assert (found.good, found.total) == (6, 5)


@pytest.mark.parametrize(
    ("bounds", "good"),
    [([0.4, 0.8, 1.6], 30), ([0.4, 0.8000000001, 1.6], 30), ([0.4, 0.9, 1.6], 10), ([0.1, 0.2, 0.3], 60)],
)
def test_explicit_buckets_count_what_is_surely_below(bounds: list[float], good: int) -> None:
    assert tally_of(UNDER, explicit(bounds, [10.0, 20.0, 30.0, 40.0])) == Tally(good, 100)


def test_exponential_buckets() -> None:
    point = {"name": "ttft", "kind": "histogram_delta", "count": 16.0, "sum": 5.0, "scale": 0.0, "zero_count": 1.0,
             "positive_offset": -3.0, "positive_counts": [1.0, 2.0, 4.0, 8.0]}  # fmt: skip
    # Buckets end at 2^-2, 2^-1, 2^0, 2^1: at most 0.8 is sure of the first two, and of the zeros.
    assert tally_of(UNDER, point) == Tally(4, 16)
    assert tally_of(MetricRatio(named("ttft"), named("ttft"), at_most=1.0), point) == Tally(8, 16)
    negative = point | {"negative_counts": [5.0], "count": 21.0}
    assert tally_of(UNDER, negative) == Tally(9, 21)
    assert tally_of(MetricRatio(named("ttft"), named("ttft"), at_most=-1.0), negative) == Tally(0, 21)


def test_all_zero_and_bucketless_histograms_count_for_nothing() -> None:
    zero = explicit([0.4, 0.8], [50.0, 0.0, 0.0], sum=0.0)
    assert tally_of(UNDER, zero) == Tally(0, 0, n_null=1)
    bucketless = {"name": "ttft", "kind": "histogram_delta", "count": 7.0, "sum": 1.0}
    found = tally_of(UNDER, bucketless, explicit([0.8], [3.0, 1.0]))
    assert (found.good, found.total, found.n_null) == (3, 4, 1)


def test_histogram_without_a_limit_counts_its_observations() -> None:
    ratio = MetricRatio(named("all"), named("failed"), part_is_good=False)
    histogram = explicit([1.0], [90.0, 10.0]) | {"name": "all"}
    assert tally_of(ratio, histogram, {"name": "failed", "kind": "counter_delta", "value": 2.0}) == Tally(98, 100)


def test_scores_of_unqualified_judges_are_no_numbers() -> None:
    bad = NumberIs("value", "lt", 0.85)
    ratio = Ratio((TextIs("score", ("factuality",)),), (bad,), part_is_good=False, judge_f1="judge.f1")
    rows = [(0.9, 0.95), (0.2, 0.92), (0.9, 0.9199), (0.1, None), (None, 0.95)]
    records = [{"score": "factuality", "value": value, "judge.f1": f1} for value, f1 in rows]
    assert tally_of(ratio, *records, {"score": "other", "value": 0.1}) == Tally(1, 2, n_null=1, n_unqualified=2)
    assert Input("judge.f1", InputKind.NUMBER) in ratio.inputs
