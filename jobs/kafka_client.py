"""Kafka client settings: one file of librdkafka names, turned into what each client understands.

A user writes one YAML file of `name: value` with librdkafka's spellings (`security.protocol`, `sasl.username`, ...).
`${NAME}` takes a value from the environment, which is where secrets belong. `for_librdkafka` serves
confluent-kafka, `for_java` serves Flink's and Spark's clients.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Where flink-sql-connector-kafka keeps its copy of Kafka's classes; Java finds login modules by name only.
_FLINK_SHADING = "org.apache.flink.kafka.shaded."
_SECRET = re.compile(r"password|secret|token|jaas|\.pem$|key", re.IGNORECASE)


class ConfigurationError(ValueError):
    """A configuration that must not start a job: names the file, the field and the remedy."""

    def __init__(self, file: str, field_name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{file}: {field_name}: {problem}. {remedy}")
        self.file, self.field, self.problem, self.remedy = file, field_name, problem, remedy


@dataclass(frozen=True)
class KafkaClient:
    """Where the broker is and how to speak to it. `repr` never shows a secret."""

    bootstrap_servers: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def for_librdkafka(self) -> dict[str, str]:
        """Settings for confluent-kafka."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.settings}

    def for_java(self, shading: str = "") -> dict[str, str]:
        """Settings for the Java clients; PEM files and SASL credentials are translated.

        `shading` is put before the login module's class name, for a client whose classes were moved.
        """
        java = {"bootstrap.servers": self.bootstrap_servers}
        rest = dict(self.settings)
        java |= _java_sasl(rest, shading)
        java |= _java_ssl(rest)
        return java | rest

    def for_flink(self) -> dict[str, str]:
        """Settings for the client inside flink-sql-connector-kafka."""
        return self.for_java(_FLINK_SHADING)

    def __repr__(self) -> str:
        shown = {k: "***" if _SECRET.search(k) else v for k, v in self.settings.items()}
        return f"KafkaClient({self.bootstrap_servers!r}, {shown!r})"


def _java_sasl(rest: dict[str, str], shading: str) -> dict[str, str]:
    """Take the SASL names out of `rest` and return Java's."""
    mechanism = rest.pop("sasl.mechanisms", None) or rest.pop("sasl.mechanism", None)
    username, password = rest.pop("sasl.username", None), rest.pop("sasl.password", None)
    java = {"sasl.mechanism": mechanism} if mechanism else {}
    if username is not None and password is not None and mechanism in _LOGIN_MODULES:
        module = shading + _LOGIN_MODULES[mechanism]
        java["sasl.jaas.config"] = (
            f'{module} required username="{_jaas_escaped(username)}" password="{_jaas_escaped(password)}";'
        )
    return java


def _jaas_escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _java_ssl(rest: dict[str, str]) -> dict[str, str]:
    """Take librdkafka's PEM paths out of `rest` and return Java's PEM stores."""
    java: dict[str, str] = {}
    if ca := rest.pop("ssl.ca.location", None):
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    certificate, key = rest.pop("ssl.certificate.location", None), rest.pop("ssl.key.location", None)
    if certificate and key:
        java |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(certificate).read_text(),
            "ssl.keystore.key": Path(key).read_text(),
        }
    if rest.get("ssl.endpoint.identification.algorithm") == "none":
        rest.pop("ssl.endpoint.identification.algorithm")
        java["ssl.endpoint.identification.algorithm"] = ""
    return java


def load_kafka_client(bootstrap_servers: str, path: str | None = None) -> KafkaClient:
    """Read client settings from the YAML file `path` (none: plaintext), `${NAME}` taken from the environment.

    Raises ConfigurationError when the file is not a flat mapping or an environment variable is missing.
    """
    if path is None:
        return KafkaClient(bootstrap_servers)
    try:
        loaded = yaml.safe_load(Path(path).read_text()) or {}
    except FileNotFoundError:
        raise ConfigurationError(path, "(file)", "no such file", "Give --kafka-config a path that exists") from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        raise ConfigurationError(path, f"line {line}", "is not YAML", "Write `name: value`, one a line") from None
    if not isinstance(loaded, dict):
        raise ConfigurationError(path, "(root)", "is not a mapping", "Write `name: value`, one a line")
    return KafkaClient(bootstrap_servers, {str(k): _resolved(path, str(k), v) for k, v in loaded.items()})


def _resolved(path: str, name: str, value: object) -> str:
    """Return `value` as Kafka text with environment references replaced."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ConfigurationError(path, name, "is not a text or a number", "Kafka settings are flat `name: value`")

    def from_environment(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise ConfigurationError(path, name, f"environment variable {match[1]} is not set", "Export it first")
        return found

    return _ENVIRONMENT.sub(from_environment, str(value))
