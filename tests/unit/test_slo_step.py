"""The state machine of an SLO: windows, budgets, burn alerts, silence, judges."""

import math
from datetime import datetime
from itertools import pairwise

import numpy as np
import pytest

from schemas.times import epoch_ms
from schemas.verdicts import Verdict
from tests.slo_files import ERRORS, FAST, SLICE_MS, START_MS, TTFT, TTFT_WINDOW, about, run, slo
from udfs.alerts.verdict_event import decode_verdict
from udfs.sketches.log import LogSketch
from udfs.slo.budgeting import BILLION, Budgeting, Method
from udfs.slo.indicators import Tally, Throughput
from udfs.slo.periods import DAY_MS, HOUR_MS, Calendar, Rolling, Unit
from udfs.slo.silence import Silence, silence_at
from udfs.slo.slo import AlertText, Judge, WindowRule

HALLUCINATION = WindowRule(0.05, "above", 300_000, 300_000, min_events=1200)
PER_5_MINUTES = 300_000 // SLICE_MS


def slices(n: int, bad: int, total: int = 100) -> list[Tally]:
    return [Tally(total - bad, total)] * n


def ttft(*values: float) -> Tally:
    sketch = LogSketch.from_values(np.array(values))
    return Tally(0, sketch.n, sketch.n_null, sketch=sketch.to_bytes())


def test_a_quiet_service_keeps_its_budget() -> None:
    _, verdicts = run(slo(), slices(240, bad=0))
    assert {v.drifted for v in verdicts} == {False}
    assert {v.kind for v in verdicts} == {"slo"}
    budget = about(verdicts, "budget")[-1]
    assert (budget.statistic, budget.evidence["total"], budget.evidence["projected_exhaustion"]) == (1.0, 24_000, None)
    assert [v.window_end_ms for v in about(verdicts, "budget")] == list(
        range(START_MS + 60_000, START_MS + 240 * SLICE_MS + 1, 60_000)
    )


def test_a_fast_burn_pages_and_stops_when_the_short_window_is_clean() -> None:
    _, verdicts = run(slo(), [*slices(120, 0), *slices(60, 20), *slices(60, 0)])
    pages = about(verdicts, "burn_page")
    states = [v.drifted for v in pages]
    first = states.index(True)
    # By hand: at 20 % bad the hour (as far as there is one) burns at 14.4 once 0.2 k = 0.144 (k + 60): k = 154.3 min
    # would do for a whole hour of good before; here k of 60 + k minutes, so page 2 (6 over 6 h) is first, at k = 26.
    k = next(k for k in range(1, 90) if 0.2 * k / (60 + k) / 0.01 >= 6.0)
    assert first == 60 + k - 1
    assert (pages[first].threshold, pages[first].evidence["rule"]) == (6.0, "6h&30m")
    assert not states[-1]
    alert = pages[first].evidence["alert"]
    assert (alert["severity"], alert["never_suppress"], alert["firing_after_windows"]) == ("page", True, 1)


def test_low_traffic_is_told_and_never_fires() -> None:
    _, verdicts = run(slo(min_events=100), [Tally(0, 1), *slices(1, 0, 0), Tally(1, 2), Tally()])
    assert {(v.status, v.drifted, v.statistic) for v in verdicts} == {("low_traffic", None, None)}
    assert verdicts[0].evidence["windows"][0]["burn_long"] == pytest.approx(100.0)


