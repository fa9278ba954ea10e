"""The file of targets: what it says, and what is wrong with one, with file, field and remedy."""

from pathlib import Path

import pytest

from infra.delivery.targets import ALERTMANAGER, WEBHOOK, environment_secret, load_delivery
from jobs.kafka_client import ConfigurationError

ONE = "targets: [{name: am, kind: alertmanager, url: 'http://127.0.0.1:9093'}]\n"
HOOK = "targets: [{name: hook, kind: webhook, url: 'https://hooks.example/x', secret_from_environment: SECRET}]\n"


def written(folder: Path, body: str) -> Path:
    file = folder / "delivery.yaml"
    file.write_text(body)
    return file


def test_the_committed_file_is_a_local_alertmanager() -> None:
    settings = load_delivery(environment={})
    (target,) = settings.targets
    assert (target.kind, target.url) == (ALERTMANAGER, "http://127.0.0.1:9093")
    assert settings.policy.resend_delay_seconds == 60


def test_a_file_names_only_what_differs(tmp_path: Path) -> None:
    settings = load_delivery(written(tmp_path, ONE + "policy: {timeout_seconds: 3}"), environment={})
    assert (settings.policy.timeout_seconds, settings.policy.max_batch_alerts) == (3, 64)


def test_secrets_come_from_the_environment_and_are_never_shown(tmp_path: Path) -> None:
    body = HOOK.replace("}]", ", headers_from_environment: {Authorization: TOKEN}}]")
    (target,) = load_delivery(written(tmp_path, body), environment={"SECRET": "s3cret", "TOKEN": "t0ken"}).targets
    assert (target.secret, target.headers) == ("s3cret", {"Authorization": "t0ken"})
    assert "s3cret" not in repr(target)
    assert "t0ken" not in repr(target)


def test_addresses_of_the_command_line_take_the_place_of_the_files() -> None:
    settings = load_delivery(environment={}).with_addresses(["http://a:1", "http://b:2"], ["https://c/x"], "s")
    assert [(t.name, t.kind, t.url, t.secret) for t in settings.targets] == [
        ("alertmanager", ALERTMANAGER, "http://a:1", None),
        ("alertmanager-2", ALERTMANAGER, "http://b:2", None),
        ("webhook", WEBHOOK, "https://c/x", "s"),
    ]
    with pytest.raises(ConfigurationError, match="--webhook: 'c' is no http"):
        settings.with_addresses([], ["c"], None)
    assert settings.with_addresses([], [], None) is settings


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        ("", "(file)", "Write targets"),
        ("targets: []", "targets", "Name at least one"),
        ("targets: [3]", "targets[0]", "name: value"),
        (ONE.replace("alertmanager,", "alertmanger,"), "targets[0].kind", "Did you mean alertmanager"),
        (ONE.replace("am,", "'a b',"), "targets[0].name", "letters"),
        (ONE.replace("http://127.0.0.1:9093", "127.0.0.1:9093"), "targets[0].url", "https://"),
        (ONE.replace("127.0.0.1:9093", "u:p@am"), "targets[0].url", "headers_from_environment"),
        (ONE.replace("9093", "99999"), "targets[0].url", "https://"),
        (ONE.replace("}]", "}, {name: am, kind: webhook, url: 'http://x'}]"), "targets[1].name", "of its own"),
        (ONE.replace("}", ", secret_from_environment: X}"), "targets[0].secret_from_environment", "headers"),
        (ONE.replace("}", ", ca_file: nowhere.pem}"), "targets[0].ca_file", "PEM"),
        (
            ONE.replace("}", ", headers_from_environment: {'A B': X}}"),
            "targets[0].headers_from_environment.A B",
            "Auth",
        ),
        (ONE.replace("}", ", of: incidents}"), "targets[0].of", "groups by itself"),
        (HOOK.replace("}", ", of: incident}"), "targets[0].of", "Did you mean incidents"),
        (HOOK, "targets[0].secret_from_environment", "Export it"),
        (HOOK.replace("SECRET", "LINES"), "targets[0].secret_from_environment", "nothing else"),
        (ONE + "policy: {timeout_seconds: 0}", "policy.timeout_seconds", "above 0"),
        (ONE + "policy: {timeout_seconds: .nan}", "policy.timeout_seconds", "number"),
        (ONE + "policy: {max_batch_alerts: 0}", "policy.max_batch_alerts", "from 1"),
        (ONE + "policy: {longest_wait_seconds: 0.1}", "policy.longest_wait_seconds", "at least"),
        (ONE + "policy: {retries: 3}", "policy.retries", "Known are"),
        (ONE + "polcy: {}", "polcy", "Did you mean policy"),
    ],
)
def test_what_is_wrong_is_said_with_file_field_and_remedy(tmp_path: Path, body: str, field: str, remedy: str) -> None:
    file = written(tmp_path, body)
    with pytest.raises(ConfigurationError) as caught:
        load_delivery(file, environment={"LINES": "a\nb"})
    assert (caught.value.file, caught.value.field) == (str(file), field)
    assert remedy in caught.value.remedy


def test_a_secret_that_is_set_to_nothing_is_a_mistake() -> None:
    assert environment_secret("S", {}) is None
    with pytest.raises(ConfigurationError, match="is empty"):
        environment_secret("S", {"S": ""})
