"""Quantiles of merged metric histograms as service levels, against Prometheus' rule by hand; never a made-up number."""

import math
from typing import Any

import numpy as np
import pytest

from schemas.status import Status
from schemas.verdicts import Verdict
from tests.slo_files import about, run, slo
from tests.unit.test_slo_metric_ratio import explicit, named, tally_of
from udfs.slo.indicators import NOTHING, Tally
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.slo import WindowRule

P50, P90, P99 = (MetricQuantile(named("ttft"), q) for q in (0.5, 0.9, 0.99))
ABOVE = WindowRule(0.8, "above", 60_000, 60_000, is_point=True, equal_breaches=True)
NAN = np.nan


def exponential(scale: float, offset: float, counts: list[float], zeros: float = 0.0, **more: Any) -> dict[str, Any]:
    point = {"name": "ttft", "kind": "histogram_delta", "scale": scale, "zero_count": zeros, "sum": 1.0}
    return point | {"positive_offset": offset, "positive_counts": counts, "count": zeros + sum(counts)} | more


def window(indicator: MetricQuantile, *slices: Tally, rule: WindowRule = ABOVE) -> Verdict:
    """The verdict on a window of two slices."""
    _, verdicts = run(slo(indicator=indicator, window=rule), slices)
    return about(verdicts, "sli")[0]


def figure(indicator: MetricQuantile, *points: dict[str, Any]) -> Verdict:
    return window(indicator, tally_of(indicator, *points), NOTHING)


def test_quantiles_within_buckets_as_prometheus_has_them() -> None:
    point = explicit([0.5, 1.0, 2.0], [50.0, 40.0, 10.0, 0.0])
    # Rank 50 is the end of the first bucket; rank 90 that of the second; rank 99 nine tenths of the third.
    for indicator, expected in ((P50, 0.5), (P90, 1.0), (P99, 1.9)):
        verdict = figure(indicator, point)
        assert (verdict.status, verdict.n_window, verdict.method) == (Status.OK, 100, "histogram")
        assert verdict.statistic == pytest.approx(expected)
        assert verdict.drifted is (expected >= 0.8)
        assert verdict.test == indicator.name


def test_series_slices_and_exponential_scales_are_merged() -> None:
    one, other = explicit([1.0, 2.0], [10.0, 0.0, 0.0]), explicit([1.0, 2.0], [0.0, 10.0, 0.0])
    merged = window(P50, tally_of(P50, one, other), tally_of(P50, other))
    assert merged.statistic == pytest.approx(1.0 + 1 / 4)  # rank 15 of 10 and 20
    # Scale 1 has buckets (1, sqrt 2] and (sqrt 2, 2], which are one at scale 0.
    fine, coarse = exponential(1, 0, [5.0, 5.0]), exponential(0, 0, [10.0])
    merged = window(P50, tally_of(P50, fine), tally_of(P50, coarse))
    assert merged.statistic == pytest.approx(math.sqrt(2.0))


def test_a_layout_that_changes_costs_resolution_and_never_a_count() -> None:
    before, after = explicit([0.4, 0.8, 1.6], [10.0] * 4), explicit([0.8, 1.6, 3.2], [20.0, 10.0, 5.0, 5.0])
    verdict = window(P50, tally_of(P50, before), tally_of(P50, after))
    assert (verdict.status, verdict.n_window) == (Status.OK, 80)
    assert verdict.statistic == pytest.approx(0.8)  # 40 of 80 are at most 0.8, a bound that both have
    apart = window(P50, tally_of(P50, before), tally_of(P50, explicit([0.3, 3.0], [1.0, 1.0, 1.0])))
    assert (apart.status, apart.statistic, apart.drifted) == (Status.INCONCLUSIVE, None, None)
    assert apart.evidence["flags"] == ["no_common_bounds"]


def test_both_sorts_in_one_window_are_inconclusive() -> None:
    verdict = window(P50, tally_of(P50, explicit([1.0], [5.0, 5.0])), tally_of(P50, exponential(0, 0, [10.0])))
    assert (verdict.status, verdict.evidence["flags"], verdict.n_window) == (
        Status.INCONCLUSIVE,
        ["mixed_histograms"],
        20,
    )
    # Of one that is empty nothing is mixed in.
    empty = exponential(0, 0, [0.0], count=0.0, sum=0.0)
    assert window(P50, tally_of(P50, explicit([1.0], [5.0, 0.0]), empty), NOTHING).statistic == 0.5