def test_ttft_quantile_by_sliding_minutes_counts_windows() -> None:
    tallies = [ttft(*[0.3] * 95, *[0.7] * 5), *[ttft(*[0.3] * 80, *[0.9] * 20)] * 4, ttft(*[0.3] * 100), Tally()]
    of = slo("ttft", indicator=TTFT, window=TTFT_WINDOW, target=0.95)
    _, verdicts = run(of, tallies)
    windows = about(verdicts, "sli")
    assert [v.drifted for v in windows] == [False, True, True, True, True, True, False]
    assert windows[1].statistic == pytest.approx(0.9, rel=0.01)
    assert [b.window_end_ms - a.window_end_ms for a, b in pairwise(windows)] == [SLICE_MS] * 6
    assert (windows[0].window_end_ms - windows[0].window_start_ms, windows[0].slide_seconds) == (60_000, 30.0)
    budget = about(verdicts, "budget")[-1]
    assert (budget.evidence["good"], budget.evidence["total"]) == (1, 6)
    assert [v.evidence["alert"]["severity"] for v in windows[:1]] == ["page"]


def test_equal_to_a_strict_limit_is_a_breach() -> None:
    limit = ttft(0.8)
    value = LogSketch.from_bytes(limit.sketch).quantile(0.95)
    assert value is not None
    for equal_breaches in (True, False):
        rule = WindowRule(value, "above", 60_000, 30_000, is_point=True, equal_breaches=equal_breaches)
        _, verdicts = run(slo(indicator=TTFT, window=rule), [limit])
        assert about(verdicts, "sli")[0].drifted is equal_breaches


def test_all_zero_and_infinite_times_are_invalid() -> None:
    of = slo("ttft", indicator=TTFT, window=TTFT_WINDOW)
    for tally, flag in ((ttft(0.0, 0.0), "all_zero"), (ttft(math.inf, math.inf), "infinite")):
        _, (verdict, *_) = run(of, [tally])
        assert (verdict.status, verdict.drifted, verdict.evidence["flags"]) == ("invalid", None, [flag])


