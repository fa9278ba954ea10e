"""What keeps an alert firing (keep-firing-for, flap damping), what announces it (pending), what overrides its rule."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.alerts import Alert, AlertState
from schemas.verdicts import Verdict
from tests.alert_verdicts import EPOCH_MS, RULE, SLIDE_MS, events, verdicts
from udfs.alerts.lifecycle import step
from udfs.alerts.rule import AlertRule
from udfs.alerts.state import LifecycleState, decode, encode
from udfs.alerts.verdict_event import UnreadableVerdictError, decode_verdict

EAGER = replace(RULE, firing_after_windows=1, resolved_after_windows=1)


def run(judged: list[Verdict], rule: AlertRule) -> list[Alert]:
    """Step through, carrying the state through its encoding as the job does: a restart after every verdict."""
    state, out = LifecycleState(), []
    for event in events(judged):
        after, alerts = step(state, event, rule)
        state = decode(encode(after))
        out += alerts
    return out


def windows_of(alerts: list[Alert]) -> list[tuple[str, int]]:
    return [(str(alert.state), (alert.updated_at_ms - EPOCH_MS) // SLIDE_MS) for alert in alerts]


@pytest.mark.parametrize(
    ("timeline", "seconds", "expected"),
    [
        ("Dqqqqq", 0, [("firing", 1), ("resolved", 2)]),
        # 90 s after window 1 is window 4.
        ("Dqqqqq", 90, [("firing", 1), ("resolved", 4)]),
        ("DqDqqqq", 90, [("firing", 1), ("resolved", 6)]),  # the last drifted window counts
        ("Dqqqqq", 91, [("firing", 1), ("resolved", 5)]),
        ("Dqq", 90, [("firing", 1)]),
    ],
)
def test_keep_firing(timeline: str, seconds: float, expected: list[tuple[str, int]]) -> None:
    assert windows_of(run(verdicts(timeline), replace(EAGER, keep_firing_seconds=seconds))) == expected


def test_windows_that_wait_for_keep_firing_are_not_all_kept() -> None:
    rule = replace(RULE, keep_firing_seconds=86_400)
    state = LifecycleState()
    for event in events(verdicts("DDD" + "q" * 500)):
        state, _ = step(state, event, rule)
        assert len(state.streak) < 3


def test_a_flapping_alert_pages_no_more_and_stays_firing_until_it_is_quiet() -> None:
    rule = replace(EAGER, flap_firings=3, flap_within_seconds=600, flap_quiet_seconds=120)
    alerts = run(verdicts("DqDqDqDqDqqqqq"), rule)
    assert windows_of(alerts) == [
        ("firing", 1),
        ("resolved", 2),
        ("firing", 3),
        ("resolved", 4),
        ("firing", 5),
        ("resolved", 13),  # 120 s after window 9
    ]
    assert [("flapping" in alert.annotations) for alert in alerts] == [False] * 4 + [True, False]


def test_slow_repeats_are_no_flapping() -> None:
    rule = replace(EAGER, flap_firings=3, flap_within_seconds=119, flap_quiet_seconds=3600)
    assert windows_of(run(verdicts("DqDqDq"), rule))[-1] == ("resolved", 6)


def test_pending_says_that_a_row_began() -> None:
    alerts = run(verdicts("DqDDDq"), replace(RULE, publish_pending=True))
    assert windows_of(alerts) == [("pending", 1), ("pending", 3), ("firing", 5)]
    pending, firing = alerts[1:]
    assert pending.starts_at_ms == pending.active_at_ms == firing.active_at_ms
    assert pending.fingerprint == firing.fingerprint
    assert pending.ends_at_ms == pending.updated_at_ms + 240_000
    assert len({alert.alert_id for alert in alerts}) == 3
    assert run(verdicts("DqDDDq"), RULE)[0].state is AlertState.FIRING


def slo_verdicts(line: str, **alert: Any) -> list[Verdict]:
    return [replace(v, kind="slo", evidence={"alert": alert}) for v in verdicts(line)]


def test_an_slo_brings_its_own_alert() -> None:
    said = {
        "alertname": "TimeToFirstToken",
        "severity": "page",
        "owner": "serving",
        "runbook_url": "https://wiki.example/ttft",
        "firing_after_windows": 2,
        "resolved_after_windows": 1,
    }
    firing, resolved = run(slo_verdicts("DDq", **said), RULE)
    assert windows_of([firing, resolved]) == [("firing", 2), ("resolved", 3)]
    assert firing.labels["alertname"] == "TimeToFirstToken"
    assert (firing.labels["severity"], firing.labels["owner"]) == ("page", "serving")
    assert firing.annotations["runbook_url"] == "https://wiki.example/ttft"
    assert firing.annotations["summary"].endswith("breaches its objective")
    assert firing.never_suppress
    assert resolved.never_suppress
    assert Alert.from_json(firing.to_json()) == firing


def test_what_an_slo_leaves_open_is_the_rules() -> None:
    (firing,) = run(slo_verdicts("DDD", severity=None, never_suppress=False), RULE)
    assert firing.labels["severity"] == RULE.severity
    assert not firing.never_suppress


@pytest.mark.parametrize(
    ("alert", "field"),
    [
        ({"severity": "loud"}, "severity"),
        ({"firing_after_windows": 0}, "firing_after_windows"),
        ({"firing_after_windows": True}, "firing_after_windows"),
        ({"never_suppress": "yes"}, "never_suppress"),
        ({"alertname": " "}, "alertname"),
        ({"owner": 3}, "owner"),
    ],
)
def test_a_wrong_override_makes_a_dead_letter(alert: dict[str, Any], field: str) -> None:
    (judged,) = slo_verdicts("D", **alert)
    with pytest.raises(UnreadableVerdictError, match=rf"bad_value: evidence.alert.{field}"):
        decode_verdict(judged.to_json())


def test_alert_evidence_that_is_no_object_makes_a_dead_letter() -> None:
    judged = replace(verdicts("D")[0], evidence={"alert": "page"})
    with pytest.raises(UnreadableVerdictError, match="not an object"):
        decode_verdict(judged.to_json())
