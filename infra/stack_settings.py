"""What the embedded stack should be: conf/stack.yaml, with what the user laid over it, checked."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from infra.paths import CONF
from infra.ports import free_ports
from jobs.kafka_client import ConfigurationError

DEFAULTS = CONF / "stack.yaml"
PORT_VARIABLE = "SLACKTIDE_PORT_"


@dataclass(frozen=True)
class StackSettings:
    """Ports by name, and sizes. `source` is the file to name when one of them must change."""

    ports: Mapping[str, int]
    flink_slots: int
    prometheus: bool
    kafka_heap_mb: int
    memory_limit_mb: int
    source: str

    def with_offset(self, offset: int) -> "StackSettings":
        """The same settings with every port moved by `offset`. Raises ConfigurationError when one leaves the range."""
        moved = {name: port + offset for name, port in self.ports.items()}
        return replace(self, ports={name: _port("--port-offset", name, port) for name, port in moved.items()})

    def with_free_ports(self) -> "StackSettings":
        """The same settings on ports that are free now."""
        return replace(self, ports=dict(zip(self.ports, free_ports(len(self.ports)), strict=True)))

    def with_ports(self, chosen: Mapping[str, int], source: str) -> "StackSettings":
        """The same settings with single ports replaced. Raises ConfigurationError for a name there is none of."""
        ports = dict(self.ports)
        for name, port in chosen.items():
            if name not in ports:
                known = f"The ports are {', '.join(ports)}"
                raise ConfigurationError(source, f"ports.{name}", "is no port of the stack", known)
            ports[name] = _port(source, name, port)
        return replace(self, ports=ports)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data; `StackSettings(**data)` is the same again."""
        return asdict(self)


def load_settings(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> StackSettings:
    """Read conf/stack.yaml, lay `file` over it, then ports from the environment.

    Raises ConfigurationError naming file, field and remedy.

    >>> load_settings(environment={"SLACKTIDE_PORT_KAFKA": "29092"}).ports["kafka"]
    29092
    """
    defaults = yaml.safe_load(DEFAULTS.read_text())
    settings = StackSettings(**defaults, source=str(DEFAULTS))
    if file is not None:
        settings = _laid_over(settings, file)
    named = {k.removeprefix(PORT_VARIABLE).lower(): v for k, v in environment.items() if k.startswith(PORT_VARIABLE)}
    return settings.with_ports({name: _integer(PORT_VARIABLE, name, v) for name, v in named.items()}, "environment")


def _laid_over(settings: StackSettings, file: Path) -> StackSettings:
    try:
        chosen = yaml.safe_load(file.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(str(file), "(file)", f"can't be read: {error}", "Give a YAML file") from None
    if not isinstance(chosen, dict):
        raise ConfigurationError(str(file), "(root)", "is not a mapping", f"Write it like {DEFAULTS}")
    settings = replace(settings, source=str(file))
    for name, value in chosen.items():
        if name == "ports" and isinstance(value, dict):
            ports = {str(k): _integer(str(file), str(k), v) for k, v in value.items()}
            settings = settings.with_ports(ports, str(file))
        elif name == "prometheus" and isinstance(value, bool):
            settings = replace(settings, prometheus=value)
        elif name in ("flink_slots", "kafka_heap_mb", "memory_limit_mb") and type(value) is int and value > 0:
            change: dict[str, Any] = {name: value}
            settings = replace(settings, **change)
        else:
            problem = "is no setting of the stack, or has a value of the wrong kind"
            raise ConfigurationError(str(file), str(name), problem, f"Write it as {DEFAULTS} does")
    return settings


def _integer(source: str, name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ConfigurationError(source, f"ports.{name}", f"{value!r} is not a number", "Give a port number") from None


def _port(source: str, name: str, port: int) -> int:
    if not 1024 <= port <= 65_535:
        remedy = "Choose one from 1024 to 65535"
        raise ConfigurationError(source, f"ports.{name}", f"{port} is not a port a user may listen on", remedy)
    return port
