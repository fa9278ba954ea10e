"""The alert lifecycle on timelines worked out by hand: `D` drifted, `q` quiet, `?` not judged, `.` no window."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.alerts import Alert
from schemas.times import rfc3339
from tests.alert_verdicts import EPOCH_MS, RULE, SLIDE_MS, events, verdict, verdicts
from udfs.alerts.fingerprint import fingerprint
from udfs.alerts.lifecycle import ends_at_offset_seconds, step
from udfs.alerts.rule import AlertRule
from udfs.alerts.state import LifecycleState, decode, encode
from udfs.alerts.verdict_event import VerdictEvent

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/alerts_slo.json").read_text())}


def run(
    timeline: list[VerdictEvent], rule: AlertRule = RULE, state: LifecycleState | None = None
) -> tuple[LifecycleState, list[Alert]]:
    """Step through `timeline`, carrying the state through its encoding as the job does."""
    state = state or LifecycleState()
    out: list[Alert] = []
    for event in timeline:
        after, alerts = step(state, event, rule)
        state = decode(encode(after))
        out += alerts
    return state, out


def windows_of(alerts: list[Alert]) -> list[tuple[str, int]]:
    """(state, number of the window that made it)."""
    return [(str(alert.state), (alert.updated_at_ms - EPOCH_MS) // SLIDE_MS) for alert in alerts]


@pytest.mark.parametrize(
    ("timeline", "expected"),
    [
        ("qqqqqq", []),
        ("DD", []),
        ("DDD", [("firing", 3)]),
        ("DDDDDDDDD", [("firing", 3)]),
        ("DDqDDqDD", []),
        ("DDDqqq", [("firing", 3), ("resolved", 6)]),
        ("DDDqqDqqDqqq", [("firing", 3), ("resolved", 12)]),
        ("DDDqqqDDD", [("firing", 3), ("resolved", 6), ("firing", 9)]),
        ("DDDqqqDDqqq", [("firing", 3), ("resolved", 6)]),
        # Not judged: breaks a row of either kind, and resolves nothing however long it lasts.
        ("DD?D", []),
        ("DD?DDD", [("firing", 6)]),
        ("DDD??????", [("firing", 3)]),
        ("DDDqq?qqq", [("firing", 3), ("resolved", 9)]),
        # A missing window breaks a row of either kind.
        ("DD.D", []),
        ("D.D.D.D", []),
        ("DD.DDD", [("firing", 6)]),
        ("DDDqq.qqq", [("firing", 3), ("resolved", 9)]),
        ("DDD........q", [("firing", 3)]),
    ],
)
def test_timelines(timeline: str, expected: list[tuple[str, int]]) -> None:
    _, alerts = run(events(verdicts(timeline)))
    assert windows_of(alerts) == expected


def test_times_labels_and_evidence_of_both_transitions() -> None:
    _, (firing, resolved) = run(events(verdicts("qDDDDqqq")))
    at = [EPOCH_MS + window * SLIDE_MS for window in range(9)]
    assert (firing.active_at_ms, firing.starts_at_ms, firing.updated_at_ms) == (at[2], at[4], at[4])
    assert firing.ends_at_ms == at[4] + 240_000
    assert (resolved.active_at_ms, resolved.starts_at_ms) == (at[2], at[4])
    assert (resolved.ends_at_ms, resolved.updated_at_ms) == (at[8], at[8])
    assert [window.window_end_ms for window in firing.evidence] == at[2:5]
    assert [window.window_end_ms for window in resolved.evidence] == at[6:9]
    assert [window.verdict_id for window in firing.evidence] == [verdict("D", i).verdict_id for i in (2, 3, 4)]
    assert firing.labels == resolved.labels
    assert firing.fingerprint == resolved.fingerprint == fingerprint(firing.labels)
    assert firing.generator_url == resolved.generator_url == f"urn:slacktide:verdict:{verdict('D', 4).verdict_id}"
    assert firing.alert_id != resolved.alert_id


def test_counts_are_the_rules() -> None:
    rule = replace(RULE, firing_after_windows=1, resolved_after_windows=2)
    _, alerts = run(events(verdicts("qDqDqq")), rule)
    assert windows_of(alerts) == [("firing", 2), ("resolved", 6)]


def test_old_and_repeated_verdicts_change_nothing() -> None:
    timeline = events(verdicts("DDDqqq"))
    state, alerts = run(timeline)
    for event in timeline:
        assert step(state, event, RULE) == (state, ())
    doubled = [event for event in timeline for _ in range(2)]
    assert run(doubled) == (state, alerts)


def test_a_late_verdict_does_not_break_a_row() -> None:
    first, second, third = events(verdicts("DDD"))
    _, alerts = run([first, second, first, third])
    assert windows_of(alerts) == [("firing", 3)]


@pytest.mark.parametrize("edited", [{"config_digest": "sha256:c1"}, {"reference_digest": "sha256:f1"}])
def test_an_edited_monitor_starts_a_new_row(edited: dict[str, str]) -> None:
    state, alerts = run(events(verdicts("DD")))
    state, alerts = run(events(verdicts("DD", first=3, **edited)), state=state)
    assert alerts == []
    _, alerts = run(events(verdicts("D", first=5, **edited)), state=state)
    assert windows_of(alerts) == [("firing", 5)]


def test_an_open_alert_outlives_an_edited_monitor_and_an_edited_rule() -> None:
    state, (firing,) = run(events(verdicts("DDDq")))
    rule = replace(RULE, severity="critical", owner="someone-else", generator_url="urn:new:{verdict_id}")
    state, alerts = run(events(verdicts("qq", first=5, config_digest="sha256:c1")), rule, state)
    assert alerts == []
    _, (resolved,) = run(events(verdicts("q", first=7, config_digest="sha256:c1")), rule, state)
    assert resolved.labels == firing.labels
    assert resolved.fingerprint == firing.fingerprint
    assert resolved.starts_at_ms == firing.starts_at_ms
    assert resolved.generator_url == firing.generator_url


def test_a_lower_count_takes_effect_at_the_next_window() -> None:
    state, _ = run(events(verdicts("DDDD")), replace(RULE, firing_after_windows=5))
    _, alerts = run(events(verdicts("D", first=5)), replace(RULE, firing_after_windows=2), state)
    assert windows_of(alerts) == [("firing", 5)]
    assert [window.window_end_ms for window in alerts[0].evidence] == [EPOCH_MS + i * SLIDE_MS for i in range(1, 6)]


def test_case_endsat_too_short() -> None:
    given, expected = CASES["endsat-too-short"]["input"], CASES["endsat-too-short"]["expected"]
    offset = ends_at_offset_seconds(given["interval_s"], given["resend_s"])
    assert offset == expected["right_endsAt_offset_s"]
    # The published offset ends before the next resend, which is what resolved firing alerts; ours does not.
    assert (given["endsAt_offset_s"] < given["resend_s"]) is expected["spurious_resolve"]
    assert offset > given["resend_s"]
    ten_seconds = events(
        [
            replace(
                verdict("D", 0),
                slide_seconds=float(given["interval_s"]),
                window_end_ms=EPOCH_MS + i * given["interval_s"] * 1000,
            )
            for i in range(3)
        ]
    )
    _, (firing,) = run(ten_seconds, replace(RULE, resend_delay_seconds=given["resend_s"]))
    assert firing.ends_at_ms - firing.updated_at_ms == expected["right_endsAt_offset_s"] * 1000


def test_a_slide_longer_than_the_resend_delay_sets_ends_at() -> None:
    assert ends_at_offset_seconds(interval_seconds=300, resend_delay_seconds=60) == 1200


def test_annotations_say_what_happened() -> None:
    rule = replace(RULE, annotations={"dashboard": "https://grafana.example/d/1"})
    _, (firing, resolved) = run(events(verdicts("DDDqqq")), rule)
    assert firing.annotations == {
        "summary": "input_tokens of monitor chat has drifted",
        "description": "3 windows in a row with p below 0.01; the last: statistic 0.182, p 0.0007, n 412.",
        "runbook_url": "https://wiki.example/drift",
        "dashboard": "https://grafana.example/d/1",
    }
    assert resolved.annotations["summary"] == "input_tokens of monitor chat is back"
    assert resolved.annotations["description"].startswith("3 windows in a row without drift; the last: statistic 0.031")


def test_state_is_bounded() -> None:
    state, _ = run(events(verdicts("DDDqqDqq" * 200)))
    assert len(state.streak) < RULE.resolved_after_windows
    assert len(encode(state)) < 2048


def test_ids_follow_from_the_facts() -> None:
    _, (firing, _) = run(events(verdicts("DDDqqq")))
    again = run(events(verdicts("DDDqqq")))[1][0]
    assert firing.to_json() == again.to_json()
    assert rfc3339(firing.starts_at_ms).encode() in firing.to_json()
