"""The sample-ratio tests against scipy and high precision, and the promise that peeking stays honest."""

import json
import math
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import chisquare

from schemas.status import Status
from udfs.statistics.sample_ratio import IMPOSSIBLE, SequentialSampleRatio, sample_ratio_chi_square
from udfs.versioned_bytes import seal

TESTS = Path(__file__).parent.parent
CASES = {case["id"]: case for case in json.loads((TESTS / "cases/experiments.json").read_text())}
GOLDEN = TESTS / "golden/sketches/sequential_sample_ratio_v1.hex"
weights = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=5)
batches = st.lists(st.lists(st.integers(0, 300), min_size=5, max_size=5), min_size=1, max_size=8)


def test_case_srm_unequal() -> None:
    case = CASES["srm-unequal"]
    counts, planned, expected = case["input"]["counts"], case["input"]["expected"], case["expected"]
    for plan in (planned, dict(zip(counts, planned, strict=True))):
        result = sample_ratio_chi_square(counts, plan)
        assert (result.statistic, result.p_value) == (expected["chi2"], expected["p"])
    wrong = sample_ratio_chi_square(counts, [1, 1]).p_value
    assert wrong == pytest.approx(expected["p_wrong_equal_split"], rel=1e-10, abs=0)


def test_case_srm_unequal_split() -> None:
    case = CASES["srm-unequal-split"]
    counts, expected = case["input"]["counts"], case["expected"]
    result = sample_ratio_chi_square(counts, case["input"]["weights"])
    assert (result.statistic, result.p_value, result.p_value < 0.01) == (
        expected["chi2"],
        expected["p"],
        expected["mismatch"],
    )
    even = sample_ratio_chi_square(counts, [0.5, 0.5])
    assert (even.statistic, even.p_value < 0.01) == (expected["if_50_50"]["chi2"], expected["if_50_50"]["mismatch"])


def test_case_srm_doc_example() -> None:
    case = CASES["srm-doc-example"]
    test = SequentialSampleRatio(case["input"]["weights"])
    p_values, factors = [], []
    for batch in case["input"]["batches"]:
        p_values.append(test.update(batch))
        factors.append(test.log_bayes_factor)
    assert p_values == case["expected"]["sequential_p"]
    assert factors == pytest.approx(case["expected"]["log_bayes_factor"], abs=5e-8)
    at_once = SequentialSampleRatio(case["input"]["weights"])
    at_once.update(np.sum(case["input"]["batches"], axis=0))
    assert (at_once.log_bayes_factor == test.log_bayes_factor) is case["expected"]["batching_invariant_final"]


@settings(deadline=None)
@given(weights, st.lists(st.integers(0, 10_000), min_size=5, max_size=5))
def test_chi_square_equal_to_scipy(plan: list[float], counts: list[int]) -> None:
    counts = counts[: len(plan)]
    result = sample_ratio_chi_square(counts, plan)
    if not any(counts):
        assert result.status is Status.INSUFFICIENT_DATA
        return
    shares = np.array(plan) / sum(plan)
    theirs = chisquare(counts, shares * sum(counts), sum_check=False)
    assert result.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    assert result.p_value == pytest.approx(theirs.pvalue, rel=1e-7, abs=1e-300)
    assert result.degrees_of_freedom == len(plan) - 1
    assert result.effect == pytest.approx(np.abs(np.array(counts) / sum(counts) - shares).max(), abs=1e-12)
    assert result.n_window == sum(counts)


def test_traffic_where_none_is_planned_is_impossible() -> None:
    for counts, plan in (([5, 5, 1], [1, 1, 0]), ({"a": 5, "b": 5, "c": 1}, {"a": 1, "b": 1})):
        result = sample_ratio_chi_square(counts, plan)
        assert (result.status, result.p_value) == (Status.OK, 0.0)
        assert (result.statistic, result.log10_p_value) == (IMPOSSIBLE, -IMPOSSIBLE)
        assert result.effect == pytest.approx(1 / 11)
        test = SequentialSampleRatio(plan)
        assert test.update(counts) == 0.0
        assert (test.log_bayes_factor, test.log10_p_value) == (IMPOSSIBLE, -IMPOSSIBLE)
        assert (
            SequentialSampleRatio.from_bytes(test.to_bytes()).update({} if isinstance(plan, dict) else [9, 9, 0]) == 0
        )


