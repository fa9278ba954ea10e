"""Incidents on timelines worked out by hand: grouping, inhibition, duplicates, silences, changes, storms."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.alerts import Alert, AlertState, SuppressionReason
from schemas.changes import Change, ChangeKind
from schemas.matchers import parse_matcher
from schemas.silences import Silence
from tests.incident_alerts import BY_FEATURE, POLICY, Scope, at, firing, resolved
from udfs.alerts.cause_signals import Observation, ReferenceFigures
from udfs.alerts.fingerprint import fingerprint, scope_fingerprint
from udfs.alerts.incident import Context
from udfs.alerts.incident_policy import ChangeRule, DeduplicationRule
from udfs.alerts.related import duplicates

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/alerts_slo.json").read_text())}
DEPLOY = Change("ci", "1", ChangeKind.DEPLOY, "chat", at(0), summary="chat 1.8")
RULES = {ChangeKind.DEPLOY: ChangeRule("suppress", window_seconds=600, max_window_seconds=1800)}
ON_DEPLOY = replace(POLICY, changes=RULES)


def silence(starts: float, ends: float, *matchers: str, silence_id: str = "s1") -> Silence:
    return Silence(
        silence_id, tuple(map(parse_matcher, matchers)), at(starts), at(ends), at(starts), "ann", "load test"
    )


def test_one_alert_is_one_incident_with_a_page_and_an_end() -> None:
    scope, alert = Scope(), firing(100)
    scope.tick(101, alert)
    scope.tick(200, resolved(alert, 190))
    assert scope.published == [("input_tokens", "firing", 100), ("input_tokens", "resolved", 190)]
    assert scope.told == [("opened", 100)]
    scope.tick(490)  # quiet for 300 s at 490
    assert scope.told == [("opened", 100), ("resolved", 490)]
    assert len({alert.incident_id for alert in scope.alerts} | {told.incident_id for told in scope.incidents}) == 1
    assert scope.entries == {}
    scope.tick(600, firing(599))
    assert scope.incidents[-1].event == "opened"
    assert scope.incidents[-1].incident_id != scope.incidents[0].incident_id


def test_a_new_alert_before_the_incident_is_over_makes_no_second_page() -> None:
    scope, first = Scope(), firing(100)
    scope.tick(101, first)
    scope.tick(200, resolved(first, 190))
    scope.tick(300, firing(290, "output_tokens"))
    scope.tick(700)
    assert scope.told == [("opened", 100), ("updated", 400)]
    assert len({alert.incident_id for alert in scope.alerts}) == 1


def test_case_partial_resolve() -> None:
    """One of two resolves: at the next interval the group is firing, and each alert says its own status."""
    scope, a, b = Scope(), firing(100, "a"), firing(100, "b")
    scope.tick(101, a, b)
    scope.tick(200, resolved(a, 150))
    assert scope.told == [("opened", 100)]
    scope.tick(400)
    assert scope.told == [("opened", 100), ("updated", 400)]
    body = json.loads(scope.incidents[-1].to_json())
    expected = CASES["partial-resolve"]["expected"]
    assert body["status"] == expected["group_status"]
    assert {each["labels"]["feature"]: each["status"] for each in body["alerts"]} == expected["payload_statuses"]
    assert body["counts"] == {"firing": 1, "suppressed": 0, "resolved": 1, "not_listed": 0}
    scope.tick(1000)
    assert scope.told == [("opened", 100), ("updated", 400)]  # nothing new, nothing told


def test_a_graver_alert_is_told_of_at_once() -> None:
    scope = Scope(policy=replace(POLICY, inhibition=()))
    scope.tick(101, firing(100, "a"))
    scope.tick(131, firing(130, "b", severity="page"))
    scope.tick(161, firing(160, "c", severity="critical"))
    scope.tick(430)
    assert scope.told == [("opened", 100), ("escalated", 130), ("updated", 430)]
    assert [told.severity for told in scope.incidents] == ["warning", "page", "page"]


def test_a_page_inhibits_warnings_in_the_same_tick_whatever_comes_first() -> None:
    warning, page = firing(100, "a"), firing(100, "b", severity="page")
    for order in ((warning, page), (page, warning)):
        scope = Scope()
        scope.tick(101, *order)
        assert sorted(scope.published) == [("a", "suppressed", 100), ("b", "firing", 100)]
        (kept,) = (alert for alert in scope.alerts if alert.state is AlertState.SUPPRESSED)
        assert kept.suppression is not None
        assert (kept.suppression.reason, kept.suppression.by) == (SuppressionReason.INHIBITION, page.fingerprint)
        assert json.loads(kept.to_json())["status"] == {
            "state": "suppressed",
            "silencedBy": [],
            "inhibitedBy": [page.fingerprint],
            "mutedBy": [],
        }
        scope.tick(200, resolved(page, 190))
        assert scope.published[-1] == ("a", "firing", 190)  # nothing graver any more


def test_a_page_takes_back_a_warning_that_fired_before_and_never_one_of_another_service() -> None:
    warning, page = firing(100, "a"), firing(130, "b", severity="page")
    scope = Scope()
    scope.tick(101, warning)
    scope.tick(131, page)
    assert scope.published[0] == ("a", "firing", 100)
    assert sorted(scope.published[1:]) == [("a", "suppressed", 130), ("b", "firing", 130)]
    scope.tick(200, resolved(page, 190))
    again = scope.alerts[-1]
    assert (again.state, again.updated_at_ms, again.starts_at_ms) == (AlertState.FIRING, at(190), at(100))
    assert len({alert.alert_id for alert in scope.alerts}) == len(scope.alerts)
    other = Scope()
    other.tick(101, firing(100, "a", labels={"service_name": "search"}), firing(100, "b", severity="page"))
    assert {state for _, state, _ in other.published} == {"firing"}


def test_case_dedup_rule_ignored() -> None:
    given, expected = CASES["dedup-rule-ignored"]["input"], CASES["dedup-rule-ignored"]["expected"]
    alerts = [
        firing(100, severity="page", labels={"alertname": each["name"], "service": each["service"]})
        for each in given["alerts"]
    ]
    assert len({alert.fingerprint for alert in alerts}) == len(alerts)
    rule = DeduplicationRule((), tuple(given["fingerprint_fields"]))
    kept = [alert for alert in alerts if alert.fingerprint not in duplicates(alerts, frozenset(), [rule])]
    assert len(kept) == expected["groups"]
    scope = Scope(policy=replace(POLICY, deduplication=(rule,)))
    scope.tick(101, *alerts)
    assert sorted(state for _, state, _ in scope.published) == ["firing", "suppressed"]


def test_a_duplicate_takes_over_when_the_first_resolves() -> None:
    one, two = firing(100, labels={"pod": "a"}), firing(110, labels={"pod": "b"})
    scope = Scope(policy=replace(POLICY, deduplication=(BY_FEATURE,)))
    scope.tick(120, one, two)
    scope.tick(200, resolved(one, 190))
    assert [(a.labels["pod"], str(a.state)) for a in scope.alerts] == [
        ("a", "firing"),
        ("b", "suppressed"),
        ("a", "resolved"),
        ("b", "firing"),
    ]
    assert scope.told == [("opened", 100)]


def test_cases_of_fingerprints() -> None:
    empty, churn = CASES["fp-empty-label"], CASES["fp-pod-churn"]
    assert [fingerprint(labels) for labels in empty["input"]] == [empty["expected"]["both"]] * 2
    one, two = churn["input"]
    assert fingerprint(one) != fingerprint(two)
    ignoring = churn["expected"]["scope_fingerprint_equal_ignoring"]
    assert scope_fingerprint(one, ignoring) == scope_fingerprint(two, ignoring)


def test_a_silence_keeps_an_alert_back_until_it_ends() -> None:
    scope = Scope(context=Context(silences=(silence(0, 300, "service_name=chat"),)))
    alert = firing(100)
    scope.tick(101, alert)
    scope.tick(301)
    assert scope.published == [("input_tokens", "suppressed", 100), ("input_tokens", "firing", 300)]
    (kept, _) = scope.alerts
    assert kept.suppression is not None
    assert (kept.suppression.by, kept.suppression.until_ms) == ("s1", at(300))
    assert kept.suppression.detail == "silenced by ann until 2023-11-14T22:18:00.000Z: load test"
    assert scope.told == [("opened", 300)]


def test_a_silence_that_comes_later_takes_a_firing_alert_back_at_its_start() -> None:
    scope = Scope()
    scope.tick(101, firing(100))
    scope.context = Context(silences=(silence(150, 300, 'feature=~"input_.*"'),))
    scope.tick(140)
    scope.tick(160)
    scope.tick(310)
    assert [each[1:] for each in scope.published] == [("firing", 100), ("suppressed", 150), ("firing", 300)]
    assert scope.alerts[-1].episode == 1
    assert len({alert.alert_id for alert in scope.alerts}) == 3


def test_an_expired_silence_lets_go() -> None:
    scope = Scope(context=Context(silences=(silence(0, 9000, "service_name=chat"),)))
    scope.tick(101, firing(100))
    scope.context = Context(silences=(silence(0, 120, "service_name=chat"),))
    scope.tick(130)
    assert [state for _, state, _ in scope.published] == ["suppressed", "firing"]


def test_resolved_while_silenced_says_that_nobody_was_told() -> None:
    scope = Scope(context=Context(silences=(silence(0, 9000, "service_name=chat"),)))
    alert = firing(100)
    scope.tick(101, alert)
    scope.tick(200, resolved(alert, 190))
    scope.tick(900)
    assert [state for _, state, _ in scope.published] == ["suppressed", "resolved"]
    assert scope.alerts[-1].suppression is not None
    assert scope.incidents == []
    assert scope.entries == {}


def test_a_change_suppresses_what_it_explains_for_a_bounded_time() -> None:
    scope = Scope(policy=ON_DEPLOY, context=Context(changes=(DEPLOY,)))
    alert = firing(100)
    scope.tick(101, alert)
    scope.tick(601)
    assert scope.published == [("input_tokens", "suppressed", 100), ("input_tokens", "firing", 600)]
    (kept, _) = scope.alerts
    assert kept.suppression is not None
    assert kept.suppression.reason is SuppressionReason.CHANGE
    assert kept.suppression.by == DEPLOY.change_id
    assert "deploy of chat" in kept.suppression.detail


@pytest.mark.parametrize(
    ("alert", "change"),
    [
        (firing(100, never_suppress=True), DEPLOY),  # an SLO's
        (firing(100, active_at_ms=at(-1)), DEPLOY),  # began before it
        (firing(700), DEPLOY),  # its time is over
        (firing(100), replace(DEPLOY, service="search")),  # another service, no dependency declared
        (firing(100, labels={"version": "1.7"}), replace(DEPLOY, labels={"version": "1.8"})),
        (firing(100), replace(DEPLOY, kind=ChangeKind.INDEX_REBUILD)),  # no rule
        # It may give itself any end: max_window_seconds is the policy's.
        (firing(1900), replace(DEPLOY, ends_ms=at(1e6))),
    ],
)
def test_what_a_change_does_not_explain_fires(alert: Alert, change: Change) -> None:
    scope = Scope(policy=ON_DEPLOY, context=Context(changes=(change,)))
    scope.tick(2000, alert)
    assert [state for _, state, _ in scope.published] == ["firing"]


def test_changes_one_after_another_keep_an_alert_back_no_longer_than_allowed() -> None:
    steps = tuple(replace(DEPLOY, event_id=str(i), time_ms=at(i * 300 - 600)) for i in range(3))
    policy = replace(ON_DEPLOY, max_suppressed_seconds=200)
    scope = Scope(policy=policy, context=Context(changes=steps))
    scope.tick(900, firing(100))
    assert scope.published == [("input_tokens", "suppressed", 100), ("input_tokens", "firing", 300)]


def test_a_change_never_takes_back_what_fired() -> None:
    scope = Scope(policy=ON_DEPLOY)
    scope.tick(101, firing(100))
    scope.context = Context(changes=(DEPLOY,))
    scope.tick(200)
    assert [state for _, state, _ in scope.published] == ["firing"]


@pytest.mark.parametrize(
    ("figures", "state"),
    [
        ({"p_value": 0.001, "alpha": 0.01}, "suppressed"),
        ({"p_value": 0.00001, "alpha": 0.01}, "firing"),  # below 0.01^2
        ({"p_value": 0.0, "alpha": 0.01}, "firing"),
        ({"statistic": 1.9, "threshold": 1.0, "p_value": None}, "suppressed"),
        ({"statistic": 2.0, "threshold": 1.0, "p_value": None}, "firing"),
        ({"statistic": 0.6, "threshold": 1.0, "p_value": None}, "suppressed"),  # a limit from below
        ({"statistic": 0.5, "threshold": 1.0, "p_value": None}, "firing"),
        ({"statistic": -1.5, "threshold": -1.0, "p_value": None}, "suppressed"),
        ({"statistic": -2.0, "threshold": -1.0, "p_value": None}, "firing"),
        ({"statistic": None, "p_value": None}, "suppressed"),
    ],
)
def test_a_raised_bar(figures: dict[str, float | None], state: str) -> None:
    rules = {ChangeKind.DEPLOY: ChangeRule("raise_bar", 600, 1800, bar_factor=2)}
    alert = firing(100)
    alert = replace(alert, evidence=(replace(alert.evidence[-1], **figures),))
    scope = Scope(policy=replace(POLICY, changes=rules), context=Context(changes=(DEPLOY,)))
    scope.tick(101, alert)
    assert [found for _, found, _ in scope.published] == [state]


def test_a_storm_is_one_page_with_a_count_and_few_names() -> None:
    alerts = [firing(100 + i % 3, f"feature_{i}", severity="page" if i == 9_999 else "ticket") for i in range(10_000)]
    scope = Scope(policy=replace(POLICY, inhibition=(), max_open_alerts=9_000))
    scope.tick(110, *alerts)
    assert len(scope.alerts) == 10_000
    assert len(scope.entries) == 9_000
    assert len({alert.incident_id for alert in scope.alerts}) == 1
    assert scope.told[0] == ("opened", 100)
    assert all(len(told.alerts) == 10 for told in scope.incidents)
    scope.tick(500)
    last = scope.incidents[-1]
    assert last.counts == {"firing": 9_000, "suppressed": 0, "resolved": 0, "not_listed": 1_000}
    assert last.truncated == 9_990
    assert len(last.to_json()) < 20_000
    ends = [resolved(alert, 600) for alert in alerts]
    scope.tick(601, *ends)
    scope.tick(901)
    assert scope.incidents[-1].event == "resolved"
    assert scope.entries == {}


def test_causes_are_ranked_in_the_alert_and_its_incident() -> None:
    seen = Observation(
        "prompt_entropy", "s", "v1", at(90), True, value=6.0, reference=ReferenceFigures(5.0, 0.5, 4.0, 6.0)
    )
    scope = Scope(context=Context(changes=(DEPLOY,), observations=(seen,)))
    scope.tick(101, firing(100))
    (alert,) = scope.alerts
    assert alert.root_cause is not None
    assert [cause["name"] for cause in alert.root_cause["causes"]] == ["prompt_entropy", DEPLOY.change_id]
    assert alert.annotations["root_cause"].startswith(
        "Likeliest causes: prompt_entropy 1.00, deploy of chat (chat 1.8)"
    )
    assert scope.incidents[0].root_cause == alert.root_cause
    assert Alert.from_json(alert.to_json()) == replace(alert, root_cause=json.loads(alert.to_json())["root_cause"])


def test_a_resolution_of_what_nobody_remembers_is_passed_on() -> None:
    """An alert that fired before the upgrade to two stages."""
    scope = Scope()
    scope.tick(200, resolved(firing(100), 190))
    assert scope.published == [("input_tokens", "resolved", 190)]
    assert scope.alerts[0].incident_id
    assert scope.incidents == []


def test_nobody_is_told_of_a_newly_suppressed_alert() -> None:
    scope = Scope(policy=replace(POLICY, deduplication=(BY_FEATURE,)))
    scope.tick(101, firing(100, labels={"pod": "a"}))
    scope.tick(111, firing(110, labels={"pod": "b"}))
    scope.tick(2000)
    assert scope.told == [("opened", 100)]
