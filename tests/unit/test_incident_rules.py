"""The incident sections of the rules file: what they mean, and how a wrong one is refused."""

import pickle
import textwrap
from pathlib import Path

import pytest

from jobs.alert import validate
from jobs.alert_rules import load_alert_rules
from jobs.kafka_client import ConfigurationError
from schemas.changes import ChangeKind
from udfs.alerts.cause_signals import CauseSignal
from udfs.alerts.incident_policy import SEVERITY_RANK
from udfs.alerts.root_cause import CausePolicy
from udfs.alerts.rule_overrides import SEVERITIES


def written(folder: Path, text: str) -> str:
    file = folder / "rules.yaml"
    file.write_text(textwrap.dedent(text))
    return str(file)


def test_the_committed_defaults() -> None:
    policy = load_alert_rules().incidents
    assert policy.incident_labels == ("service_name",)
    assert set(policy.changes) == set(ChangeKind)
    assert all(rule.max_window_seconds <= 7200 for rule in policy.changes.values())
    (rule,) = policy.inhibition
    assert rule.equal == ("service_name", "model")
    assert policy.deduplication == ()
    assert set(SEVERITY_RANK) == set(SEVERITIES)
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_file_is_laid_over_the_defaults(tmp_path: Path) -> None:
    policy = load_alert_rules(
        written(
            tmp_path,
            """
            incidents:
              labels: [service_name, region]
              top_alerts: 3
            deduplication:
              - matchers: ['alertname="FeatureDrift"']
                fingerprint_fields: [service_name, feature]
            inhibition: []
            changes:
              deploy: {bar_factor: 3}
              flag_change: null
            root_cause:
              half_life_seconds: 60
              kind_weights: {deploy: 0.5}
              signals: [{field: perplexity, normalisation: z_score, wrong_side: above, weight: 1}]
            """,
        )
    ).incidents
    assert policy.incident_labels == ("service_name", "region")
    assert (policy.top_alerts, policy.hold_seconds) == (3, 0.5)
    assert policy.deduplication[0].fingerprint_fields == ("service_name", "feature")
    assert policy.inhibition == ()
    assert (policy.changes[ChangeKind.DEPLOY].bar_factor, policy.changes[ChangeKind.DEPLOY].window_seconds) == (3, 900)
    assert ChangeKind.FLAG_CHANGE not in policy.changes
    assert ChangeKind.INDEX_REBUILD in policy.changes
    assert (policy.causes.half_life_seconds, policy.causes.kind_weights) == (60, {"deploy": 0.5})
    assert policy.causes.signals == (CauseSignal("perplexity", "z_score", "above", 1),)
    assert policy.causes.max_causes == 10


def test_the_committed_root_cause_is_the_codes() -> None:
    """Whoever calls the ranking without a file gets what the file says."""
    assert load_alert_rules().incidents.causes == CausePolicy()


def test_dependencies_come_from_their_own_file(tmp_path: Path) -> None:
    file = tmp_path / "dependencies.yaml"
    file.write_text("services: {chat: [retriever]}")
    rules, _ = validate(["--bootstrap-servers", "127.0.0.1:1", "--dependencies", str(file)])
    assert rules.incidents.dependencies.distance("chat", "retriever") == 1
    file.write_text("services: {chat: retriever}")
    with pytest.raises(ConfigurationError, match="services"):
        validate(["--bootstrap-servers", "127.0.0.1:1", "--dependencies", str(file)])


def test_the_committed_changes_explain_what_they_say() -> None:
    changes = load_alert_rules().incidents.changes

    def explains(kind: ChangeKind, feature: str) -> bool:
        return all(matcher.matches({"feature": feature}) for matcher in changes[kind].explains)

    assert explains(ChangeKind.HIGH_CONCURRENCY, "p95(end_to_end_seconds)")
    assert not explains(ChangeKind.HIGH_CONCURRENCY, "factuality")
    assert explains(ChangeKind.TRAINING_DATA_UPDATE, "input_tokens")
    assert not explains(ChangeKind.TRAINING_DATA_UPDATE, "time_to_first_token_seconds")
    assert explains(ChangeKind.INDEX_REBUILD, "mean(retrieval_recall)")
    assert not explains(ChangeKind.INDEX_REBUILD, "is_error")
    assert explains(ChangeKind.DEPLOY, "anything")


@pytest.mark.parametrize(
    ("text", "field", "remedy"),
    [
        ("incidents: {label: [a]}", "incidents.label", "mean labels"),
        ("incidents: {labels: []}", "incidents.labels", "at least one"),
        ("incidents: {labels: [service.name]}", "incidents.labels", "letters, digits"),
        ("incidents: {labels: service_name}", "incidents.labels", "a line"),
        ("incidents: {hold_seconds: 0}", "incidents.hold_seconds", "above 0"),
        ("incidents: {hold_seconds: .nan}", "incidents.hold_seconds", "number"),
        ("incidents: {top_alerts: 0}", "incidents.top_alerts", "from 1"),
        ("incidents: {max_open_alerts: 1000000}", "incidents.max_open_alerts", "at most"),
        ("incidents: []", "incidents", "name: value"),
        ("inhibition: {source: a}", "inhibition", "a line"),
        ("inhibition: [{source: ['severity=page'], target: []}]", "inhibition[0].target", "at least one"),
        ("inhibition: [{source: ['severity=page'], target: ['a=b']}]", "inhibition[0].equal", "no default"),
        ("inhibition: [{source: ['severity'], target: ['a=b'], equal: [a]}]", "inhibition[0].source", "name=value"),
        ("inhibition: [{source: ['a=~('], target: ['a=b'], equal: [a]}]", "inhibition[0].source", "name=value"),
        ("deduplication: [{fingerprint_fields: []}]", "deduplication[0].fingerprint_fields", "at least one"),
        ("changes: {deploi: {action: suppress}}", "changes.deploi", "mean deploy"),
        ("changes: {deploy: {action: ignore}}", "changes.deploy.action", "Write one"),
        ("changes: {deploy: {bar_factor: 1}}", "changes.deploy.bar_factor", "above 1"),
        ("changes: {deploy: {window_seconds: 9999}}", "changes.deploy.max_window_seconds", "at least window_seconds"),
        ("changes: {deploy: {explain: ['a=b']}}", "changes.deploy.explain", "mean explains"),
        ("root_cause: {half_life: 3}", "root_cause.half_life", "mean half_life_seconds"),
        ("root_cause: {dependency_decay: 1}", "root_cause.dependency_decay", "above 0"),
        ("root_cause: {kind_weights: {deploi: 1}}", "root_cause.kind_weights", "mean deploy"),
        ("root_cause: {signals: [{field: a}]}", "root_cause.signals[0].normalisation", "no default"),
        ("root_cause: {signals: perplexity}", "root_cause.signals", "a line"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, field: str, remedy: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_alert_rules(file)
    assert (caught.value.file, caught.value.field) == (file, field)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("default: {keep_firing_seconds: -1}", "default.keep_firing_seconds"),
        ("default: {keep_firing_seconds: false}", "default.keep_firing_seconds"),
        ("default: {flap_firings: 1}", "default.flap_firings"),
        ("default: {flap_quiet_seconds: 0}", "default.flap_quiet_seconds"),
        ("default: {publish_pending: 'yes'}", "default.publish_pending"),
    ],
)
def test_a_wrong_hold_is_refused(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_alert_rules(written(tmp_path, text))
    assert caught.value.field == field
