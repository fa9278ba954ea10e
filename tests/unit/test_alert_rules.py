"""The rules file: what it may say, and how a wrong one is refused."""

import textwrap
from pathlib import Path

import pytest

from jobs.alert import validate
from jobs.alert_rules import load_alert_rules
from jobs.kafka_client import ConfigurationError


def written(folder: Path, text: str) -> str:
    file = folder / "rules.yaml"
    file.write_text(textwrap.dedent(text))
    return str(file)


def test_the_committed_defaults() -> None:
    rules = load_alert_rules()
    assert rules.default.firing_after_windows == 3
    assert rules.default.resolved_after_windows == 3
    assert rules.default.severity == "warning"
    assert rules.monitors == {}
    assert rules.for_monitor("anything") is rules.default


def test_a_file_is_laid_over_the_defaults(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        forget_series_after_days: 7
        default:
          owner: platform
        monitors:
          chat:
            severity: critical
            firing_after_windows: 5
            runbook_url: https://wiki.example/chat
            annotations:
              dashboard: https://grafana.example/d/1
        """,
    )
    rules = load_alert_rules(file)
    assert (rules.forget_series_after_days, rules.max_clock_skew_seconds) == (7, 300)
    assert (rules.default.owner, rules.default.severity) == ("platform", "warning")
    chat = rules.for_monitor("chat")
    assert (chat.owner, chat.severity, chat.firing_after_windows, chat.resolved_after_windows) == (
        "platform",
        "critical",
        5,
        3,
    )
    assert chat.annotations == {"dashboard": "https://grafana.example/d/1"}
    assert rules.for_monitor("other") is rules.default


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load_alert_rules(written(tmp_path, "")) == load_alert_rules()


@pytest.mark.parametrize(
    ("text", "field", "remedy"),
    [
        ("default: {firing_after_windows: 0}", "default.firing_after_windows", "from 1 to 100"),
        ("default: {firing_after_windows: 101}", "default.firing_after_windows", "from 1 to 100"),
        ("default: {firing_after_windows: 2.5}", "default.firing_after_windows", "whole number"),
        ("default: {resolved_after_windows: true}", "default.resolved_after_windows", "whole number"),
        ("default: {resend_delay_seconds: 0}", "default.resend_delay_seconds", "above 0"),
        ("default: {resend_delay_seconds: .nan}", "default.resend_delay_seconds", "above 0"),
        ("monitors: {chat: {severity: criticl}}", "monitors.chat.severity", "critical, warning"),
        ("monitors: {chat: {severity: [critical]}}", "monitors.chat.severity", "critical, warning"),
        ("monitors: {chat: {severty: critical}}", "monitors.chat.severty", "mean severity"),
        ("monitors: {chat: {alertname: ''}}", "monitors.chat.alertname", "FeatureDrift"),
        ("monitors: {chat: {runbook_url: wiki}}", "monitors.chat.runbook_url", "http(s)"),
        ("monitors: {chat: {generator_url: 'https://x.example/{model}'}}", "monitors.chat.generator_url", "verdict_id"),
        ("monitors: {chat: {generator_url: 'https://x.example/{'}}", "monitors.chat.generator_url", "in braces"),
        ("monitors: {chat: {generator_url: 'no-scheme'}}", "monitors.chat.generator_url", "scheme"),
        ("monitors: {chat: {annotations: {a-b: x}}}", "monitors.chat.annotations", "name: text"),
        ("monitors: {chat: {annotations: {a: 1}}}", "monitors.chat.annotations", "name: text"),
        ("monitors: {chat: 3}", "monitors.chat", "example"),
        ("monitors: [chat]", "monitors", "example"),
        ("monitor: {}", "monitor", "mean monitors"),
        ("max_clock_skew_seconds: -1", "max_clock_skew_seconds", "above 0"),
        ("forget_series_after_days: soon", "forget_series_after_days", "days"),
        ("- a", "(root)", "example"),
        ("default: {", "line 1", "example"),
        ("monitors:\n  chat: {severity: info}\n  chat: {severity: page}\n", "line 3", "example"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, field: str, remedy: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_alert_rules(file)
    assert (caught.value.file, caught.value.field) == (file, field)
    assert remedy in caught.value.remedy


def test_a_missing_file_is_refused_by_validate(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigurationError) as caught:
        validate(["--bootstrap-servers", "127.0.0.1:1", "--rules", missing])
    assert (caught.value.file, caught.value.problem) == (missing, "No such file or directory")


def test_validate_returns_what_the_job_runs_with() -> None:
    rules, settings = validate(["--bootstrap-servers", "127.0.0.1:1", "--topic-prefix", "x-"])
    assert rules == load_alert_rules()
    assert settings.topic("alerts") == "x-alerts"