def test_the_published_hallucination_window() -> None:
    of = slo("hallucination", target=0.965, window=HALLUCINATION)
    start_ms = -(-START_MS // 300_000) * 300_000
    cases = [
        (130, 7, "ok", True),
        (130, 6, "ok", False),
        (119, 119, "insufficient_data", None),
        (0, 0, "no_data", None),
    ]
    tallies = {
        start_ms + (window * PER_5_MINUTES + number + 1) * SLICE_MS: Tally(total - bad, total)
        for window, (total, bad, _, _) in enumerate(cases)
        for number in range(PER_5_MINUTES)
    }
    _, verdicts = run(of, tallies)
    assert [(v.status, v.drifted) for v in about(verdicts, "sli")] == [case[2:] for case in cases]
    assert about(verdicts, "sli")[0].statistic == pytest.approx(7 / 130)


def test_a_judge_that_has_not_shown_enough_gives_no_number() -> None:
    for f1, status in ((None, "judge_unqualified"), (0.9199, "judge_unqualified"), (0.92, "ok")):
        of = slo("hallucination", window=WindowRule(0.05, "above", 60_000, 60_000), judge=Judge(f1))
        _, verdicts = run(of, slices(10, 1))
        assert {v.status for v in verdicts} == {status}
        assert all((v.statistic is None) == (status != "ok") for v in verdicts)


def test_throughput_needs_a_whole_window() -> None:
    of = slo("tps", indicator=Throughput(), window=WindowRule(2.0, "below", 60_000, 60_000, is_point=True))
    _, verdicts = run(of, [Tally(0, 90)] * 4 + [Tally(0, 30)] * 2)
    assert [(v.status, v.statistic, v.drifted) for v in about(verdicts, "sli")] == [
        ("insufficient_data", None, None),
        ("ok", 3.0, False),
        ("ok", 1.0, True),
    ]


def test_timeslices_and_their_ratios() -> None:
    half_bad = [*slices(10, 0), *slices(10, 50), *slices(10, 5)]
    for method, good, total in (
        (Method.TIMESLICES, 2, 3),
        (Method.RATIO_TIMESLICES, pytest.approx(1 + 0.5 + 0.95), 3),
        (Method.OCCURRENCES, 2450, 3000),
    ):
        of = slo(budgeting=Budgeting(method, 300_000, slice_target=0.95))
        start_ms = -(-START_MS // 300_000) * 300_000
        _, verdicts = run(of, {start_ms + (n + 1) * SLICE_MS: tally for n, tally in enumerate(half_bad)})
        evidence = about(verdicts, "budget")[-1].evidence
        assert (evidence["good"], evidence["total"]) == (good, total)
        assert evidence["sli"] == pytest.approx(evidence["good"] / total)


def test_slices_without_traffic_are_no_slices() -> None:
    assert Budgeting(Method.TIMESLICES, min_slice_events=10).of_slice(9, 9) == (0, 0)
    assert Budgeting(Method.RATIO_TIMESLICES).of_slice(0, 0) == (0, 0)
    assert Budgeting(Method.RATIO_TIMESLICES).of_slice(1, 3) == (333_333_333, BILLION)
    assert Budgeting(Method.TIMESLICES).of_slice(5, 3) == (5, 3)


def test_silence_is_told_for_a_while_and_then_not() -> None:
    of = slo(quiet_ms=5 * SLICE_MS, window=WindowRule(0.05, "above", 30_000, 30_000))
    state, verdicts = run(of, [*slices(2, 0), *[Tally()] * 20])
    assert [v.status for v in about(verdicts, "sli")] == ["ok", "ok", *["no_data"] * 5]
    skipped, same = run(of, {START_MS + SLICE_MS: Tally(100, 100), START_MS + 2 * SLICE_MS: Tally(100, 100),
                             START_MS + 22 * SLICE_MS: Tally()})  # fmt: skip
    assert ([v.to_json() for v in same], skipped) == ([v.to_json() for v in verdicts], state)
    _, woken = run(of, {START_MS + 40 * SLICE_MS: Tally(100, 100)}, state=state)
    assert [v.status for v in woken] == ["ok"] * len(woken)


def test_another_indicator_counts_anew_and_another_target_goes_on() -> None:
    state, _ = run(slo(), slices(4, 1))
    after = {START_MS + 6 * SLICE_MS: Tally(99, 100)}
    for changes, total in (({"target": 0.98}, 500), ({"burn_rules": ()}, 500), ({"indicator": FAST}, 100),
                           ({"budgeting": Budgeting(Method.TIMESLICES, 60_000)}, 1)):  # fmt: skip
        _, verdicts = run(slo(**changes), after, state=state)
        assert about(verdicts, "budget")[-1].evidence["total"] == total


def test_a_silent_series_speaks_then_waits_then_is_forgotten() -> None:
    of = slo(quiet_ms=60_000, period=Rolling(HOUR_MS), burn_rules=())
    last, forget_ms = {"last_data_ms": 0, "slice_ms": SLICE_MS}, 63 * 60_000 + SLICE_MS
    assert silence_at(of, 30_000, last_end_ms=30_000, **last) == Silence()
    assert silence_at(of, 30_000, last_end_ms=0, **last) == Silence(speaks=True, again_ms=60_000)
    assert silence_at(of, 60_000, last_end_ms=30_000, **last) == Silence(speaks=True, again_ms=90_000)
    assert silence_at(of, 90_000, last_end_ms=60_000, **last) == Silence(again_ms=forget_ms)
    assert silence_at(of, forget_ms, last_end_ms=60_000, **last) == Silence(forgets=True)
    assert silence_at(of, forget_ms, last_end_ms=2 * HOUR_MS, **last) == Silence()


def test_an_old_slice_changes_nothing() -> None:
    state, _ = run(slo(), slices(4, 1))
    for end_ms in (START_MS, START_MS + 4 * SLICE_MS):
        assert run(slo(), {end_ms: Tally(0, 100)}, state=state) == (state, [])


def test_more_good_than_all_is_invalid_and_no_credit() -> None:
    _, verdicts = run(slo(), [Tally(120, 100)] * 4)
    assert {(v.status, v.drifted) for v in verdicts} == {("invalid", None)}
    assert verdicts[-1].evidence["n_invalid"] == 4
    _, verdicts = run(slo(), [Tally(120, 100), Tally(90, 100)])
    assert about(verdicts, "budget")[-1].evidence["sli"] == 0.9


def test_a_calendar_month_begins_anew_with_the_month_of_its_zone() -> None:
    of = slo(period=Calendar(1, Unit.MONTH, "America/New_York", datetime(1970, 1, 1)))
    end_ms = epoch_ms("2026-04-01T04:00:00Z")  # midnight in New York
    tallies = {end_ms + n * 60_000: Tally(90, 100) for n in range(-3, 3)}
    _, verdicts = run(of, tallies, slice_ms=60_000)
    found = {v.window_end_ms: v for v in about(verdicts, "budget")}
    assert [found[end_ms + n * 60_000].evidence["total"] for n in range(-3, 3)] == [100, 200, 300, 400, 100, 200]
    march = found[end_ms]
    assert march.window_start_ms == epoch_ms("2026-03-01T05:00:00Z")
    assert (epoch_ms(march.evidence["period_end"]) - march.window_start_ms) / HOUR_MS == 743
    assert march.statistic == pytest.approx(1 - 10.0)
    assert found[end_ms + 60_000].statistic == pytest.approx(1 - 10.0 * 60_000 / (30 * DAY_MS))


def test_projection_by_the_last_six_hours() -> None:
    _, verdicts = run(slo(), slices(20, bad=1, total=200))
    budget = about(verdicts, "budget")[-1]
    assert (budget.statistic, budget.effect) == (0.5, 0.5)
    # Half the budget at half the allowed rate: 30 days.
    assert epoch_ms(budget.evidence["projected_exhaustion"]) == budget.window_end_ms + 30 * DAY_MS


def test_the_alert_job_takes_what_the_file_says() -> None:
    _, verdicts = run(slo(alert=AlertText(owner="chat", severity="critical", firing_after_windows=3)), slices(4, 5))
    overrides = [decode_verdict(verdict.to_json()).overrides for verdict in verdicts]
    assert {(o["owner"], o["severity"]) for o in overrides} == {("chat", "page"), ("chat", "ticket")}
    assert "runbook_url" not in overrides[0]
    of = slo("ttft", indicator=TTFT, window=TTFT_WINDOW, alert=AlertText(severity="critical", firing_after_windows=3))
    _, (window, *_) = run(of, [ttft(0.1)])
    told = decode_verdict(window.to_json()).overrides
    assert (told["severity"], told["firing_after_windows"], told["never_suppress"]) == ("critical", 3, True)


def test_verdicts_read_back_and_a_state_resumes() -> None:
    of = slo("ttft", indicator=TTFT, window=TTFT_WINDOW, budgeting=Budgeting(Method.TIMESLICES, 300_000, 0.9))
    tallies = [ttft(*np.random.default_rng(n).gamma(2, 0.2, 50)) for n in range(30)]
    _, whole = run(of, tallies)
    ends = [START_MS + (n + 1) * SLICE_MS for n in range(30)]
    state, first = run(of, dict(zip(ends[:13], tallies[:13], strict=True)))
    _, second = run(of, dict(zip(ends[13:], tallies[13:], strict=True)), state=state)
    assert [v.to_json() for v in first + second] == [v.to_json() for v in whole]
    assert len({v.verdict_id for v in whole}) == len(whole)
    assert all(Verdict.from_json(v.to_json()) == v for v in whole)


def test_what_can_never_be_is_refused() -> None:
    with pytest.raises(ValueError, match="can't be reached"):
        slo(target=0.9)
    with pytest.raises(ValueError, match="longer than a year"):
        slo(period=Rolling(400 * DAY_MS))
    with pytest.raises(ValueError, match="needs a window"):
        slo(indicator=TTFT)
    assert slo(indicator=ERRORS, target=0.5, burn_rules=()).figure == "bad_ratio"
