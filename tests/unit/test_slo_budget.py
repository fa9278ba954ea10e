"""Burn rates and budgets: the collected cases, the workbook's table, and what can't be."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from udfs.slo import Budget, burn_rate, error_budget
from udfs.slo.burn_rules import BurnRule, burn_factor, judge_rule, refuse_unreachable, workbook_rules
from udfs.slo.exhaustion import projected_exhaustion_ms
from udfs.slo.periods import DAY_MS, HOUR_MS
from udfs.slo.ring import Counts

CASES = {
    case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases" / "alerts_slo.json").read_text())
}
DURATIONS = {"1h": HOUR_MS, "6h": 6 * HOUR_MS, "1d": DAY_MS, "3d": 3 * DAY_MS}


def case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return CASES[name]["input"], CASES[name]["expected"]


def test_a_slice_without_traffic_takes_nothing_from_the_budget() -> None:
    given, expected = case("slo-zero-traffic")
    slices = given["slices"]
    total = sum(one["total"] for one in slices)
    budget = error_budget(total - sum(one["bad"] for one in slices), total, given["target"])
    assert budget.error_ratio == expected["error_ratio"]
    assert budget.burn_rate == expected["burn_rate"]
    assert budget.budget_remaining == expected["budget_remaining"]
    empty = error_budget(0, 0, given["target"])
    assert (empty.status, empty.remaining, empty.sli) == (expected["empty_slice"], None, None)


@pytest.mark.parametrize("target", [1.0, 1.5, -0.1, math.nan, math.inf, True, "0.9"])
def test_a_target_without_a_budget_is_refused(target: Any) -> None:
    _, expected = case("slo-target-100")
    for function in (burn_rate, error_budget):
        with pytest.raises(ValueError, match="target must be in") as error:
            function(99, 100, target)
        assert expected["error"] in str(error.value)


@pytest.mark.parametrize(
    ("good", "total", "flag"),
    [(120, 100, "good_gt_total"), (1, 0, "good_gt_total"), (-1, 10, "not_a_count"), (math.nan, 10, "not_a_count"),
     (5, math.inf, "not_a_count")],
)  # fmt: skip
def test_counts_that_cannot_be_are_invalid_and_no_credit(good: float, total: float, flag: str) -> None:
    budget = error_budget(good, total, 0.99)
    assert (budget.status, budget.flags) == ("invalid", (flag,))
    assert (budget.error_ratio, budget.burn_rate, budget.remaining, budget.consumed) == (None,) * 4
    assert burn_rate(good, total, 0.99) is None
    assert case("slo-good-gt-total")[1]["flag"] == "good_gt_total"


def test_low_traffic_never_pages() -> None:
    given, expected = case("slo-low-traffic-page")
    windows = {
        HOUR_MS: Counts(given["window_1h"]["total"] - given["window_1h"]["bad"], given["window_1h"]["total"]),
        5 * 60_000: Counts(given["window_5m"]["total"] - given["window_5m"]["bad"], given["window_5m"]["total"]),
    }
    rule = BurnRule("page", 14.4, HOUR_MS, 5 * 60_000)
    outcome = judge_rule(rule, windows.__getitem__, given["target"], min_events=given["min_events"])
    assert outcome.burn_long == pytest.approx(expected["burn_1h"], abs=1e-3)
    assert (outcome.firing, outcome.status) == (expected["page"], expected["reason"])
    assert judge_rule(rule, windows.__getitem__, given["target"], min_events=3).firing


def test_factors_follow_the_period() -> None:
    given, expected = case("slo-burn-factors")
    for days in given["periods_d"]:
        shares = [(float(share.rstrip("%")) / 100, DURATIONS[window]) for share, window in given["rows"]]
        factors = [burn_factor(share, days * DAY_MS, window) for share, window in shares]
        assert factors == pytest.approx(expected[str(days)], abs=1e-4)
        rules = workbook_rules(days * DAY_MS)
        assert [rule.factor for rule in rules] == pytest.approx(expected[str(days)], abs=1e-4)
        assert [rule.name for rule in rules] == ["1h&5m", "6h&30m", "1d&2h", "3d&6h"]
        assert [rule.severity for rule in rules] == ["page", "page", "ticket", "ticket"]


def test_windows_scale_where_the_factors_stay() -> None:
    for days in (7, 90):
        rules = workbook_rules(days * DAY_MS)
        assert [rule.factor for rule in rules] == pytest.approx([14.4, 6.0, 3.0, 1.0])
        assert [rule.long_ms / (days * DAY_MS) for rule in rules] == pytest.approx(
            [1 / 720, 6 / 720, 24 / 720, 72 / 720], rel=0.02
        )
    assert workbook_rules(30 * DAY_MS, "windows") == workbook_rules(30 * DAY_MS, "factors")
    with pytest.raises(ValueError, match="factors or windows"):
        workbook_rules(DAY_MS, "both")


def test_a_factor_that_nothing_reaches_is_refused() -> None:
    rules = workbook_rules(30 * DAY_MS)
    refuse_unreachable(rules, 0.95)
    with pytest.raises(ValueError, match=r"factor 14\.4 of 1h&5m can't be reached: .* is 10"):
        refuse_unreachable(rules, 0.9)


def test_both_windows_must_burn() -> None:
    rule = BurnRule("page", 14.4, HOUR_MS, 5 * 60_000)
    burning, over, silent = Counts(800, 1000), Counts(1000, 1000), Counts(0, 0)
    for short, firing in ((burning, True), (over, False), (silent, False)):
        outcome = judge_rule(rule, {HOUR_MS: burning, 5 * 60_000: short}.__getitem__, 0.99)
        assert (outcome.firing, outcome.status) == (firing, "ok")
    nothing = judge_rule(rule, {HOUR_MS: silent, 5 * 60_000: silent}.__getitem__, 0.99)
    only_bad_counts = judge_rule(rule, {HOUR_MS: Counts(invalid=3), 5 * 60_000: silent}.__getitem__, 0.99)
    assert [o.status for o in (nothing, only_bad_counts)] == ["no_data", "invalid"]


def test_exactly_the_factor_fires() -> None:
    rule = BurnRule("page", 10.0, HOUR_MS, 5 * 60_000)
    assert judge_rule(rule, lambda _: Counts(900, 1000), 0.99).firing
    assert not judge_rule(rule, lambda _: Counts(901, 1000), 0.99).firing


def test_projection_against_hand_calculation() -> None:
    period = 30 * DAY_MS
    # 60 % left at three times the allowed rate: 0.6 / 3 of 30 days are 6 days.
    assert projected_exhaustion_ms(0.6, 3.0, period_ms=period, now_ms=1000) == 1000 + 6 * DAY_MS
    assert projected_exhaustion_ms(-0.5, 3.0, period_ms=period, now_ms=1000) == 1000
    assert projected_exhaustion_ms(0.6, 3.0, period_ms=period, now_ms=0, ends_ms=5 * DAY_MS) is None
    for remaining, burn in ((None, 3.0), (0.6, None), (0.6, 0.0), (1.0, 1e-300)):
        assert projected_exhaustion_ms(remaining, burn, period_ms=period, now_ms=0) is None


def test_a_calendar_budget_is_for_the_whole_period() -> None:
    early = error_budget(990, 1000, 0.995, elapsed=0.1)
    assert (early.burn_rate, early.remaining) == (2.0, 0.8)
    with pytest.raises(ValueError, match="elapsed"):
        error_budget(1, 1, 0.9, elapsed=0.0)


def test_counts_of_numpy_are_counts() -> None:
    assert burn_rate(np.int64(99), np.int64(100), np.float64(0.99)) == 1.0
    assert error_budget(np.uint32(120), np.uint32(100), 0.99).status == "invalid"


def test_budget_names_both_sides() -> None:
    budget = error_budget(995, 1000, 0.99)
    assert isinstance(budget, Budget)
    assert (budget.bad, budget.allowed_bad, budget.sli, budget.consumed) == (5, 10.0, 0.995, 0.5)
