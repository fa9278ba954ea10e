"""Ports and sizes: defaults, a file laid over them, the environment, options; what is wrong is named."""

from pathlib import Path

import pytest

from infra.stack_settings import DEFAULTS, StackSettings, load_settings
from jobs.kafka_client import ConfigurationError


def test_defaults_have_different_ports() -> None:
    ports = load_settings(environment={}).ports
    assert len(set(ports.values())) == len(ports)
    assert {"kafka", "flink_web"} <= set(ports)


def test_file_and_environment_are_laid_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("ports: {kafka: 29092, flink_web: 28081}\nflink_slots: 6\nprometheus: false\n")
    settings = load_settings(file, {"SLACKTIDE_PORT_FLINK_WEB": "38081"})
    assert settings.ports["kafka"] == 29092
    assert settings.ports["flink_web"] == 38081
    assert settings.ports["flink_rpc"] == load_settings(environment={}).ports["flink_rpc"]
    assert (settings.flink_slots, settings.prometheus, settings.source) == (6, False, str(file))


def test_offset_moves_every_port() -> None:
    settings = load_settings(environment={})
    assert settings.with_offset(100).ports == {name: port + 100 for name, port in settings.ports.items()}


def test_free_ports_are_all_different() -> None:
    ports = load_settings(environment={}).with_free_ports().ports
    assert len(set(ports.values())) == len(ports)


def test_settings_survive_the_way_through_json() -> None:
    settings = load_settings(environment={})
    assert StackSettings(**settings.to_json()) == settings


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("ports: {kafak: 1234}", "ports.kafak"),
        ("ports: {kafka: many}", "ports.kafka"),
        ("ports: {kafka: 80}", "ports.kafka"),
        ("ports: {kafka: 70000}", "ports.kafka"),
        ("flink_slots: 0", "flink_slots"),
        ("flink_slots: true", "flink_slots"),
        ("flink_slot: 4", "flink_slot"),
        ("prometheus: 1", "prometheus"),
        ("- 1", "(root)"),
        ("ports: {", "(file)"),
    ],
)
def test_a_wrong_file_is_refused_naming_file_and_field(tmp_path: Path, text: str, field: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(file, {})
    assert (caught.value.file, caught.value.field) == (str(file), field)
    assert caught.value.remedy


def test_an_offset_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--port-offset"):
        load_settings(environment={}).with_offset(60_000)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        load_settings(tmp_path / "none.yaml", {})


def test_the_defaults_file_is_where_messages_say() -> None:
    assert DEFAULTS.exists()
