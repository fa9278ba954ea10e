"""What holds for every sequence of reports of one counter."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from schemas.books import MetricKind
from schemas.measurements import Measurement, MeasurementKind
from udfs.telemetry.measurement_histogram import histogram_of
from udfs.telemetry.metric_points import CUMULATIVE, DELTA, MetricPoint, MetricType
from udfs.telemetry.metric_series import NS_PER_SECOND, Outcome, SeriesPolicy, SeriesState, step
from udfs.telemetry.metric_series_bytes import decode, encode

POLICY = SeriesPolicy()
STEP_NS = 15 * NS_PER_SECOND
BEGIN_NS = 1_700_000_000 * NS_PER_SECOND


def report(number: int, holds: float, start_ns: int = 0, temporality: int = CUMULATIVE) -> MetricPoint:
    return MetricPoint(
        "s", "c", "c", MetricType.SUM, "api", {}, BEGIN_NS + number * STEP_NS, start_ns,
        temporality=temporality, is_monotonic=True, value=holds,
    )  # fmt: skip


def observed(number: int, bounds: tuple[float, ...], counts: list[int], start_ns: int = 0) -> MetricPoint:
    return MetricPoint(
        "s", "h", "h", MetricType.HISTOGRAM, "api", {}, BEGIN_NS + number * STEP_NS, start_ns,
        temporality=CUMULATIVE, count=sum(counts), sum=float(sum(counts)), bounds=bounds, bucket_counts=tuple(counts),
    )  # fmt: skip


def run(points: list[MetricPoint], state: SeriesState | None = None) -> tuple[SeriesState, list[Outcome]]:
    state = state or SeriesState()
    found = []
    for point in points:
        state, outcome = step(state, point, POLICY)
        found.append(outcome)
        assert decode(encode(state)) == state
    return state, found


def measured(outcomes: list[Outcome]) -> list[Measurement]:
    return [outcome.measurement for outcome in outcomes if outcome.measurement is not None]


LIVES = st.lists(st.lists(st.integers(0, 2**60), min_size=1, max_size=6), min_size=1, max_size=4)


def lives_of(increments: list[list[int]]) -> list[MetricPoint]:
    """Return the reports of a counter that lived several times, each life with a start time of its own."""
    points: list[MetricPoint] = []
    for life in increments:
        start_ns = BEGIN_NS + len(points) * STEP_NS
        total = 0
        for added in life:
            total += added
            points.append(report(len(points) + 1, total, start_ns))
    return points


@given(st.lists(st.integers(0, 2**60), min_size=1, max_size=20))
def test_without_resets_deltas_add_up_to_the_last_value(increments: list[int]) -> None:
    points = lives_of([increments])
    _, outcomes = run(points)
    assert sum(m.value for m in measured(outcomes)) == points[-1].value == sum(increments)


@given(LIVES)
def test_with_known_starts_nothing_is_lost_through_any_restarts(increments: list[list[int]]) -> None:
    _, outcomes = run(lives_of(increments))
    assert sum(m.value for m in measured(outcomes)) == sum(map(sum, increments))
    assert all(m.value >= 0 and m.kind == MeasurementKind.COUNTER_DELTA for m in measured(outcomes))


@given(LIVES, st.lists(st.integers(1, 3), min_size=24, max_size=24), st.data())
def test_copies_and_replays_change_nothing(
    increments: list[list[int]], repeats: list[int], data: st.DataObject
) -> None:
    points = lives_of(increments)
    state, once = run(points)
    _, twice = run([point for point, times in zip(points, repeats, strict=False) for _ in range(times)])
    assert measured(twice) == measured(once)
    assert sum(o.kind is MetricKind.DUPLICATE for o in twice) == len(twice) - len(once)
    again, replayed = run(points[: data.draw(st.integers(0, len(points)))], state)
    assert (again, measured(replayed)) == (state, [])


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20), st.randoms())
def test_out_of_order_a_cumulative_counter_never_counts_twice(increments: list[int], random: Random) -> None:
    points = lives_of([increments])
    shuffled = random.sample(points, len(points))
    _, outcomes = run(shuffled)
    newest = max(points, key=lambda point: point.time_ns)
    assert sum(m.value for m in measured(outcomes)) == newest.value
    kinds = {MetricKind.MEASUREMENTS, MetricKind.LATE}
    assert {outcome.kind for outcome in outcomes} <= kinds


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.randoms())
def test_deltas_add_up_in_any_order(added: list[int], random: Random) -> None:
    points = [report(n + 1, value, BEGIN_NS + n * STEP_NS, DELTA) for n, value in enumerate(added)]
    _, outcomes = run(random.sample(points, len(points)))
    assert sum(m.value for m in measured(outcomes)) == sum(added)


LAYOUTS = st.sampled_from([(1.0, 2.5, 5.0), (1.0, 5.0), (1.0, 2.0, 5.0, 10.0), ()])
SAMPLES = st.lists(st.sampled_from([0.5, 1.5, 2.2, 4.0, 7.0, 20.0]), max_size=5)


@given(st.lists(st.tuples(LAYOUTS, SAMPLES), min_size=1, max_size=8))
def test_layouts_may_change_and_no_observation_is_lost(rounds: list[tuple[tuple[float, ...], list[float]]]) -> None:
    points, seen = [], []
    for number, (bounds, sample) in enumerate(rounds):
        seen += sample
        counts = [0] * (len(bounds) + 1)
        for value in seen:
            counts[sum(bound < value for bound in bounds)] += 1
        points.append(observed(number + 1, bounds, counts, BEGIN_NS))
    _, outcomes = run(points)
    assert sum(m.count for m in measured(outcomes)) == len(seen)
    for (_, sample), outcome in zip(rounds, outcomes, strict=True):
        assert outcome.measurement is not None
        histogram = histogram_of(outcome.measurement)
        for place, bound in enumerate(histogram.bounds):
            assert sum(histogram.counts[: place + 1]) == sum(value <= bound for value in sample)


@given(st.lists(st.integers(0, 10**6), max_size=300))
def test_what_is_remembered_is_bounded(numbers: list[int]) -> None:
    state, outcomes = run([report(n, 1.0, temporality=DELTA) for n in numbers])
    assert len(state.seen.points) <= POLICY.remember_points
    assert len(encode(state)) < 1500
    taken = [o for o in outcomes if o.kind is MetricKind.MEASUREMENTS]
    assert len(taken) <= len(set(numbers))
