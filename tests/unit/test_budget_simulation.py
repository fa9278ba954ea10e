"""The simulation under the budget: D as the job has it, onsets counted right, tails against a known law."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstwobign

from udfs.budget.episodes import onsets
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.simulation import DEFAULT_POLICY, Question, SimulationPolicy, simulate
from udfs.budget.sources import Atoms, Autoregressive, Independent, Recorded, Source
from udfs.budget.tail import TailPolicy, fit_tail
from udfs.budget.window_statistics import Layout, bins_of, reference_of, simulated_statistics, slice_sizes
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

COUNTS = np.random.default_rng(3).poisson(3, 1000).astype(float)
SHORT = SimulationPolicy(most_windows=30_000, reference_pairs=20)


@pytest.mark.parametrize(
    "source",
    [
        Independent(),
        Autoregressive(0.9),
        Independent(Atoms.of_points(COUNTS)),
        Autoregressive(0.6, Atoms.of_points(COUNTS)),
        Recorded(COUNTS, 13),
    ],
    ids=lambda source: source.words,
)
@pytest.mark.parametrize("layout", [Layout(50, 50, (7, 8), 20), Layout(500, 40, (10,), 20), Layout(1, 1, (3,), 20)])
def test_d_is_that_of_the_sketches_merged_as_the_job_does(source: Source, layout: Layout) -> None:
    simulated = simulated_statistics(source, layout, (1, 4), np.random.default_rng(5), 3)
    rng = np.random.default_rng(5)
    edges = np.append(0, np.cumsum(layout.sizes()))
    for stream in range(3):
        points = reference_of(source, layout, rng)
        values = source.draw(rng, int(edges[-1]))
        reference = RankReference.from_values(points)
        slices = [RankSketch.from_values(values[a:b], reference).to_bytes() for a, b in pairwise(edges)]
        for k in (1, 4):
            ours = [RankSketch.merge_all(slices[t : t + k], reference).statistic() for t in range(20 - k + 1)]
            assert simulated[k][stream] == pytest.approx(ours, abs=1e-14)
        assert simulated[4][stream][0] == pytest.approx(ks_2samp(points, values[: edges[4]]).statistic, abs=1e-14)


def test_large_counts_do_not_wrap() -> None:
    layout = Layout(40_000, 40_000, (30_000,), 3)
    found = simulated_statistics(Independent(), layout, (1,), np.random.default_rng(1), 1)[1]
    rng = np.random.default_rng(1)
    points, values = reference_of(Independent(), layout, rng), rng.random(90_000)
    assert found[0] == pytest.approx([ks_2samp(points, v).statistic for v in values.reshape(3, -1)], abs=1e-12)


def test_bins_without_a_search_are_those_of_a_search() -> None:
    rng = np.random.default_rng(8)
    points = np.unique(np.concatenate([rng.normal(size=300), rng.integers(-3, 4, 20)]))
    values = np.concatenate([rng.normal(size=5000) * 3, points, np.nextafter(points, 9), [-np.inf, np.inf]])
    assert (bins_of(values, points, is_tied=False) == points.searchsorted(values)).all()
    two_sided = points.searchsorted(values, "left") + points.searchsorted(values, "right")
    assert (bins_of(values, points, is_tied=True) == two_sided).all()
    for constant in (np.array([2.0]), np.array([-np.inf, 2.0]), np.array([0.0, 5e-324])):
        assert (bins_of(values, constant, is_tied=False) == constant.searchsorted(values)).all()


@pytest.mark.parametrize(("n", "overlap"), [(10, 4), (1000, 7), (5, 5), (3, 1)])
def test_every_run_of_slices_is_a_window(n: int, overlap: int) -> None:
    sizes = np.resize(np.array(slice_sizes(n, overlap)), 5 * overlap)
    assert {int(sizes[t : t + overlap].sum()) for t in range(4 * overlap)} == {n}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("quiet", [1, 2, 5, 10])
def test_every_level_has_the_onsets_of_judging_at_it(quiet: int) -> None:
    rng = np.random.default_rng(quiet)
    statistics = rng.integers(0, 30, (7, 80)) / 30
    curve = OnsetCurve.of(statistics, quiet=quiet, step=1 / 30)
    levels = (np.arange(30) + 0.5) / 30
    expected = []
    for level in levels:
        counted = 0
        for stream in statistics:
            drifted = stream > level
            # What happened before the windows that count is known to the curve as their past.
            counted += sum(1 for t in range(quiet, 80) if drifted[t] and not drifted[t - quiet : t].any())
        expected.append(counted)
    assert curve.counts(levels)[0].tolist() == expected
    assert [curve.rate(level) * curve.windows for level in levels] == pytest.approx(expected)
    by_group = curve.group_counts(levels, 3)
    assert by_group[0].sum(axis=0).tolist() == expected
    assert by_group[1].sum(axis=0).tolist() == curve.counts(levels)[1].tolist()


def test_onsets_are_those_of_episodes() -> None:
    statistics = np.random.default_rng(2).random((1, 500))
    curve = OnsetCurve.of(np.concatenate([np.zeros((1, 4)), statistics], axis=1), quiet=4, step=1e-9)
    for level in (0.5, 0.8, 0.95):
        begun = onsets((statistics[0] > level).tolist(), quiet=4)
        assert curve.rate(level) * curve.windows == pytest.approx(len(begun))


def test_a_level_of_a_rate_is_the_smallest_that_keeps_it() -> None:
    curve = OnsetCurve.of(np.random.default_rng(2).integers(0, 200, (20, 500)) / 200, quiet=3, step=1 / 200)
    level = curve.level_of(0.01)
    above = np.arange(level, 1.0, 1 / 200)
    assert all(curve.rate(float(one)) <= 0.01 for one in above)
    assert curve.rate(level - 1 / 200) > 0.01


def test_a_stream_needs_more_than_its_past() -> None:
    with pytest.raises(ValueError, match="too short"):
        OnsetCurve.of(np.zeros((2, 5)), quiet=5, step=0.1)


def test_without_overlap_and_with_a_known_reference_the_tail_is_kolmogorovs() -> None:
    # Windows are independent but for their reference, which hardly errs: the onset rate is p (1 - p).
    n = 200
    policy = SimulationPolicy(most_windows=150_000, slides=2000, reference_pairs=2)
    levels = simulate(Question(100_000, 997, n, 1, Independent()), policy)
    for rate, allowed in ((1e-3, 0.12), (1e-4, 0.25), (1e-5, 0.5), (1e-6, 0.9)):
        level, error = levels.level_of(rate) or (math.nan, math.nan)
        # Kolmogorov's limit with its first correction for finite n (Vrbik 2018), and half a step of the reference.
        scaled = (level - 0.0005) * math.sqrt(n) + 1 / (6 * math.sqrt(n))
        p = kstwobign.sf(scaled)
        assert p == pytest.approx(rate, rel=allowed), rate
        assert error < allowed


def test_the_fitted_tail_meets_a_longer_simulation() -> None:
    question = Question(1000, 997, 200, 5, Autoregressive(0.6))
    short = simulate(question, SimulationPolicy(most_windows=60_000, seed=1, reference_pairs=2))
    layout = Layout(1000, 997, slice_sizes(200, 5), 240)
    longer = simulated_statistics(question.source, layout, (5,), np.random.default_rng(2), 2000)[5]
    curve = OnsetCurve.of(longer, quiet=5, step=1 / 199_400)
    for rate in (1e-3, 2e-4):
        level, error = short.level_of(rate) or (math.nan, math.nan)
        assert short.counted_to > rate
        onset_error = 1.5 / math.sqrt(rate * curve.windows)
        assert curve.rate(level) == pytest.approx(rate, rel=3 * math.hypot(error, onset_error))


def test_a_tail_of_exact_form_is_found_again() -> None:
    # Peaks of exactly d exp(-d^2) above a floor, each in a window of its own.
    rng = np.random.default_rng(4)
    x = np.linspace(1.0, 12.0, 200_001)
    surviving = np.sqrt(x) * np.exp(-4.0 * (x - 1.0))
    peaks = np.sqrt(np.interp(rng.random(8000), surviving[::-1], x[::-1]))
    statistics = np.zeros((40, 20_000))
    for stream in range(40):
        statistics[stream, rng.choice(19_000, 200, replace=False) + 500] = peaks[stream::40]
    fitted = fit_tail(OnsetCurve.of(statistics, quiet=1, step=1e-9), TailPolicy(begin_rate=8e-3))
    assert fitted is not None
    for rate in (1e-4, 1e-6, 1e-8):
        level = fitted.tail.level_of(rate)
        true = 0.01 * level * math.exp(-4.0 * (level**2 - 1.0))
        assert true == pytest.approx(rate, rel=0.35)
        assert abs(math.log(true / rate)) < 3 * fitted.relative_error(level)


def test_no_tail_is_made_up_where_nothing_rises() -> None:
    assert fit_tail(OnsetCurve.of(np.zeros((4, 50)), quiet=2, step=0.1), TailPolicy()) is None


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    question = Question(500, 500, 100, 2, Autoregressive(0.5))
    policy = SimulationPolicy(most_windows=20_000, reference_pairs=2)
    one, again = simulate(question, policy), simulate(question, policy)
    assert one == again
    assert one != simulate(question, SimulationPolicy(most_windows=20_000, seed=7, reference_pairs=2))


def test_ties_only_lower_the_threshold() -> None:
    tied = simulate(Question(2000, 1000, 200, 5, Independent(Atoms.of_points(COUNTS))), SHORT)
    smooth = simulate(Question(2000, 997, 200, 5, Independent()), SHORT)
    for rate in (1e-2, 1e-3, 1e-4):
        assert (tied.level_of(rate) or (9.0, 0))[0] < (smooth.level_of(rate) or (0.0, 0))[0]


def test_a_recorded_series_without_order_is_independent() -> None:
    values = np.random.default_rng(1).random(20_000)
    recorded = simulate(Question(500, 497, 100, 5, Recorded(values, 20)), SHORT)
    drawn = simulate(Question(500, 497, 100, 5, Independent()), SHORT)
    assert (recorded.level_of(1e-3) or (0, 0))[0] == pytest.approx((drawn.level_of(1e-3) or (1, 0))[0], rel=0.04)


@pytest.mark.parametrize("n", [100, 1000, 30_000, 1_000_000])
@pytest.mark.parametrize("n_reference", [1000, 100_000])
def test_work_is_bounded(n: int, n_reference: int) -> None:
    question = Question(n_reference, 1000, n, 10, Independent())
    windows = DEFAULT_POLICY.windows(question)
    references = windows / DEFAULT_POLICY.windows_a_stream(10) + 2 * DEFAULT_POLICY.reference_pairs
    values = windows * n / 10 + references * n_reference
    assert values * 30e-9 < 100
    assert DEFAULT_POLICY.fewest_windows <= windows <= DEFAULT_POLICY.most_windows


def test_a_usual_question_gets_all_windows() -> None:
    assert DEFAULT_POLICY.windows(Question(10_000, 1000, 1000, 10, Independent())) == DEFAULT_POLICY.most_windows


@pytest.mark.parametrize("wrong", [{"n": 4}, {"n_reference": 0}, {"test": "psi"}])
def test_an_impossible_question_is_refused(wrong: dict[str, object]) -> None:
    right = {"n_reference": 100, "n_points": 100, "n": 50, "overlap": 5, "source": Independent()}
    with pytest.raises(ValueError, match="threshold"):
        Question(**(right | wrong))  # type: ignore[arg-type]


def test_sources_refuse_what_they_can_not_be() -> None:
    with pytest.raises(ValueError, match="coefficient"):
        Autoregressive(1.0)
    with pytest.raises(ValueError, match="two values"):
        Recorded(np.zeros(1), 1)
    with pytest.raises(ValueError, match="block length"):
        Recorded(np.zeros(9), 10)


def test_ties_have_the_shares_of_the_reference() -> None:
    values = Autoregressive(0.5, Atoms.of_points([0.0, 0.0, 0.0, 1.0, 2.0])).draw(np.random.default_rng(1), 50_000)
    _, times = np.unique(values, return_counts=True)
    assert times.max() / values.size == pytest.approx(0.6, abs=0.01)
    assert np.sort(times)[-2] == 1
