"""What becomes of single points: first reports, start times, kinds, changed layouts, the cap of series."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.books import MetricKind
from schemas.dead_letters import Reason
from schemas.measurements import DataQuality, Measurement, MeasurementKind
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.telemetry.measurement_histogram import histogram_of
from udfs.telemetry.metric_family import Family, FamilyPolicy, take
from udfs.telemetry.metric_points import CUMULATIVE, DELTA, MetricPoint, MetricType
from udfs.telemetry.metric_series import NS_PER_SECOND, Outcome, Report, SeriesPolicy, SeriesState, step
from udfs.telemetry.metric_series_bytes import decode, encode
from udfs.telemetry.seen_points import SeenPoints

GOLDEN = Path(__file__).parents[1] / "golden" / "measurements"
BEGIN = 1_700_000_000
POINT = MetricPoint(
    "s", "c", "c", MetricType.SUM, "api", {}, BEGIN * NS_PER_SECOND, temporality=CUMULATIVE, is_monotonic=True, value=0
)


def point(second: float, start: float | None = None, **figures: Any) -> MetricPoint:
    begun = 0 if start is None else round((BEGIN + start) * NS_PER_SECOND)
    return replace(POINT, time_ns=round((BEGIN + second) * NS_PER_SECOND), start_ns=begun, **figures)


def buckets(second: float, counts: tuple[int, ...], bounds: tuple[float, ...], **figures: Any) -> MetricPoint:
    figures = {"sum": float(sum(counts))} | figures
    kind = {"type": MetricType.HISTOGRAM, "value": None, "count": sum(counts), "is_monotonic": False}
    return point(second, bounds=bounds, bucket_counts=counts, **kind | figures)


def exponential(second: float, scale: int, offset: int, counts: tuple[int, ...], **figures: Any) -> MetricPoint:
    count = sum(counts) + figures.get("zero_count", 0)
    return point(
        second, type=MetricType.EXPONENTIAL_HISTOGRAM, value=None, count=count, scale=scale, positive=(offset, counts),
        **figures,
    )  # fmt: skip


def run(*points: MetricPoint, policy: SeriesPolicy | None = None) -> list[Outcome]:
    state, found = SeriesState(), []
    for each in points:
        state, outcome = step(state, each, policy or SeriesPolicy())
        found.append(outcome)
    return found


def last(*points: MetricPoint) -> Measurement:
    found = run(*points)[-1].measurement
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("age", "counts"), [(599.0, True), (600.0, False), (86_400.0, False), (0.0, False), (None, False)]
)
def test_a_first_report_counts_from_zero_only_if_its_start_is_young(age: float | None, counts: bool) -> None:
    """An age of 0 is how OpenTelemetry says that the start is not known: then the value is where the counter stands."""
    (found,) = run(point(0, None if age is None else -age, value=7))
    if counts:
        assert found.measurement is not None
        assert (found.measurement.value, found.measurement.data_quality) == (7, ())
        assert found.measurement.start_time_ms == (BEGIN - 599) * 1000
    else:
        assert found == Outcome(MetricKind.BASELINE)


def test_the_age_is_configuration() -> None:
    (found,) = run(point(0, -30, value=7), policy=SeriesPolicy(young_seconds=10))
    assert found.kind is MetricKind.BASELINE


@pytest.mark.parametrize(
    ("start", "holds", "added", "flags"),
    [
        (0, 12, 2, ()),  # the same start
        (0, 4, 4, ("reset",)),  # less than before: began anew whatever its start says
        (70, 4, 4, ("reset",)),
        (70, 12, 12, ("reset",)),  # started after the last report: all of it is new
        (60, 12, 12, ("reset",)),  # exactly then
        (59.9, 12, 2, ()),  # a start that wavers with each scrape is no restart
        (-5, 12, 2, ()),
        (None, 12, 2, ()),
        (120, 12, 2, ()),  # start = time: a restarted collector that doesn't know when the counter began
        (120, 4, 4, ("reset",)),
    ],
)
def test_start_times(start: float | None, holds: int, added: int, flags: tuple[str, ...]) -> None:
    found = last(point(60, 0, value=10), point(120, start, value=holds))
    assert (found.value, found.data_quality) == (added, flags)
    known = start is not None and 60 <= start < 120
    assert found.start_time_ms == (BEGIN + (start if known else 60)) * 1000


def test_a_float_counter_and_a_large_one_stay_exact() -> None:
    assert last(point(1, value=0.25), point(2, value=1.0)).value == 0.75
    assert last(point(1, value=2**62), point(2, value=2**62 + 3)).value == 3


def test_gauges_and_levels_come_as_they_are_in_any_order() -> None:
    gauges = [point(second, type=MetricType.GAUGE, is_monotonic=False, value=-second) for second in (30, 10, 20)]
    levels = [replace(gauge, type=MetricType.SUM, temporality=CUMULATIVE) for gauge in gauges]
    for points in (gauges, levels):
        found = [outcome.measurement for outcome in run(*points)]
        assert [(m.kind, m.value, m.start_time_ms) for m in found if m] == [
            (MeasurementKind.GAUGE, -second, None) for second in (30, 10, 20)
        ]


def test_a_delta_without_a_start_begins_where_it_ends() -> None:
    found = last(point(5, value=3, temporality=DELTA))
    assert (found.value, found.start_time_ms, found.event_time_ms) == (3, (BEGIN + 5) * 1000, (BEGIN + 5) * 1000)


def test_copies_conflicts_and_late_points_are_told_apart() -> None:
    policy = SeriesPolicy(remember_seconds=100, remember_points=3)
    points = [point(second, value=1, temporality=DELTA) for second in (0, 50, 50, 10, 200, 120, 100, 99)]
    points.append(point(200, value=2, temporality=DELTA))
    found = run(*points, policy=policy)
    assert [str(outcome.kind) for outcome in found] == [
        "measurements", "measurements", "duplicate", "measurements", "measurements", "measurements", "measurements",
        "late", "dead",
    ]  # fmt: skip
    assert [outcome.reason for outcome in found[-2:]] == [Reason.LATE, Reason.CONFLICT]


def test_no_recorded_value_is_counted_and_changes_nothing() -> None:
    found = run(point(1, value=5), point(2, value=None, has_no_value=True), point(3, value=7))
    assert [str(outcome.kind) for outcome in found] == ["baseline", "empty", "measurements"]
    assert found[-1].measurement is not None
    assert found[-1].measurement.value == 2


def test_a_changed_layout_is_compared_on_the_bounds_of_both() -> None:
    found = last(buckets(60, (5, 3, 2), (1.0, 2.5)), buckets(120, (6, 1, 4, 2), (1.0, 2.0, 2.5)))
    assert (found.bounds, found.bucket_counts, found.count) == ((1.0, 2.5), (1, 2, 0), 3)
    assert found.data_quality == (DataQuality.LAYOUT_CHANGED,)
    strange = last(buckets(60, (5, 3), (1.0,)), buckets(120, (6, 4), (7.0,)))
    assert (strange.bounds, strange.bucket_counts, strange.count) == ((), (2,), 2)
    assert strange.data_quality == (DataQuality.LAYOUT_CHANGED, DataQuality.NO_BUCKETS)


def test_any_bucket_that_falls_is_a_reset() -> None:
    found = last(buckets(60, (5, 3), (1.0,)), buckets(120, (4, 40), (1.0,)))
    assert (found.bucket_counts, found.data_quality) == ((4, 40), (DataQuality.RESET,))


def test_smallest_and_largest_are_given_only_for_the_time_they_are_of() -> None:
    edges = {"min": 0.5, "max": 0.75}
    delta = last(replace(buckets(60, (1, 0), (1.0,), **edges), temporality=DELTA))
    assert (delta.min, delta.max) == (0.5, 0.75)
    cumulative = last(buckets(60, (1, 0), (1.0,), **edges), buckets(120, (2, 0), (1.0,), **edges))
    assert (cumulative.min, cumulative.max) == (None, None)


def test_a_histogram_without_buckets_or_a_sum_keeps_its_count() -> None:
    found = last(replace(buckets(60, (), (), temporality=DELTA), count=4, sum=None))
    assert (found.count, found.sum, found.bounds, found.bucket_counts) == (4, None, (), (4,))
    assert found.data_quality == (DataQuality.NO_BUCKETS,)
    summary = replace(buckets(60, (), ()), type=MetricType.SUMMARY, bounds=None, bucket_counts=None)
    found = last(replace(summary, count=4), replace(summary, time_ns=summary.time_ns + 1, count=9, sum=2.0))
    assert (found.count, found.sum) == (5, 2.0)


def test_exponential_histograms_are_subtracted_at_the_coarser_scale() -> None:
    found = last(exponential(60, 1, 1, (1, 1)), exponential(120, 0, 0, (3, 2), zero_count=1))
    assert (found.scale, found.zero_count, found.positive_offset, found.positive_counts) == (0, 1, 0, (2, 1))
    assert histogram_of(found).count == found.count == 4
    fallen = last(exponential(60, 1, 1, (1, 1)), exponential(120, 1, 1, (0, 9)))
    assert (fallen.positive_counts, fallen.data_quality) == ((9,), (DataQuality.RESET,))


def test_all_zero_first_token_times_are_suspect() -> None:
    zero = buckets(60, (5, 0), (1.0,), sum=0.0, temporality=DELTA, name="time_to_first_token_seconds")
    assert last(zero).data_quality == (DataQuality.SUSPECT_ALL_ZERO,)


def test_a_counter_that_turns_into_a_histogram_begins_anew() -> None:
    found = last(point(60, value=10), buckets(120, (5, 3), (1.0,)))
    assert (found.count, found.data_quality) == (8, (DataQuality.RESET,))


class DictStore(dict[str, bytes]):
    """A store as Flink's map is one."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


