"""Unknown arms, silent arms, users in two arms, windows without traffic, and the state's bytes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.verdicts import VerdictKind
from tests.experiment_windows import CANARY, EVEN, START_MS, WINDOW_MS, drawn, experiment, of_users, only, run, window
from udfs.experiments.arm_sketch import ALL_USERS, ArmSketch, user_id
from udfs.experiments.plan import SplitPlan
from udfs.experiments.state import ExperimentState, decode, encode
from udfs.experiments.step import step
from udfs.experiments.sticky import UserArms
from udfs.experiments.window import ExperimentWindow
from udfs.versioned_bytes import seal

GOLDEN = Path(__file__).parents[1] / "golden" / "experiments"


def names(first: int, stop: int) -> list[str]:
    return [f"user-{number}" for number in range(first, stop)]


def test_an_unknown_arm_is_a_finding_and_leaves_the_split_alone() -> None:
    verdicts = run(EVEN, [window(0, {"a": 500, "b": 490, "c": 10, "": 5}), window(1, {"a": 500, "b": 500})])[1]
    found, gone = only("unknown_arm", verdicts)
    assert (found.kind, found.drifted, found.statistic, found.threshold) == (VerdictKind.FINDING, True, 0.01, 0.0)
    assert (found.n_window, found.n_window_null) == (1000, 5)
    assert found.evidence == {"epoch": "1", "n_arms": 1, "arms": [{"arm": "c", "n": 10}]}
    assert (gone.drifted, gone.statistic) == (False, 0.0)
    assert [verdict.p_value for verdict in only("traffic_split", verdicts)] == [1.0, 1.0]


def test_many_unknown_arms_are_named_up_to_a_bound() -> None:
    counts = {"a": 500, "b": 500} | {f"x{number:05}": 1 + (number == 77) for number in range(5000)}
    (found,) = only("unknown_arm", run(EVEN, [window(0, counts)])[1])
    assert (found.evidence["n_arms"], len(found.evidence["arms"])) == (5000, 10)
    assert found.evidence["arms"][:2] == [{"arm": "x00077", "n": 2}, {"arm": "x00000", "n": 1}]


def test_a_share_of_unknown_arms_can_be_borne() -> None:
    plan = replace(EVEN, max_unplanned_share=0.01)
    windows = [window(0, {"a": 500, "b": 490, "c": 10}), window(1, {"a": 500, "b": 489, "c": 11})]
    assert [verdict.drifted for verdict in only("unknown_arm", run(plan, windows)[1])] == [False, True]


def test_an_arm_that_falls_silent_is_seen_though_within_the_tolerance() -> None:
    plan = SplitPlan("small", (("big", 98.0), ("small", 2.0)))
    windows = [window(0, {"big": 98, "small": 2}), *(window(number, {"big": 100}) for number in range(1, 10))]
    verdicts = run(plan, windows)[1]
    silent = only("silent_arm", verdicts)
    assert not any(verdict.drifted for verdict in only("traffic_split", verdicts))
    # (1 - 0.02)^m * 2 < 1e-6 from m = 719 requests without one.
    assert [verdict.drifted for verdict in silent] == [False] * 8 + [True, True]
    assert silent[8].statistic == 800
    assert silent[8].p_value == pytest.approx(2 * 0.98**800, rel=1e-9)
    assert silent[8].evidence == {"epoch": "1", "arm": "small", "arms_without_traffic": ["small"]}
    back = only("silent_arm", run(plan, [*windows, window(10, {"big": 99, "small": 1})])[1])[-1]
    assert (back.drifted, back.p_value, back.statistic) == (False, 1.0, 0.0)


def test_an_arm_without_any_traffic_is_seen_by_both() -> None:
    verdicts = run(CANARY, [window(number, {"stable": 1000}) for number in range(3)])[1]
    assert [verdict.drifted for verdict in only("silent_arm", verdicts)] == [True] * 3
    split = only("traffic_split", verdicts)
    assert split[-1].drifted is True
    assert split[-1].evidence["arms"][0] == {
        "arm": "canary",
        "planned_share": 0.05,
        "n": 0,
        "share": 0.0,
        "n_since_epoch": 0,
    }


def test_a_silence_of_a_million_requests_has_a_finite_p() -> None:
    (verdict,) = only("silent_arm", run(EVEN, [window(0, {"a": 1_000_000})])[1])
    assert verdict.p_value == 0.0
    assert verdict.log10_p_value == pytest.approx(-301_029.7, abs=1)


def test_a_user_in_two_arms_is_found_and_stays_found_in_the_epoch() -> None:
    windows = [
        of_users(0, {("1", "a"): names(0, 50), ("1", "b"): names(50, 100)}),
        of_users(1, {("1", "a"): names(0, 50), ("1", "b"): [*names(50, 100), "user-7"]}),
        of_users(2, {("1", "a"): names(0, 50), ("1", "b"): names(50, 100)}),
        of_users(3, {("2", "a"): names(50, 100), ("2", "b"): names(0, 50)}),
    ]
    sticky = only("sticky_assignment", run(EVEN, windows)[1])
    assert [verdict.drifted for verdict in sticky] == [False, True, True, False]
    assert [verdict.statistic for verdict in sticky] == [0.0, 0.01, 0.01, 0.0]
    assert sticky[1].evidence == {
        "epoch": "1",
        "users": 100,
        "users_in_two_arms": 1,
        "users_in_two_arms_new": 1,
        "sampled_share": 1.0,
    }
    assert sticky[2].evidence["users_in_two_arms_new"] == 0
    assert (sticky[1].kind, sticky[1].method, sticky[1].threshold, sticky[1].p_value) == ("split", "exact", 0.0, None)


def test_users_of_no_arm_or_of_an_unknown_one() -> None:
    unassigned = of_users(0, {("1", ""): names(0, 10), ("1", "a"): names(0, 10)})
    assert only("sticky_assignment", run(EVEN, [unassigned])[1])[0].statistic == 0.0
    unknown = of_users(0, {("1", "x"): names(0, 10), ("1", "a"): names(5, 10)})
    assert only("sticky_assignment", run(EVEN, [unknown])[1])[0].statistic == 0.5


def test_requests_without_users_are_no_pass() -> None:
    (verdict,) = only("sticky_assignment", run(EVEN, [window(0, {"a": 500, "b": 500})])[1])
    assert (verdict.status, verdict.drifted, verdict.n_window, verdict.n_window_null) == ("no_data", None, 0, 1000)


def test_beyond_the_cap_a_stated_sample_is_kept() -> None:
    plan = replace(EVEN, users_remembered=1000)
    windows = [
        of_users(number, {("1", "a"): names(number * 100, number * 100 + 100)}, most=1000) for number in range(200)
    ]
    # Every tenth user comes back in the other arm.
    windows.append(of_users(200, {("1", "b"): [f"user-{number}" for number in range(0, 20_000, 10)]}, most=1000))
    *_, exact, _, last = only("sticky_assignment", run(plan, windows)[1])
    assert last.method == exact.method == "sampled"
    assert last.evidence["users"] <= 1000
    assert last.evidence["users"] / last.evidence["sampled_share"] == pytest.approx(20_000, rel=0.15)
    assert last.statistic == pytest.approx(0.1, abs=0.03)
    kept = {user_id(name) for name in names(0, 20_000)}
    known = run(plan, windows)[0].epochs[0].users
    assert known.ids.tolist() == sorted(kept)[: known.n]


def test_the_sample_is_cut_where_a_slice_was_cut() -> None:
    sketch = ArmSketch.of("e", "1", "a", names(0, 100), most=60)
    assert sketch.users.size == 60
    assert sketch.below == sorted(map(user_id, names(0, 100)))[60]
    both = ExperimentWindow.of(START_MS, [sketch, ArmSketch.of("e", "1", "b", names(0, 100))])
    assert both.users_below == sketch.below
    assert both.users["1", "a"].tolist() == both.users["1", "b"].tolist()


def test_windows_without_traffic_are_said_for_a_while_also_those_that_were_skipped() -> None:
    plan = replace(EVEN, no_data_windows=4)
    full = {"a": 500, "b": 500}
    verdicts = run(plan, [window(0, full), window(1, {}), window(4, full), window(20, full), window(30, {})])[1]
    split = only("traffic_split", verdicts)
    ends = [(verdict.window_end_ms - START_MS) // WINDOW_MS for verdict in split if verdict.status == "no_data"]
    assert ends == [1, 2, 3, 5, 6, 7, 8, 21, 22, 23, 24]
    assert [verdict.status for verdict in split].count("ok") == 3
    silent = [verdict for verdict in verdicts if verdict.window_end_ms == split[1].window_end_ms]
    assert [(verdict.status, verdict.evidence) for verdict in silent] == [("no_data", {})] * 4


def test_a_window_that_is_not_newer_changes_nothing() -> None:
    state, _ = run(EVEN, [window(5, {"a": 500, "b": 500})])
    for number in (5, 4):
        assert step(state, window(number, {"a": 999}), experiment(EVEN)) == (state, [])


def busy_state() -> ExperimentState:
    windows = drawn(EVEN, [0.45, 0.55], 300, 5, seed=3)
    users = [
        of_users(5, {("2", "a"): names(0, 20), ("2", "b"): names(15, 30), ("2", "x"): ["user-1"]}),
        of_users(7, {("1", "a"): names(0, 5), ("3", ""): [None]}),
    ]
    return run(replace(EVEN, users_remembered=25), [*windows, *users])[0]


def test_the_state_comes_back() -> None:
    state = busy_state()
    assert encode(decode(encode(state))) == encode(state)
    following = window(9, {"a": 70, "b": 30})
    of = experiment(EVEN)
    (one, said), (two, again) = step(state, following, of), step(decode(encode(state)), following, of)
    assert (encode(one), said) == (encode(two), again)


def test_state_of_version_1_stays_readable() -> None:
    golden = bytes.fromhex((GOLDEN / "state_v1.hex").read_text())
    assert encode(busy_state()) == golden == encode(decode(golden))


@pytest.mark.parametrize("data", [b"", seal(b"EXP", 2, b""), seal(b"EXP", 1, b"\x09\0\0\0{"), seal(b"USR", 1, b"")])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not EXP bytes"):
        decode(data)


@pytest.mark.parametrize("arms", [1, 7, 8, 20, 63])
def test_users_of_many_arms_survive_the_bytes(arms: int) -> None:
    planned = [f"arm{number:02}" for number in range(arms)]
    users = {arm: np.arange(number + 1, dtype=np.uint64) for number, arm in enumerate([*planned, "unknown"])}
    seen = UserArms.of_window(users, planned, below=ALL_USERS)
    again = UserArms.from_bytes(seen.to_bytes())
    assert (again.ids.tolist(), again.arms.tolist()) == (seen.ids.tolist(), seen.arms.tolist())
    assert (seen.n, seen.n_switched) == (arms + 1, arms)


def test_verdicts_as_committed() -> None:
    """What consumers of topic `verdicts` read: one judged window of each kind, and one without traffic."""
    users = {"a": names(0, 70), "b": names(60, 110), "x": names(0, 3), "": [None]}
    judged = of_users(0, {("1", arm): of_arm for arm, of_arm in users.items()})
    verdicts = run(EVEN, [judged, window(1, {})])[1]
    found = "".join(verdict.to_json().decode() + "\n" for verdict in verdicts)
    assert found == (GOLDEN / "verdicts.jsonl").read_text()
