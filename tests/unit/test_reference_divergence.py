"""Divergence of windows over bins of the reference: numbers and categories, against plain numpy and scipy."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from schemas.verdicts import Verdict
from udfs.judging.binned import BinnedCategories, BinnedNumbers
from udfs.judging.frame import Frame
from udfs.judging.reference_divergence import DivergencePolicy, ReferenceDivergence, Test
from udfs.sketches.category import CategoryCounts
from udfs.sketches.quantile_bins import QuantileBins
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

HOUR = Frame("chat", "kl_divergence(x)", ("model",), 3_600_000, 3_600_000, "sha256:c", "sha256:r", "sha256:m")
NORMAL = np.random.default_rng(1).normal(size=1000)
CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "statistics.json").read_text("utf-8"))
}


def judge(binned: Any, test: Test = "kl_divergence", **policy: Any) -> ReferenceDivergence[Any]:
    return ReferenceDivergence(
        HOUR, "x", binned, DivergencePolicy(test, **{"threshold": 0.1, "min_samples": 1} | policy)
    )


def judged(by: ReferenceDivergence[Any], values: Any, n_slices: int = 3) -> Verdict:
    values = list(values)
    (verdict,) = by.judge(["m1"], 3_600_000, [by.sketch(values[i::n_slices]) for i in range(n_slices)])
    return verdict


def smoothed(counts: Any) -> Any:
    added = np.asarray(counts, dtype=float) + 0.5
    return added / added.sum()


def by_numpy(values: Any, reference: Any, edges: Any) -> Any:
    """Counts below all, up to each edge, and above all."""
    bins = np.searchsorted(edges, values)
    outer = np.where(values < reference.min(), 0, np.where(values > reference.max(), len(edges) + 1, bins + 1))
    return np.bincount(outer, minlength=len(edges) + 2)


def test_bins_are_quantiles_with_a_bin_at_either_end() -> None:
    bins = QuantileBins.of(RankReference.from_values(NORMAL))
    counts = bins.reference_counts
    assert (counts.size, counts[0], counts[-1], counts.sum()) == (20, 0, 0, 1000)
    assert set(counts[1:-1].tolist()) <= {55, 56}
    ends = [bins.interval(number) for number in range(20)]
    assert [low for low, _ in ends[1:]] == [high for _, high in ends[:-1]]
    assert ends[0] == (-math.inf, NORMAL.min())
    assert ends[-1] == (NORMAL.max(), math.inf)


@pytest.mark.parametrize("seed", range(5))
def test_window_counts_are_those_of_the_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = rng.choice([rng.normal(size=700), rng.integers(0, 12, 700).astype(float)])
    values = rng.choice([rng.normal(0.3, 2, 999), rng.integers(-3, 15, 999).astype(float)])
    prepared = RankReference.from_values(reference)
    bins = QuantileBins.of(prepared, int(rng.integers(3, 25)))
    edges = np.array([bins.interval(number)[1] for number in range(1, bins.starts.size - 1)])
    assert bins.counts(RankSketch.from_values(values, prepared)).tolist() == by_numpy(values, reference, edges).tolist()
    assert bins.reference_counts.tolist() == by_numpy(reference, reference, edges).tolist()
    assert bins.starts.size <= 24


def test_a_heavy_tie_is_one_bin() -> None:
    reference = RankReference.from_values([0.0] * 900 + list(range(1, 101)))
    counts = QuantileBins.of(reference, 12).reference_counts
    assert counts.tolist() == [0, 900, 100, 0]


def test_bins_that_make_no_sense_are_refused() -> None:
    reference = RankReference.from_values([1.0, 2.0])
    with pytest.raises(ValueError, match="at least 3"):
        QuantileBins.of(reference, 2)
    with pytest.raises(ValueError, match="without points"):
        QuantileBins.of(RankReference.from_values([]))
    with pytest.raises(ValueError, match="other bins"):
        QuantileBins.of(reference).counts(RankSketch.from_values([1.0], [5.0]))


@pytest.mark.parametrize("shift", [0.0, 0.2, 3.0])
def test_figures_are_scipys_over_the_same_bins(shift: float) -> None:
    values = np.random.default_rng(2).normal(shift, 1, 5000)
    binned = BinnedNumbers(RankReference.from_values(NORMAL))
    reference, window = binned.counts(binned.merged([binned.sketch(values)]))
    r, w = smoothed(reference), smoothed(window)
    assert judged(judge(binned), values).statistic == pytest.approx(entropy(r, w), rel=1e-12)
    assert judged(judge(binned, "psi"), values).statistic == pytest.approx(entropy(r, w) + entropy(w, r), rel=1e-12)
    js = jensenshannon(reference, window, 2.0) ** 2
    assert judged(judge(binned, "js_divergence"), values).statistic == pytest.approx(js, rel=1e-9)


def test_a_quiet_continuous_window_is_quiet() -> None:
    """On the rank sketch's own bins its Jensen-Shannon divergence would be 1.0."""
    values = np.random.default_rng(3).normal(size=1000)
    binned = BinnedNumbers(RankReference.from_values(NORMAL))
    for test in ("kl_divergence", "psi", "js_divergence"):
        verdict = judged(judge(binned, test), values)
        assert verdict.drifted is False
        assert verdict.statistic is not None
        assert 0 < verdict.statistic < 3 * verdict.evidence["expected_by_chance"]


