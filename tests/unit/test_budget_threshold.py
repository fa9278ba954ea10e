"""Thresholds: what is promised, when the promise is withdrawn, where the answer comes from."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from udfs.budget.cache import AnswerCache
from udfs.budget.onset_levels import RATES, OnsetLevels
from udfs.budget.shipped import FILE, GRID, entries_of, file_of, shipped_entries, source_of
from udfs.budget.simulation import DEFAULT_POLICY, Question, SimulationPolicy, simulate_overlaps
from udfs.budget.sources import Atoms, Autoregressive, Independent, Recorded
from udfs.budget.threshold import Threshold, ThresholdCurve, source_for, threshold_curve, threshold_for
from udfs.statistics.judgement import is_drifted
from udfs.statistics.ks import METHODS, Method, ks_from_statistic

QUICK = SimulationPolicy(most_windows=20_000, reference_pairs=20)
QUESTION = Question(2000, 1000, 200, 2, Independent())


def curve(**changes: object) -> ThresholdCurve:
    asked = {
        "n_reference": 10_000, "n_points": 1000, "n": 600, "overlap": 10, "source": Independent(), "rate": 1e-3
    }  # fmt: skip
    return threshold_curve(**(asked | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [100, 200, 197])
def test_alpha_and_critical_statistic_say_the_same_of_every_possible_d(method: Method, n: int) -> None:
    cache = AnswerCache(None, replace(QUICK, most_windows=5000, fewest_windows=5000))
    found = threshold_for(Question(1000, 1000, n, 1, Independent()), 1e-3, method=method, cache=cache)
    step = 1 / np.lcm(1000, n)
    nearest = round(found.critical_statistic / step)
    for steps in range(nearest - 3, nearest + 4):
        try:
            result = ks_from_statistic(float(steps * step), 1000, n, method=method)
        except ValueError:  # no two samples of these sizes have this D
            continue
        says = is_drifted(result, alpha=found.alpha_effective, min_effect=found.min_effect)
        assert says == (steps * step > found.critical_statistic), steps - nearest


def test_a_kept_promise_says_all_it_rests_on() -> None:
    found = curve().at(600)
    assert found.kept
    assert found.reason == ""
    assert 0.5e-3 < found.onset_rate <= found.budget_rate == 1e-3
    assert (found.n_reference, found.n, found.overlap) == (10_000, 600, 10)
    assert (found.values, found.origin) == ("independent values", "shipped")
    assert (found.seed, found.tail_fitted) == (DEFAULT_POLICY.seed, True)
    assert found.simulated_windows >= GRID.windows
    assert 0.0 < found.relative_error < 0.1
    # kstwo.isf at 10,000 against 600: 0.0681 of one window in a hundred, 0.0816 of one in a thousand. An onset is rarer
    # than a drifted window, of which an episode has several.
    assert 0.0681 < found.critical_statistic < 0.0816


def test_a_rarer_budget_and_a_stronger_dependence_need_more() -> None:
    levels = [curve(rate=rate).at(600).critical_statistic for rate in (1e-2, 1e-3, 1e-5, 1e-7, 1e-12)]
    assert levels == sorted(levels)
    assert len(set(levels)) == len(levels)
    dependent = curve(source=Autoregressive(0.6)).at(600)
    assert dependent.critical_statistic > 1.5 * curve().at(600).critical_statistic
    assert dependent.values == "an AR(1) series of coefficient 0.6"


@pytest.mark.parametrize(
    ("changes", "n", "says"),
    [
        ({"n": 2000}, 2000, "stands for 10000 values, fewer than 10 times the 2000 of a window"),
        ({"order_known": False}, 600, "nothing is known of how successive values depend on each other"),
        ({}, 20, "windows of 20 values lie outside of what was simulated, 50 to 5000"),
        ({"rate": 1e-12}, 600, "lies too far in the tail"),
        ({"source": Autoregressive(0.9), "n": 50}, 50, "no D of 50 values is rare enough"),
    ],
)
def test_a_promise_that_can_not_be_kept_is_withdrawn(changes: dict[str, object], n: int, says: str) -> None:
    rate = {"rate": 1e-9} if "source" in changes else {}
    found = curve(**(changes | rate)).at(n)
    assert not found.kept
    assert says in found.reason
    assert all(np.isfinite([found.alpha_effective, found.critical_statistic, found.onset_rate, found.relative_error]))


def test_a_record_of_few_blocks_can_not_carry_a_promise() -> None:
    values = np.random.default_rng(1).random(20_000)
    cache = AnswerCache(None, replace(QUICK, most_windows=5000, fewest_windows=5000))
    found = {
        length: threshold_for(Question(2000, 1000, 200, 2, Recorded(values, length)), 1e-3, cache=cache)
        for length in (10, 500)
    }
    assert found[10].kept
    # ln(1000) = 6.9 times the error of a variance from 40 blocks, sqrt(2 / 40) = 0.22.
    assert found[500].relative_error > 6.9 * 0.22
    assert "blocks of 500 of 20000 recorded values) holds too few blocks" in found[500].reason


def test_a_minimum_effect_can_stand_in_for_a_large_reference() -> None:
    without = curve(n=2000).at(2000)
    assert f"set min_effect to {without.safe_effect:.3g}" in without.reason
    assert without.safe_effect > without.critical_statistic
    covered = curve(n=2000, min_effect=without.safe_effect).at(2000)
    assert covered.kept
    assert covered.critical_statistic == without.safe_effect
    assert covered.onset_rate < 0.1 * without.onset_rate
    too_small = curve(n=2000, min_effect=without.critical_statistic).at(2000)
    assert not too_small.kept


@pytest.mark.parametrize(("rate", "overlap"), [(0.011, 1), (0.0051, 20), (0.0, 1), (-1.0, 1), (float("nan"), 1)])
def test_a_budget_that_is_not_rare_is_refused(rate: float, overlap: int) -> None:
    with pytest.raises(ValueError, match="is not rare"):
        curve(rate=rate, overlap=overlap)


def test_an_answer_is_kept_and_found_again(tmp_path: Path) -> None:
    first, second = AnswerCache(tmp_path / "new", QUICK), AnswerCache(tmp_path / "new", QUICK)
    simulated, cached = threshold_for(QUESTION, 1e-3, cache=first), threshold_for(QUESTION, 1e-3, cache=second)
    assert (simulated.origin, cached.origin) == ("simulated", "cached")
    assert replace(simulated, origin="") == replace(cached, origin="")
    # Another budget of the same windows costs nothing more.
    assert threshold_for(QUESTION, 1e-5, cache=second).origin == "cached"
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".json"]
    assert not first.notes + second.notes


@pytest.mark.parametrize("damage", ["cut", "changed", "no json", "a list"])
def test_a_damaged_file_is_simulated_again_and_said(tmp_path: Path, damage: str) -> None:
    cache = AnswerCache(tmp_path, QUICK)
    levels, _ = cache.answer(QUESTION)
    path = cache.path_of(QUESTION)
    assert path is not None
    whole = path.read_bytes()
    changed = orjson.loads(whole)
    changed["levels"]["levels"][3] *= 0.9
    path.write_bytes(
        {"cut": whole[:50], "changed": orjson.dumps(changed), "no json": b"\xff", "a list": b"[1]"}[damage]
    )
    assert cache.answer(QUESTION) == (levels, "simulated")
    assert "it is simulated again" in cache.notes[0]
    assert path.read_bytes() == whole


def test_a_folder_that_can_not_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = AnswerCache(tmp_path / "file" / "folder", QUICK)
    assert cache.answer(QUESTION)[1] == "simulated"
    assert any("can't be written" in note for note in cache.notes)


def test_a_cache_file_is_named_by_all_that_matters(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, QUICK)
    others = [
        replace(QUESTION, n=201),
        replace(QUESTION, overlap=4),
        replace(QUESTION, n_reference=2001),
        replace(QUESTION, source=Autoregressive(0.5)),
        replace(QUESTION, source=Independent(Atoms.of_points([1.0, 1.0, 2.0]))),
    ]
    names = {cache.path_of(question) for question in (QUESTION, *others)}
    names.add(AnswerCache(tmp_path, replace(QUICK, seed=1)).path_of(QUESTION))
    assert len(names) == 7


def test_the_shipped_file_holds_the_grid() -> None:
    found = {(e.n_reference, e.coefficient, e.overlap, e.n) for e in shipped_entries()}
    expected = {
        (m, coefficient, k, k * size)
        for m in GRID.n_references
        for coefficient in GRID.coefficients
        for size in GRID.slice_sizes
        for k in GRID.overlaps_of(size)
    }
    assert found == expected
    assert file_of(list(shipped_entries()), GRID, DEFAULT_POLICY) == FILE.read_bytes()


def test_a_shipped_entry_is_simulated_to_the_same_bits() -> None:
    size, m = 10, GRID.n_references[0]
    again = simulate_overlaps(
        source_of(0.0),
        n_reference=m,
        n_points=GRID.n_points,
        sizes=(size,),
        overlaps=GRID.overlaps_of(size),
        policy=DEFAULT_POLICY,
        windows=GRID.windows,
    )
    for entry in shipped_entries():
        if (entry.n_reference, entry.coefficient, entry.n) == (m, 0.0, entry.overlap * size):
            assert entry.levels == OnsetLevels.from_json(again[entry.overlap].to_json())


def test_shipped_levels_of_another_version_are_refused() -> None:
    data = FILE.read_bytes().replace(b'"version":1', b'"version":0')
    with pytest.raises(ValueError, match="another version"):
        entries_of(data)


@pytest.mark.parametrize(("n", "overlap", "coefficient"), [(310, 10, 0.0), (70, 1, 0.6), (140, 2, 0.9)])
def test_between_two_shipped_n_the_threshold_is_that_of_a_simulation(n: int, overlap: int, coefficient: float) -> None:
    source = source_of(coefficient)
    between = curve(n=n, overlap=overlap, source=source).at(n)
    assert between.origin == "shipped"
    cache = AnswerCache(None, replace(QUICK, most_windows=80_000))
    there = threshold_for(Question(10_000, 997, n, overlap, source), 1e-3, cache=cache)
    assert between.critical_statistic == pytest.approx(there.critical_statistic, rel=0.03)


def test_a_larger_reference_uses_the_next_smaller_shipped_one() -> None:
    found = curve(n_reference=50_000)
    assert (found.m, found.n_reference, found.at(600).kept) == (10_000, 50_000, True)
    small = [
        threshold_curve(n_reference=m, n_points=1000, n=100, overlap=10, source=Independent(), rate=1e-3)
        for m in (1500, 10_000)
    ]
    assert small[0].m < 2000
    assert small[0].at(100).critical_statistic > small[1].at(100).critical_statistic


def test_what_is_not_shipped_is_simulated_around_n(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, replace(QUICK, most_windows=5000, fewest_windows=5000))
    asked = {"n": 100, "overlap": 3, "n_reference": 1000, "cache": cache}
    assert curve(**asked).origin == "simulated"
    again = curve(**asked)
    assert (again.ns, again.origin) == ((50, 100, 200), "cached")
    assert again.at(100).alpha_effective == curve(**asked).at(100).alpha_effective


def test_a_huge_reference_is_simulated_as_a_large_one() -> None:
    cache = AnswerCache(None, replace(QUICK, most_windows=5000, largest_reference=3000))
    found = curve(n_reference=10**9, n=100, overlap=3, cache=cache)
    assert (found.m, found.n_reference, found.at(100).n_reference) == (3000, 10**9, 10**9)


def test_a_curve_travels_to_workers() -> None:
    copy: ThresholdCurve = pickle.loads(pickle.dumps(curve()))
    assert copy.at(601) == curve().at(601)
    assert isinstance(copy.at(601), Threshold)


def test_a_source_for_a_feature() -> None:
    smooth = np.arange(1000.0)
    assert source_for(smooth, 0.0).key == Independent().key
    assert source_for(smooth, 0.001).key["coefficient"] == 0.05
    assert source_for(smooth, 0.951).key["coefficient"] == 0.955
    assert source_for(smooth, 0.9999).key["coefficient"] == 0.995
    few_ties = np.append(smooth, smooth[:40])
    assert not source_for(few_ties, 0.0).has_ties
    assert source_for(np.append(smooth, np.zeros(100)), 0.3).has_ties


def test_levels_read_what_they_wrote_and_nothing_else() -> None:
    levels = shipped_entries()[0].levels
    assert OnsetLevels.from_json(levels.to_json()) == levels
    body = levels.to_json()
    for wrong in (
        {},
        body | {"levels": body["levels"][:-1]},
        body | {"levels": body["levels"][::-1]},
        body | {"windows": "x"},
    ):
        with pytest.raises(ValueError, match=r"onset levels|invalid literal"):
            OnsetLevels.from_json(wrong)


def test_levels_and_rates_are_inverse() -> None:
    levels = shipped_entries()[0].levels
    for rate in (*RATES[1:], 3e-4, 7e-8):
        found = levels.level_of(rate)
        assert found is not None
        assert levels.rate_of(found[0]) == pytest.approx(rate, rel=1e-6)
    assert levels.level_of(0.02) is None
    assert levels.rate_of(0.0) == RATES[0]
    assert levels.rate_of(0.999) == 0.0