def test_an_arm_without_weight_or_traffic_changes_nothing() -> None:
    with_it, without = sample_ratio_chi_square([60, 40, 0], [1, 1, 0]), sample_ratio_chi_square([60, 40], [1, 1])
    assert with_it == without
    assert sample_ratio_chi_square([7], [3]).p_value == 1.0


def test_arms_are_matched_by_name_not_order() -> None:
    plan = {"blue": 0.95, "green": 0.05}
    assert sample_ratio_chi_square({"green": 5, "blue": 95}, plan).statistic == pytest.approx(0.0, abs=1e-20)
    assert sample_ratio_chi_square({"blue": 95}, plan).n_window == 95
    one, other = SequentialSampleRatio(plan), SequentialSampleRatio(plan)
    assert one.update({"green": 50, "blue": 50}) == other.update({"blue": 50, "green": 50})
    assert one.counts == {"blue": 50, "green": 50}


def test_unassigned_records_take_no_part() -> None:
    result = sample_ratio_chi_square({"a": 5, "b": 5, None: 7}, {"a": 1, "b": 1})
    assert (result.n_window, result.n_window_null, result.statistic) == (10, 7, 0.0)
    test = SequentialSampleRatio({"a": 1, "b": 1})
    test.update({"a": 5, None: 7})
    assert test.counts == {"a": 5, "b": 0}


@pytest.mark.parametrize("counts", [{}, {"a": 0}, {None: 3}])
def test_no_counts_are_unknown(counts: dict[str | None, int]) -> None:
    assert sample_ratio_chi_square(counts, {"a": 1}).status is Status.INSUFFICIENT_DATA
    assert SequentialSampleRatio({"a": 1}).update(counts) == 1.0


@pytest.mark.parametrize(
    ("counts", "plan", "problem"),
    [
        ([1, 2], [0, 0], "weights must not all be 0"),
        ([1, 2], [1, -1], "weights must be finite"),
        ([1, 2], [1, math.nan], "weights must be finite"),
        ([1.5, 2], [1, 1], "counts must be whole"),
        ([1, -2], [1, 1], "counts must be finite"),
        ([1, 2], {"a": 1, "b": 1, "c": 1}, "counts"),
        ([1, 2, 3], [1, 1], "not 3"),
        ({"a": 1, "b": None}, {"a": 1, "b": 1}, "counts must be"),
    ],
)
def test_impossible_arguments_are_refused(counts, plan, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        sample_ratio_chi_square(counts, plan)
    with pytest.raises(ValueError, match=r"counts|weights"):
        SequentialSampleRatio(plan).update(counts)


@pytest.mark.parametrize("concentration", [0, -1, math.inf, math.nan])
def test_impossible_concentrations_are_refused(concentration: float) -> None:
    with pytest.raises(ValueError, match="concentration"):
        SequentialSampleRatio([1, 1], concentration)


def test_a_refused_batch_changes_nothing() -> None:
    test = SequentialSampleRatio([1, 1])
    test.update([10, 20])
    before = test.to_bytes()
    for batch in ([1, -1], [1], [0.5, 1]):
        with pytest.raises(ValueError, match="counts"):
            test.update(batch)
    assert test.to_bytes() == before


@settings(deadline=None)
@given(weights, batches, st.sampled_from([1, 100, 10_000]))
def test_p_never_rises_and_batching_does_not_matter(
    plan: list[float], looks: list[list[int]], concentration: float
) -> None:
    looks = [look[: len(plan)] for look in looks]
    test, at_once = SequentialSampleRatio(plan, concentration), SequentialSampleRatio(plan, concentration)
    p_values = [1.0] + [test.update(look) for look in looks]
    assert all(after <= before for before, after in pairwise(p_values))
    at_once.update(np.sum(looks, axis=0))
    assert at_once.log_bayes_factor == test.log_bayes_factor
    assert at_once.p_value >= test.p_value == min(1.0, *p_values)
    if test.p_value > 1e-300:  # below, float64 has too few digits left
        assert test.log10_p_value == pytest.approx(math.log10(test.p_value), abs=1e-9)


@settings(deadline=None)
@given(weights, st.lists(st.integers(0, 5_000), min_size=5, max_size=5), st.floats(0.5, 1e5))
def test_the_bayes_factor_is_the_dirichlet_multinomials(
    plan: list[float], counts: list[int], concentration: float
) -> None:
    x, shares = np.array(counts[: len(plan)]), np.array(plan) / math.fsum(plan)
    a = concentration * shares
    direct = gammaln(a.sum()) - gammaln(a.sum() + x.sum()) + np.sum(gammaln(a + x) - gammaln(a) - x * np.log(shares))
    test = SequentialSampleRatio(plan, concentration)
    test.update(x)
    assert test.log_bayes_factor == pytest.approx(direct, rel=1e-8, abs=1e-6)


def test_digits_survive_a_trillion_records() -> None:
    counts = [500_000_300_000, 499_999_700_000]

    def log_gamma(z: Decimal) -> Decimal:
        series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)
        pi = Decimal("3.14159265358979323846264338327950288419716939937511")
        return (z - Decimal("0.5")) * z.ln() - z + (2 * pi).ln() / 2 + series

    with localcontext(prec=60):
        n, half = Decimal(sum(counts)), Decimal(5000)
        exact = log_gamma(Decimal(10_000)) - log_gamma(10_000 + n) - 2 * log_gamma(half) + n * Decimal(2).ln()
        exact += sum(log_gamma(half + count) for count in counts)
    test = SequentialSampleRatio([0.5, 0.5])
    test.update(counts)
    assert test.log_bayes_factor == pytest.approx(float(exact), rel=1e-10, abs=0)