@pytest.mark.parametrize("test", ["kl_divergence", "psi", "js_divergence"])
def test_what_chance_makes_of_it_is_what_is_said(test: Test) -> None:
    rng = np.random.default_rng(4)
    by = judge(BinnedCategories(CategoryCounts.from_values(rng.integers(0, 10, 4000).tolist())), test, pseudo_count=0.0)
    found, said = [], 0.0
    for _ in range(200):
        verdict = judged(by, rng.integers(0, 10, 2000).tolist(), 1)
        found.append(verdict.statistic)
        said = verdict.evidence["expected_by_chance"] * 9 / 10  # the bin of all others stays empty here
    # One reference for all, so the mean may be off by the reference's own luck.
    assert np.mean(np.array(found, dtype=float)) == pytest.approx(said, rel=0.5)


def test_a_constant_that_changes_is_seen() -> None:
    by = judge(BinnedNumbers(RankReference.from_values([7.0] * 500)))
    assert judged(by, [7.0] * 500).drifted is False
    for other in (6.9, 7.1):
        verdict = judged(by, [other] * 500)
        assert verdict.drifted is True
        assert verdict.statistic is not None
        assert math.isfinite(verdict.statistic)


def test_new_categories_are_one_bin_that_takes_part() -> None:
    case = CASES["kl-rare"]
    reference, window = (
        [k for k, n in case["input"][side].items() for _ in range(n)] for side in ("ref_counts", "cur_counts")
    )
    by = judge(BinnedCategories(CategoryCounts.from_values(reference)))
    assert judged(by, window).statistic == pytest.approx(case["expected"]["kl_ref_cur_nats"], rel=1e-9)
    verdict = judged(by, ["new"] * 500)
    assert verdict.drifted is True
    assert verdict.evidence["largest_change"] == {"category": None, "reference_share": 0.0, "window_share": 1.0}


def test_a_hundred_thousand_new_categories_stay_one_number() -> None:
    by = judge(BinnedCategories(CategoryCounts.from_values(["a"] * 900 + ["b"] * 100)))
    sketch = by.sketch([f"new {i}" for i in range(100_000)])
    assert len(sketch) < 100
    verdict = judged(by, [f"new {i}" for i in range(1000)] + ["a"] * 1000)
    assert verdict.evidence["largest_change"] == {"category": None, "reference_share": 0.0, "window_share": 0.5}


@pytest.mark.parametrize("values", [[], [None] * 500, [math.nan] * 500, [1.0] * 199])
def test_too_few_values_are_no_pass(values: list[Any]) -> None:
    verdict = judged(judge(BinnedNumbers(RankReference.from_values(NORMAL)), min_samples=200), values)
    assert (verdict.status, verdict.statistic, verdict.drifted, verdict.evidence) == (
        "insufficient_data",
        None,
        None,
        {},
    )


def test_nan_moves_nothing_and_infinity_is_a_value() -> None:
    by = judge(BinnedNumbers(RankReference.from_values(NORMAL)))
    values = list(np.random.default_rng(5).normal(size=500))
    alone, beside = judged(by, values), judged(by, [*values, math.nan, None])
    assert (beside.statistic, beside.n_window_null) == (alone.statistic, 2)
    infinite = judged(by, [*values, *[math.inf] * 500])
    assert (infinite.n_infinite, infinite.drifted) == (500, True)
    assert infinite.evidence["largest_change"]["up_to"] is None
    assert b"Infinity" not in orjson.dumps(infinite.evidence)


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_the_bytes_depend_on_the_window_alone(kind: str) -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(0, 30, 500).tolist()
    by = judge(
        BinnedNumbers(RankReference.from_values(rng.integers(0, 20, 300)))
        if kind == "numbers"
        else BinnedCategories(CategoryCounts.from_values(rng.integers(0, 20, 300).tolist()))
    )
    again: ReferenceDivergence[Any] = pickle.loads(pickle.dumps(by))
    assert judged(by, values).to_json() == judged(again, values[::-1], 11).to_json()
    assert by.merged([by.sketch(values)]).n == 500
