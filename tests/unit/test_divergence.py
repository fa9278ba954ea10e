"""KL, PSI and Jensen-Shannon against scipy, against high precision where digits are lost, and as laws."""

import json
import math
from collections import Counter
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from udfs.sketches.category import CategoryCounts
from udfs.statistics.divergence import (
    js_distance,
    js_divergence,
    kl_divergence,
    population_stability_index,
    relative_entropy,
)

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/statistics.json").read_text())}
ALL = (kl_divergence, population_stability_index, js_divergence, js_distance)
counts = st.lists(st.integers(0, 10**9), min_size=1, max_size=12).filter(any)
pairs = st.integers(1, 12).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(0, 10**6), min_size=size, max_size=size).filter(any)] * 2)
)


def test_case_psi_zero_bin() -> None:
    case = CASES["psi-zero-bin"]
    sides = case["input"]["ref_counts"], case["input"]["cur_counts"]
    assert population_stability_index(*sides) == pytest.approx(case["expected"]["psi"], rel=1e-14)
    assert population_stability_index(*sides, pseudo_count=0) == float(case["expected"]["psi_unsmoothed"])


def test_case_kl_rare() -> None:
    case = CASES["kl-rare"]
    sides, expected = (case["input"]["ref_counts"], case["input"]["cur_counts"]), case["expected"]
    assert kl_divergence(*sides) == pytest.approx(expected["kl_ref_cur_nats"], rel=1e-12, abs=0)
    assert population_stability_index(*sides) == pytest.approx(expected["psi"], rel=1e-12, abs=0)
    assert js_divergence(*sides) == pytest.approx(expected["js_divergence_bits"], rel=1e-12, abs=0)


def test_case_js_zero() -> None:
    case = CASES["js-zero"]
    divergence = js_divergence(case["input"]["p"], case["input"]["q"])
    assert divergence == pytest.approx(case["expected"]["js_divergence_bits"], rel=1e-14)
    assert math.sqrt(divergence) == pytest.approx(case["expected"]["js_distance_bits"], rel=1e-14)


def test_case_js_f32_nan() -> None:
    case = CASES["js-f32-nan"]
    p, q = (np.array(case["input"][side], dtype=case["input"]["dtype"]) for side in "pq")
    assert js_distance(p, q) == pytest.approx(
        case["expected"]["js_distance"], rel=case["expected"]["rel_tolerance"], abs=0
    )


def test_case_js_nan_ref() -> None:
    # Raw values are counted first; the null stays apart and does not move the divergence.
    case = CASES["js-nan-ref"]
    reference, window = (CategoryCounts.from_values(case["input"][side]) for side in ("ref", "cur"))
    divergence = js_divergence(reference.as_histogram(), window.as_histogram())
    assert divergence == case["expected"]["js_divergence_bits"]
    assert reference.n_null / (reference.n + reference.n_null) == case["expected"]["ref_null_rate"]
    assert js_divergence(Counter(case["input"]["ref"]), Counter(case["input"]["cur"])) == 0.0


@settings(deadline=None)
@given(pairs)
def test_equal_to_scipy(sides: tuple[list[int], list[int]]) -> None:
    ours, theirs = (np.array(side, dtype=float) for side in sides)
    assert kl_divergence(*sides, pseudo_count=0.5) == pytest.approx(entropy(ours + 0.5, theirs + 0.5), abs=1e-13)
    assert kl_divergence(*sides, pseudo_count=0) == pytest.approx(entropy(ours, theirs), abs=1e-13)
    psi = entropy(ours + 0.5, theirs + 0.5) + entropy(theirs + 0.5, ours + 0.5)
    assert population_stability_index(*sides) == pytest.approx(psi, abs=1e-12)
    middle = ours / ours.sum() + theirs / theirs.sum()
    bits = 0.5 * (entropy(ours, middle, base=2) + entropy(theirs, middle, base=2))
    assert js_divergence(*sides) == pytest.approx(bits, abs=1e-13)
    if bits > 1e-6:  # closer than that scipy's has lost its digits
        assert js_distance(*sides) == pytest.approx(jensenshannon(ours, theirs), rel=1e-8)


@settings(deadline=None)
@given(pairs)
def test_bounds_and_symmetry(sides: tuple[list[int], list[int]]) -> None:
    p, q = sides
    assert 0.0 <= js_divergence(p, q) <= 1.0
    assert 0.0 <= js_distance(p, q) <= math.sqrt(math.log(2))
    assert js_divergence(p, q) == js_divergence(q, p)
    assert population_stability_index(p, q) == population_stability_index(q, p)
    assert 0.0 <= kl_divergence(p, q) < math.inf
    assert 0.0 <= population_stability_index(p, q) < math.inf


@settings(deadline=None)
@given(counts, st.integers(2, 1000))
def test_equal_shares_are_at_distance_0(p: list[int], times: int) -> None:
    q = [times * count for count in p]
    assert js_divergence(p, q) == js_distance(p, q) == kl_divergence(p, q, 0) == 0.0
    assert population_stability_index(p, p) == kl_divergence(p, p) == 0.0


