"""What must hold of an SLO's state machine, whatever comes: resumed or not, doubled or not, no figure but finite."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.slo_files import SLICE_MS, START_MS, run, slo
from udfs.slo.budgeting import Budgeting, Method
from udfs.slo.indicators import Tally
from udfs.slo.periods import DAY_MS, Calendar, Rolling, Unit
from udfs.slo.slo import Judge, Slo, WindowRule

tallies = st.builds(Tally, st.integers(0, 300), st.integers(0, 300), st.integers(0, 5), st.integers(0, 3))
slices = st.dictionaries(st.integers(1, 400), tallies, max_size=25).map(
    lambda found: {START_MS + number * SLICE_MS: found[number] for number in sorted(found)}
)


@st.composite
def slos(draw: st.DrawFn) -> Slo:
    return slo(
        target=draw(st.sampled_from([0.95, 0.99, 0.9999])),
        budgeting=Budgeting(draw(st.sampled_from(Method)), 60_000 * draw(st.integers(1, 7)), 0.9),
        period=draw(
            st.sampled_from([Rolling(7 * DAY_MS), Rolling(3_600_000), Calendar(1, Unit.DAY, "Asia/Kathmandu")])
        ),
        window=draw(st.sampled_from([None, WindowRule(0.05, "above", 120_000, 60_000, min_events=50)])),
        judge=draw(st.sampled_from([None, Judge(0.5)])),
        min_events=draw(st.sampled_from([1, 200])),
        quiet_ms=draw(st.sampled_from([0, 600_000])),
    )


@settings(max_examples=20)
@given(slos(), slices, st.integers(0, 25), st.booleans())
def test_resumed_and_doubled_slices_say_the_same(of: Slo, given_slices: dict[int, Tally], at: int, twice: bool) -> None:
    state, whole = run(of, given_slices)
    parts = list(given_slices.items())
    half, first = run(of, dict(parts[:at]))
    if twice and half is not None:
        assert run(of, dict(parts[:at]), state=half) == (half, [])
    resumed, second = run(of, dict(parts[at:]), state=half)
    assert [v.to_json() for v in first + second] == [v.to_json() for v in whole]
    assert resumed == state


@settings(max_examples=20)
@given(slos(), slices)
def test_figures_are_finite_and_stand_only_where_judged(of: Slo, given_slices: dict[int, Tally]) -> None:
    _, verdicts = run(of, given_slices)
    for verdict in verdicts:
        assert (verdict.status == "ok") == (verdict.statistic is not None) == (verdict.drifted is not None)
        figures = [
            verdict.statistic,
            verdict.effect,
            *map(verdict.evidence.get, ("sli", "burn_rate", "budget_remaining")),
        ]
        assert all(figure is None or math.isfinite(figure) for figure in figures)
        left = verdict.evidence.get("budget_remaining")
        assert left is None or left <= 1.0
        assert of.judge is None or verdict.status in ("judge_unqualified", "no_data", "invalid")
    assert len({verdict.verdict_id for verdict in verdicts}) == len(verdicts)
