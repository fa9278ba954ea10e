"""Alert labels: valid for Prometheus, distinct for distinct series."""

import re
from dataclasses import replace

import pytest

from tests.alert_verdicts import RULE
from udfs.alerts.labels import alert_labels, label_names


def test_ours_and_the_series() -> None:
    assert alert_labels(RULE, "chat", "input_tokens", {"service.name": "assistant"}) == {
        "alertname": "FeatureDrift",
        "feature": "input_tokens",
        "monitor": "chat",
        "owner": "ml-oncall",
        "service_name": "assistant",
        "severity": "warning",
    }


def test_empty_values_are_left_out() -> None:
    labels = alert_labels(replace(RULE, owner=""), "chat", "input_tokens", {"tenant": ""})
    assert "owner" not in labels
    assert "tenant" not in labels


def test_a_series_label_never_takes_one_of_ours() -> None:
    labels = alert_labels(RULE, "chat", "input_tokens", {"severity": "high", "exported_severity": "low"})
    assert labels["severity"] == "warning"
    assert labels["exported_severity"] == "low"
    assert labels["exported_severity_2"] == "high"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("service", "service"),
        ("_private", "_private"),
        ("service.name", "service_name"),
        ("1st", "label_1st"),
        ("__name__", "label___name__"),
        ("", "label_"),
        ("größe", "gr__e"),
        ("a\n", "a_"),
    ],
)
def test_sanitising(name: str, expected: str) -> None:
    assert label_names({name: 0}, reserved={}) == {name: expected}


def test_names_that_become_alike_stay_apart() -> None:
    names = label_names({"a.b": 0, "a-b": 0, "a_b": 0, "a_b_2": 0}, reserved={})
    assert names == {"a_b": "a_b", "a_b_2": "a_b_2", "a-b": "a_b_3", "a.b": "a_b_4"}
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in names.values())