@settings(deadline=None)
@given(pairs, st.randoms())
def test_the_order_of_bins_changes_nothing(sides: tuple[list[int], list[int]], random) -> None:
    order = list(range(len(sides[0])))
    random.shuffle(order)
    shuffled = [[side[i] for i in order] for side in sides]
    mappings = [{f"bin {i}": side[i] for i in order} for side in sides]
    for figure in ALL:
        assert figure(*sides) == figure(*shuffled) == figure(*mappings)


@settings(deadline=None)
@given(st.lists(st.floats(0, 2.0**100, width=32), min_size=2, max_size=6).filter(any), st.floats(0, 1e-5))
def test_nearly_equal_float32_shares_are_never_nan(shares: list[float], nudge: float) -> None:
    p = np.array(shares, dtype=np.float32)
    q = np.float32(1 + nudge) * p + np.float32(nudge) * p[::-1]
    for figure in ALL:
        assert figure(p, q) >= 0.0


def test_digits_survive_where_both_nearly_agree() -> None:
    p, q = [500_000_001, 499_999_999, 10], [500_000_000, 500_000_000, 10]
    with localcontext(prec=60):
        shares = [[Decimal(count) / sum(side) for count in side] for side in (p, q)]
        kl = sum(a * (a / b).ln() for a, b in zip(*shares, strict=True))
        middle = [(a + b) / 2 for a, b in zip(*shares, strict=True)]
        js = sum(x * (x / m).ln() / 2 for side in shares for x, m in zip(side, middle, strict=True))
    assert kl_divergence(p, q, 0) == pytest.approx(float(kl), rel=1e-6, abs=0)
    assert js_distance(p, q) == pytest.approx(math.sqrt(js), rel=1e-6, abs=0)


def test_the_series_meets_the_logarithm() -> None:
    # Either side of the switch at |t| = 0.01, against 50 digits.
    for t in (-0.0101, -0.0099, 0.0099, 0.0101):
        p, q = np.array([0.5 * (1 + t), 0.5 * (1 - t)]), np.array([0.5, 0.5])
        with localcontext(prec=50):
            exact = sum(
                Decimal(float(a)) * (Decimal(float(a)) / Decimal(float(b))).ln() for a, b in zip(p, q, strict=True)
            )
        assert relative_entropy(p, q) == pytest.approx(float(exact), rel=1e-11, abs=0)


def test_opposite_ends() -> None:
    assert js_divergence([1, 0], [0, 1]) == 1.0
    assert js_distance([1, 0], [0, 1]) == pytest.approx(math.sqrt(math.log(2)), rel=1e-15)
    assert kl_divergence([1, 1], [1, 0], 0) == math.inf
    assert kl_divergence([1, 0], [1, 1], 0) == pytest.approx(math.log(2), rel=1e-15)


@pytest.mark.parametrize(("p", "q"), [([], []), ([0, 0], [1, 1]), ({}, {"a": 1}), ({None: 5}, {"a": 1})])
def test_nothing_on_a_side_is_unknown(p, q) -> None:
    for figure in ALL:
        assert figure(p, q) is None
        assert figure(q, p) is None


def test_huge_and_tiny_amounts_stay_finite() -> None:
    for p, q in (([1e308] * 5, [1e308, 0, 0, 0, 0]), ([5e-324, 5e-324], [1e-320, 5e-324]), ([1e308, 1], [1, 1e308])):
        for figure in (js_divergence, js_distance):
            assert math.isfinite(figure(p, q))
    assert math.isfinite(kl_divergence([1e308, 1], [1, 1e308]))


def test_a_pseudo_count_goes_into_every_bin_of_the_union() -> None:
    by_hand = entropy(np.array([3 + 2, 1 + 2, 0 + 2]), np.array([3 + 2, 0 + 2, 4 + 2]))
    assert kl_divergence({"a": 3, "b": 1}, {"a": 3, "c": 4}, pseudo_count=2) == pytest.approx(by_hand, rel=1e-14)
    assert kl_divergence([3, 1, 0], [3, 0, 4], pseudo_count=2) == pytest.approx(by_hand, rel=1e-14)


@pytest.mark.parametrize(
    ("p", "q", "problem"),
    [
        ([1, -1], [1, 1], "{0} must be finite"),
        ([1, 1], [1, math.nan], "{1} must be finite"),
        ([1, 1], [1, None], "{1} must be finite"),
        ([1, 1], [1], "{1} must have as many bins as {0}"),
        ([1, 1], {"a": 1}, "{0} and {1} must both"),
        ("ab", [1, 1], "{0} must be one row"),
        ([1 + 2j, 1], [1, 1], "{0} must be one row"),
    ],
)
def test_what_is_no_distribution_is_refused(p, q, problem: str) -> None:
    for figure in ALL:
        names = ("p", "q") if figure in (js_divergence, js_distance) else ("reference", "window")
        with pytest.raises(ValueError, match=problem.format(*names)):
            figure(p, q)


@pytest.mark.parametrize("pseudo_count", [-1, math.nan, math.inf])
def test_impossible_pseudo_counts_are_refused(pseudo_count: float) -> None:
    with pytest.raises(ValueError, match="pseudo_count"):
        kl_divergence([1], [1], pseudo_count)
