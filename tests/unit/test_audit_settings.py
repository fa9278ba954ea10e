"""The audit job's command line: what is refused, with which remedy, and what Spark's Kafka source is told."""

from pathlib import Path

import pytest

from jobs.audit import validate
from jobs.kafka_client import ConfigurationError
from schemas.model_card import CARDS_FOLDER

CARD = CARDS_FOLDER / "azure_llm_conversation_2023.json"
KAFKA = ["--bootstrap-servers", "kafka.example:9092"]


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    return [*KAFKA, "--warehouse", str(tmp_path / "audit")]


def test_source_reads_only_what_was_committed_and_all_of_it(argv: list[str]) -> None:
    options = validate([*argv, "--topic-prefix", "eu-"]).source_options
    assert options["kafka.bootstrap.servers"] == "kafka.example:9092"
    assert options["kafka.isolation.level"] == "read_committed"
    topics = ["verdicts", "alerts", "incidents", "scores", "decisions", "feedback", "dead_letters", "books"]
    assert options["subscribe"] == ",".join(f"eu-{topic}" for topic in topics)
    assert (options["startingOffsets"], options["failOnDataLoss"]) == ("earliest", "true")


def test_security_settings_pass_through(argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_PASSWORD", "p4ss")
    file = tmp_path / "kafka.yaml"
    file.write_text(
        "security.protocol: SASL_SSL\nsasl.mechanisms: SCRAM-SHA-256\nsasl.username: audit\n"
        "sasl.password: ${AUDIT_PASSWORD}\nssl.ca.location: /etc/ca.pem\n"
    )
    settings = validate([*argv, "--kafka-config", str(file)])
    options = settings.source_options
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.ssl.truststore.location"] == "/etc/ca.pem"
    assert "p4ss" in options["kafka.sasl.jaas.config"]
    assert "p4ss" not in repr(settings)


def test_a_uri_is_a_warehouse_too() -> None:
    settings = validate([*KAFKA, "--warehouse", "s3a://bucket/audit/"])
    assert settings.warehouse == "s3a://bucket/audit"
    assert settings.checkpoint == "s3a://bucket/audit/_checkpoints/audit"


@pytest.mark.parametrize(
    ("more", "field", "remedy"),
    [
        (["--trigger-seconds", "0"], "--trigger-seconds", "more than 0"),
        (["--trigger-seconds", "nan"], "--trigger-seconds", "more than 0"),
        (["--max-records-per-batch", "0"], "--max-records-per-batch", "1 or more"),
        (["--heap-mb", "64"], "--heap-mb", "480 or more"),
        (["--jars", "/nowhere"], "--jars", "make setup"),
        (["--checkpoint", "/dev/null"], "--checkpoint", "Give a folder"),
        (["--warehouse", "/dev/null"], "--warehouse", "Give a folder"),
        (["--warehouse", "a`b"], "--warehouse", "another path"),
        (["--model-card", "/nowhere.json"], "(file)", "model card"),
        (["--kafka-config", "/nowhere.yaml"], "(file)", "path that exists"),
    ],
)
def test_bad_command_line_is_refused_before_anything_starts(
    argv: list[str], more: list[str], field: str, remedy: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        validate([*argv, *more])
    assert caught.value.field == field
    assert remedy in caught.value.remedy


def test_a_broken_card_names_file_and_field(argv: list[str], tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text(CARD.read_text().replace('"owners": ["slacktide maintainers"]', '"owners": []'))
    with pytest.raises(ConfigurationError, match="owners") as caught:
        validate([*argv, "--model-card", str(CARD), str(card)])
    assert caught.value.file == str(card)


def test_cards_are_loaded(argv: list[str]) -> None:
    (card,) = validate([*argv, "--model-card", str(CARD)]).cards
    assert card.document["name"] == "azure-llm-conversation-2023"