def test_series_beyond_the_cap_are_said_and_cost_no_memory() -> None:
    store, family, policy = DictStore(), Family(), FamilyPolicy(most_series=3, forget_seconds=3600)
    found = []
    for number in range(5):
        family, outcome = take(store, family, point(number, value=1, series_id=str(number)), policy)
        found.append(outcome.reason)
    assert found == [None, None, None, Reason.SERIES_OVERFLOW, Reason.SERIES_OVERFLOW]
    assert (len(store), family.n_series) == (3, 3)
    # Those that live go on; once the others were silent for long enough there is room again.
    family, outcome = take(store, family, point(3000, value=4, series_id="0"), policy)
    assert outcome.measurement is not None
    assert outcome.measurement.value == 3
    family, outcome = take(store, family, point(4000, value=1, series_id="new"), policy)
    assert (outcome.kind, sorted(store), family.n_series) == (MetricKind.BASELINE, ["0", "new"], 2)


STATES = {
    "counter": SeriesState(SeenPoints(((20, 10, 7), (30, 10, 8)), 5), Report(30, 10, 2**62)),
    "float": SeriesState(SeenPoints(((20, 0, 7),)), Report(20, 0, 0.5)),
    "explicit": SeriesState(SeenPoints(), Report(20, 0, ExplicitHistogram((1.0, 2.5), (1, 2, 3), 6.5))),
    "exponential": SeriesState(
        SeenPoints(), Report(20, 0, ExponentialHistogram(2, 1, 0.5, ((-3, 1), (4, 2)), ((0, 1),), None))
    ),
    "gauge": SeriesState(SeenPoints(((20, 0, 7),), 3)),
}


@pytest.mark.parametrize("name", STATES)
def test_states_written_by_version_1_are_read(name: str) -> None:
    written = dict(line.split() for line in (GOLDEN / "series_state_v1.hex").read_text().splitlines())
    assert decode(bytes.fromhex(written[name])) == STATES[name]
    assert encode(STATES[name]).hex() == written[name]


def test_bytes_of_another_version_stop_the_job() -> None:
    data = encode(STATES["counter"])
    for wrong in (b"\x02" + data[1:], data[:-1], b""):
        with pytest.raises(ValueError, match="not MTR bytes"):
            decode(wrong)
