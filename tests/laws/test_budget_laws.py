"""What holds for every series of verdicts, every budget and every simulated statistic."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.alerts import AlertState
from tests.alert_verdicts import RULE, events, verdict
from udfs.alerts.lifecycle import step
from udfs.alerts.state import LifecycleState
from udfs.budget.episodes import onsets
from udfs.budget.false_alarms import FalseAlarmBudget
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.sources import Atoms
from udfs.budget.window_statistics import bins_of

WINDOWS = st.lists(st.sampled_from([True, True, False, False, False, None]), max_size=60)
QUIET = st.integers(1, 5)


@settings(max_examples=60)
@given(WINDOWS, QUIET)
def test_an_alarm_of_the_budget_is_a_firing_of_the_alert_lifecycle(drifted: list[bool | None], quiet: int) -> None:
    rule = replace(RULE, firing_after_windows=1, resolved_after_windows=quiet)
    letters = {True: "D", False: "q", None: "?"}
    state, fired = LifecycleState(), []
    for position, event in enumerate(events([verdict(letters[d], i + 1) for i, d in enumerate(drifted)])):
        state, alerts = step(state, event, rule)
        fired += [position for alert in alerts if alert.state is AlertState.FIRING]
    assert fired == onsets(drifted, quiet)


@given(WINDOWS, QUIET)
def test_before_an_onset_it_is_quiet_and_within_an_episode_there_is_none(
    drifted: list[bool | None], quiet: int
) -> None:
    found = onsets(drifted, quiet)
    assert all(drifted[at] for at in found)
    assert (not found) is (True not in drifted)
    for one, other in pairwise(found):
        assert any(drifted[at - quiet : at] == [False] * quiet for at in range(one + quiet, other + 1))


@given(WINDOWS, QUIET)
def test_more_quiet_windows_never_make_more_alarms(drifted: list[bool | None], quiet: int) -> None:
    assert len(onsets(drifted, quiet + 1)) <= len(onsets(drifted, quiet))


@given(st.lists(st.integers(0, 9), min_size=8, max_size=60), QUIET, st.integers(0, 9))
def test_a_curve_counts_what_judging_at_its_level_counts(steps: list[int], quiet: int, at: int) -> None:
    statistics = np.array([0] * quiet + steps) / 10
    level = (at + 0.5) / 10
    curve = OnsetCurve.of(statistics[None, :], quiet=quiet, step=0.1)
    assert curve.counts(np.array([level]))[0][0] == len(onsets((statistics > level).tolist(), quiet))


@given(
    st.floats(0.01, 1000, allow_nan=False).map(lambda x: round(x, 2)),
    st.integers(1, 10_000),
    st.sampled_from("smhdw"),
    st.floats(0.1, 3600),
    st.integers(1, 1000),
)
def test_the_tests_of_a_monitor_share_its_budget(
    alarms: float, period: int, unit: str, slide_seconds: float, tests: int
) -> None:
    budget = FalseAlarmBudget.parse(f"{alarms} per {period}{unit}")
    assert budget.seconds is not None
    windows = budget.seconds / slide_seconds
    together = tests * windows * budget.onset_rate(slide_seconds=slide_seconds, tests=tests)
    assert abs(together - alarms) <= 1e-9 * alarms


VALUES = st.lists(st.floats(allow_nan=False, allow_infinity=True, allow_subnormal=True), min_size=1, max_size=40)


@given(VALUES, VALUES, st.booleans())
def test_a_bin_is_what_a_search_says(points: list[float], values: list[float], is_tied: bool) -> None:
    distinct, taken = np.unique(np.array(points) + 0.0), np.array(values) + 0.0
    searched = distinct.searchsorted(taken)
    if is_tied:
        searched = searched + distinct.searchsorted(taken, "right")
    assert bins_of(taken, distinct, is_tied=is_tied).tolist() == searched.tolist()


@given(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=50))
def test_atoms_are_the_shares_of_repeated_values(points: list[float]) -> None:
    atoms = Atoms.of_points(points)
    _, times = np.unique(points, return_counts=True)
    expected = times[times > 1] / len(points)
    assert np.allclose(atoms.ends - atoms.starts, expected, atol=1e-12)
    assert (atoms.starts[1:] >= atoms.ends[:-1]).all()