def test_peeking_at_every_batch_stays_honest() -> None:
    # 500 healthy experiments, each read 25 times. A fixed-sample p-value read as often is wrong in a quarter of them.
    rng, alpha, experiments = np.random.default_rng(20_26), 0.05, 500
    plan = [0.4, 0.35, 0.25]
    alarms, naive = {100: 0, 10_000: 0}, 0
    for _ in range(experiments):
        looks = rng.multinomial(200, plan, size=25)
        for concentration in alarms:
            test = SequentialSampleRatio(plan, concentration)
            alarms[concentration] += min(map(test.update, looks)) < alpha
        totals = np.cumsum(looks, axis=0)
        expected = totals.sum(axis=1, keepdims=True) * np.array(plan)
        naive += (((totals - expected) ** 2 / expected).sum(axis=1) > 5.991).any()
    assert max(alarms.values()) <= alpha * experiments
    assert naive > 3 * alpha * experiments


def test_a_mismatch_is_found() -> None:
    rng = np.random.default_rng(4)
    for share, looks in ((0.52, 100), (0.6, 10)):
        test = SequentialSampleRatio([0.5, 0.5])
        for _ in range(looks):
            p = test.update(rng.multinomial(300, [share, 1 - share]))
        assert p < 0.01


def test_log10_p_survives_underflow() -> None:
    test = SequentialSampleRatio([0.5, 0.5])
    assert test.update([1_000_000, 100_000]) == 0.0
    assert -400_000 < test.log10_p_value < -100_000
    assert test.update([100_000, 1_000_000]) == 0.0  # evened out, but p never rises


def test_state_of_version_1_stays_readable() -> None:
    test = SequentialSampleRatio({"blue": 0.95, "green": 0.05}, 1_000)
    test.update({"blue": 900, "green": 100})
    test.update({"blue": 95, "green": 5, "red": 0})
    golden = bytes.fromhex(GOLDEN.read_text())
    resumed = SequentialSampleRatio.from_bytes(golden)
    assert (resumed.p_value, resumed.counts, resumed.to_bytes()) == (test.p_value, test.counts, golden)
    assert resumed.update({"green": 1}) == test.update({"green": 1})
    for other in (seal(b"SRM", 1, b"{}"), seal(b"SRM", 1, b"[1"), seal(b"LOG", 1, b"")):
        with pytest.raises(ValueError, match="not SRM bytes"):
            SequentialSampleRatio.from_bytes(other)