@pytest.mark.parametrize(
    ("last_bound", "limit", "status", "drifted"),
    [
        (2.0, 0.8, Status.OK, True),  # beyond 2.0 is beyond 0.8, whatever it is
        (2.0, 2.0, Status.OK, True),
        (2.0, 2.5, Status.INCONCLUSIVE, None),  # 2.1, or 100?
    ],
)
def test_a_quantile_beyond_the_last_bound_is_a_breach_or_nothing(
    last_bound: float, limit: float, status: Status, drifted: bool | None
) -> None:
    for equal_breaches in (False, True):
        rule = WindowRule(limit, "above", 60_000, 60_000, is_point=True, equal_breaches=equal_breaches)
        tally = tally_of(P90, explicit([1.0, last_bound], [50.0, 10.0, 40.0]))
        verdict = window(P90, tally, NOTHING, rule=rule)
        assert (verdict.status, verdict.drifted) == (status, drifted)
        assert verdict.statistic == (last_bound if drifted else None)
        assert verdict.evidence["flags"] == ["censored"]
        assert (verdict.evidence["edge"], verdict.evidence["quantile_is"]) == (last_bound, "above the edge")


def test_a_quantile_beyond_the_last_bound_is_never_a_pass() -> None:
    """Where the figure must be above a limit, one in the last bucket may well be; the edge is not what it is."""
    below = WindowRule(0.8, "below", 60_000, 60_000, is_point=True)
    verdict = window(P90, tally_of(P90, explicit([1.0], [50.0, 50.0])), NOTHING, rule=below)
    assert (verdict.status, verdict.statistic) == (Status.INCONCLUSIVE, None)
    # The first bucket has no beginning where its bound is not positive.
    negative = tally_of(P50, explicit([-1.0, 1.0], [90.0, 5.0, 5.0]))
    verdict = window(P50, negative, NOTHING, rule=below)
    assert (verdict.status, verdict.statistic, verdict.drifted) == (Status.OK, -1.0, True)
    assert verdict.evidence["quantile_is"] == "below the edge"
    assert window(P50, negative, NOTHING).status == Status.INCONCLUSIVE


def test_only_what_lies_beyond_all_bounds_is_in_the_last_bucket_of_none() -> None:
    verdict = figure(P50, explicit([], [7.0]))
    assert (verdict.status, verdict.n_window) == (Status.INCONCLUSIVE, 7)


def test_a_stopped_clock_is_a_finding_and_never_a_fast_service() -> None:
    stopped = explicit([0.5, 1.0], [100.0, 0.0, 0.0], sum=0.0)
    verdict = figure(P90, stopped)
    assert (verdict.status, verdict.statistic, verdict.evidence["flags"]) == (Status.INVALID, None, ["all_zero"])
    one_pod = figure(P90, stopped, explicit([0.5, 1.0], [0.0, 10.0, 0.0]))
    assert (one_pod.status, one_pod.statistic, one_pod.n_window) == (Status.OK, pytest.approx(0.95), 10)


@pytest.mark.parametrize(
    "point",
    [
        {"name": "ttft", "kind": "gauge", "value": 0.1},
        {"name": "ttft", "kind": "counter_delta", "value": 5.0},
        explicit([1.0, 0.5], [1.0, 1.0, 1.0]),
        explicit([0.5, 1.0], [1.0, 1.0]),
        explicit([0.5, NAN], [1.0, 1.0, 1.0]),
        explicit([0.5, math.inf], [1.0, 1.0, 1.0]),
        explicit([0.5], [-1.0, 2.0]),
        explicit([0.5], [NAN, 2.0]),
        explicit([0.5], [math.inf, 2.0]),
        exponential(-40, 0, [1.0]),
        exponential(math.inf, 0, [1.0]),
        exponential(0, math.nan, [-1.0]),
        exponential(0, 0, [1.0], zeros=-1.0),
        exponential(0, math.inf, [1.0]),
        exponential(-3, 1e300, [1.0]),
        exponential(0, 0, [1e300]),
        explicit([0.5], [1e13, 0.0]),
        {"name": "ttft", "kind": "histogram_delta"},
        {"name": "ttft", "kind": "histogram_delta", "count": math.inf, "sum": NAN},
    ],
)
def test_what_is_no_histogram_is_unknown(point: dict[str, Any]) -> None:
    good = explicit([0.5, 1.0], [10.0, 0.0, 0.0])
    tally = tally_of(P50, point, good)
    assert (tally.total, tally.n_null) == (10, 1)
    assert window(P50, tally, NOTHING).statistic == 0.25
    alone = tally_of(P50, point)
    assert (alone.total, alone.n_null) == (0, 1)
    assert window(P50, alone, NOTHING).status == Status.NO_DATA


def test_few_observations_are_insufficient_and_windows_are_the_budgets_events() -> None:
    rule = WindowRule(0.8, "above", 60_000, 60_000, min_events=11, is_point=True)
    assert window(P50, tally_of(P50, explicit([1.0], [10.0, 0.0])), NOTHING, rule=rule).status == "insufficient_data"
    fast, slow = (tally_of(P50, explicit([0.5, 1.0, 2.0], counts)) for counts in ([9.0, 0, 0, 0], [0, 0, 9.0, 0]))
    _, verdicts = run(slo(indicator=P50, window=ABOVE, burn_rules=()), [fast, NOTHING, slow, NOTHING] * 5)
    budget = about(verdicts, "budget")[-1]
    assert (budget.evidence["good"], budget.evidence["total"]) == (5, 10)
