"""The traffic split: the rule, statuses, epochs, and what a verdict says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binom, chisquare

from schemas.verdicts import VerdictKind
from tests.alert_verdicts import RULE
from tests.experiment_windows import CANARY, EVEN, START_MS, WINDOW_MS, drawn, only, run, window
from udfs.alerts.lifecycle import step
from udfs.alerts.state import LifecycleState
from udfs.alerts.verdict_event import decode_verdict
from udfs.experiments.plan import SplitPlan
from udfs.experiments.window import ArmCount, ExperimentWindow
from udfs.statistics.sample_ratio import SequentialSampleRatio

CASES = {
    case["id"]: case for case in json.loads((Path(__file__).parents[1] / "cases" / "experiments.json").read_text())
}


def test_each_published_case_is_known() -> None:
    assert set(CASES) == {"srm-unequal", "canary-empty", "srm-unequal-split", "srm-doc-example"}


def test_case_canary_empty_is_inconclusive_and_no_crash() -> None:
    case = CASES["canary-empty"]
    assert case["input"]["result"] == []
    state, verdicts = run(CANARY, [window(0, {}), window(1, {})])
    assert [verdict.status for verdict in only("traffic_split", verdicts)] == ["no_data", "no_data"]
    assert {verdict.drifted for verdict in verdicts} == {None}  # neither pass nor failure
    assert len(verdicts) == 8
    assert state.no_data_windows == 2


@pytest.mark.parametrize("case", [CASES["srm-unequal"], CASES["srm-unequal-split"]], ids=lambda case: case["id"])
def test_cases_of_unequal_plans_are_no_mismatch(case: dict) -> None:
    counts = case["input"]["counts"]
    counts = counts if isinstance(counts, dict) else dict(zip("AB", counts, strict=True))
    shares = case["input"].get("expected") or case["input"]["weights"]
    plan = SplitPlan("unequal", tuple(zip(sorted(counts), shares, strict=True)))
    (verdict, *_) = run(plan, [window(0, counts)])[1]
    (even, *_) = run(replace(plan, weights=(("A", 1.0), ("B", 1.0))), [window(0, counts)])[1]
    assert (verdict.drifted, verdict.p_value, verdict.statistic) == (False, 1.0, 0.0)
    assert verdict.evidence["window_chi_square_p_value"] == case["expected"]["p"]
    assert even.drifted is True


def test_case_srm_doc_example_through_the_state_machine() -> None:
    case = CASES["srm-doc-example"]
    weights = tuple(zip("abc", case["input"]["weights"], strict=True))
    plan = SplitPlan("doc", weights, min_samples=1, concentration=10_000)
    batches = [dict(zip("abc", batch, strict=True)) for batch in case["input"]["batches"]]
    verdicts = only("traffic_split", run(plan, [window(n, batch) for n, batch in enumerate(batches)])[1])
    assert [verdict.p_value for verdict in verdicts] == case["expected"]["sequential_p"]
    factors = [verdict.evidence["log_bayes_factor"] for verdict in verdicts]
    assert factors == pytest.approx(case["expected"]["log_bayes_factor"], abs=5e-8)


def test_the_tolerance_alone_is_wrong_in_half_of_all_windows() -> None:
    """The figure that the specification gives, and why there is a test beside the tolerance."""
    off = binom.cdf(46, 100, 0.5) + binom.sf(53, 100, 0.5)
    assert off == pytest.approx(0.48, abs=0.005)
    verdicts = only("traffic_split", run(EVEN, drawn(EVEN, [0.5, 0.5], 100, 400, seed=1))[1])
    assert sum(verdict.effect > EVEN.tolerance for verdict in verdicts) / 400 == pytest.approx(off, abs=0.08)
    assert not any(verdict.drifted for verdict in verdicts)


def test_a_verdict_says_what_was_split_how() -> None:
    (verdict, *_) = run(EVEN, [window(0, {"a": 400, "b": 600, "": 7, "x": 3})])[1]
    test = SequentialSampleRatio({"a": 1, "b": 1}, EVEN.concentration)
    p = test.update({"a": 400, "b": 600})
    assert (verdict.kind, verdict.feature, verdict.series) == (
        VerdictKind.SPLIT,
        "traffic_split(even)",
        {"experiment": "even"},
    )
    assert (verdict.window_start_ms, verdict.window_end_ms) == (START_MS - WINDOW_MS, START_MS)
    assert (verdict.statistic, verdict.effect, verdict.threshold, verdict.alpha) == (0.1, 0.1, 0.03, 0.01)
    assert (verdict.p_value, verdict.log10_p_value, verdict.drifted) == (p, test.log10_p_value, True)
    assert (verdict.n_window, verdict.n_window_null, verdict.n_reference) == (1000, 7, 0)
    assert verdict.evidence == {
        "epoch": "1",
        "n_since_epoch": 1000,
        "arms": [
            {"arm": "a", "planned_share": 0.5, "n": 400, "share": 0.4, "n_since_epoch": 400},
            {"arm": "b", "planned_share": 0.5, "n": 600, "share": 0.6, "n_since_epoch": 600},
        ],
        "n_other_arms": 3,
        "log_bayes_factor": test.log_bayes_factor,
        "window_chi_square_p_value": pytest.approx(chisquare([400, 600]).pvalue, rel=1e-12),
        "other_epochs": [],
        "n_epochs_forgotten": 0,
    }
    assert "NaN" not in verdict.to_json().decode()


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({}, "no_data"),
        ({"a": 0, "b": 0}, "no_data"),
        ({"a": 50, "b": 49}, "low_traffic"),
        ({"": 500}, "low_traffic"),
        ({"x": 500}, "low_traffic"),
        ({"a": 50, "b": 50}, "ok"),
        ({"a": 100}, "ok"),
    ],
)
def test_what_is_too_little_is_never_a_pass(counts: dict[str, int], status: str) -> None:
    (verdict, *_) = run(EVEN, [window(0, counts)])[1]
    assert verdict.status == status
    assert (verdict.drifted is None) == (verdict.statistic is None) == (verdict.p_value is None) == (status != "ok")


def test_off_by_just_the_tolerance_is_still_right() -> None:
    history = [window(0, {"a": 30_000, "b": 20_000})]  # p is far below alpha
    for a, bad in ((5300, False), (5301, True), (4700, False), (4699, True), (5000, False)):
        verdict = only("traffic_split", run(EVEN, [*history, window(1, {"a": a, "b": 10_000 - a})])[1])[-1]
        assert (verdict.drifted, verdict.p_value < 0.01) == (bad, True), a


def test_low_traffic_still_counts_for_the_epoch() -> None:
    few = [window(number, {"a": 60, "b": 20}) for number in range(40)]
    *_, last = only("traffic_split", run(EVEN, [*few, window(40, {"a": 75, "b": 25})])[1])
    assert (last.drifted, last.evidence["n_since_epoch"]) == (True, 40 * 80 + 100)


def test_a_new_epoch_starts_anew_and_an_old_one_goes_on() -> None:
    bad = [window(number, {"a": 600, "b": 400}) for number in range(5)]
    good = [window(number, {"a": 500, "b": 500}, epoch="2") for number in range(5, 10)]
    again = window(10, {"a": 600, "b": 400})
    verdicts = only("traffic_split", run(EVEN, [*bad, *good, again])[1])
    assert [verdict.drifted for verdict in verdicts] == [True] * 5 + [False] * 5 + [True]
    assert [verdict.evidence["epoch"] for verdict in verdicts] == ["1"] * 5 + ["2"] * 5 + ["1"]
    assert (verdicts[5].p_value, verdicts[5].evidence["n_since_epoch"]) == (1.0, 1000)
    assert verdicts[10].p_value < verdicts[4].p_value
    assert verdicts[10].evidence["n_since_epoch"] == 6000


def test_an_epoch_may_have_a_plan_of_its_own() -> None:
    ramp = replace(CANARY, epochs=(("2", (("canary", 50.0), ("stable", 50.0))),))
    one, two = only(
        "traffic_split",
        run(ramp, [window(0, {"canary": 50, "stable": 950}), window(1, {"canary": 500, "stable": 500}, epoch="2")])[1],
    )
    assert (one.p_value, one.drifted, two.p_value, two.drifted) == (1.0, False, 1.0, False)
    assert [arm["planned_share"] for arm in two.evidence["arms"]] == [0.5, 0.5]


def test_while_epochs_overlap_the_one_with_more_requests_is_judged() -> None:
    counts = {("1", "a"): 300, ("1", "b"): 300, ("2", "a"): 200, ("2", "b"): 200}
    both = ExperimentWindow(START_MS, {key: ArmCount(n) for key, n in counts.items()})
    state, (verdict, *_) = run(EVEN, [both])
    assert (verdict.evidence["epoch"], verdict.n_window) == ("1", 600)
    assert verdict.evidence["other_epochs"] == [{"epoch": "2", "n": 400}]
    assert [epoch.epoch for epoch in state.epochs] == ["1", "2"]


def test_stray_epochs_push_the_real_one_out_of_nothing() -> None:
    plan = replace(EVEN, epochs_remembered=3)
    windows = []
    for number in range(6):
        counts = {("real", "a"): ArmCount(500), ("real", "b"): ArmCount(500)}
        counts |= {(f"stray-{number}-{stray}", "a"): ArmCount(1) for stray in range(20)}
        windows.append(ExperimentWindow(START_MS + number * WINDOW_MS, counts))
    state, verdicts = run(plan, windows)
    last = only("traffic_split", verdicts)[-1]
    assert (last.evidence["epoch"], last.evidence["n_since_epoch"]) == ("real", 6000)
    assert len(last.evidence["other_epochs"]) == 3
    assert last.evidence["n_epochs_forgotten"] == 118
    assert (len(state.epochs), state.n_epochs_forgotten) == (3, 118)


def test_another_plan_for_the_same_epoch_is_another_test() -> None:
    state, _ = run(EVEN, [window(0, {"a": 900, "b": 100})])
    edited = replace(EVEN, weights=(("a", 9.0), ("b", 1.0)))
    assert SequentialSampleRatio.from_bytes(state.epoch(EVEN, "1").test).p_value < 1e-9
    assert state.epoch(edited, "1").n_since == (0, 0)
    assert SequentialSampleRatio.from_bytes(state.epoch(edited, "1").test).p_value == 1.0


def test_the_alert_job_takes_the_verdicts_as_any_other() -> None:
    state, rule = LifecycleState(), replace(RULE, firing_after_windows=2, resolved_after_windows=1)
    windows = [window(0, {"a": 500, "b": 500}), *drawn(EVEN, [0.4, 0.6], 1000, 4, seed=2)[1:]]
    windows += [window(4, {"a": 500, "b": 500}, epoch="2")]
    alerts = []
    for verdict in only("traffic_split", run(EVEN, windows)[1]):
        state, said = step(state, decode_verdict(verdict.to_json()), rule)
        alerts += said
    assert [alert.state for alert in alerts] == ["firing", "resolved"]
    assert alerts[0].labels["experiment"] == "even"


def test_every_verdict_can_be_read_by_the_alert_job() -> None:
    for windows in ([window(0, {})], [window(0, {"a": 500, "b": 490, "x": 10})], [window(0, {"a": 5})]):
        for verdict in run(EVEN, windows)[1]:
            assert decode_verdict(verdict.to_json()).drifted is verdict.drifted
