"""Where alerts are delivered to, and how patiently: the file of targets, read and checked."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infra.delivery.back_off import BackOff
from infra.paths import CONF
from jobs.kafka_client import ConfigurationError
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    finite_number,
    one_of,
    optional,
    parsed_yaml,
    some_list,
    text,
)
from schemas.topics import ALERTS, INCIDENTS

DEFAULTS = CONF / "delivery.yaml"
COMMAND_LINE = "command line"
ALERTMANAGER, WEBHOOK = "alertmanager", "webhook"
KINDS = (ALERTMANAGER, WEBHOOK)
OF_ALERTS, OF_INCIDENTS = ALERTS.name, INCIDENTS.name
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Target:
    """One place that alerts go to. `repr` shows no secret and no header's value.

    `of` is the topic that it is told of: every alert, or (a webhook) one notification an incident.
    """

    name: str
    kind: str
    url: str
    secret: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    of: str = OF_ALERTS

    @property
    def shown_url(self) -> str:
        """Scheme, host and port: a webhook's path may be its secret.

        >>> Target("hook", "webhook", "https://user:pass@hooks.example:8443/T0/secret").shown_url
        'https://hooks.example:8443'
        """
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How alerts are delivered, for all targets; infra/conf/delivery.yaml says what each is for and where from."""

    resend_delay_seconds: float
    timeout_seconds: float
    first_wait_seconds: float
    longest_wait_seconds: float
    max_batch_alerts: int
    forget_after_days: float
    max_firing_alerts: int

    @property
    def back_off(self) -> BackOff:
        """The waits between tries."""
        return BackOff(self.first_wait_seconds, self.longest_wait_seconds)


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """The targets (at least one, names unlike) and the policy."""

    targets: tuple[Target, ...]
    policy: DeliveryPolicy

    def with_addresses(
        self, alertmanagers: Sequence[str], webhooks: Sequence[str], secret: str | None
    ) -> "DeliverySettings":
        """The same policy with targets given by their addresses alone; unchanged where none is given.

        Raises ConfigurationError for what is no http(s) address.
        """
        given = [(ALERTMANAGER, url) for url in alertmanagers] + [(WEBHOOK, url) for url in webhooks]
        if not given:
            return self
        targets: list[Target] = []
        for kind, url in given:
            number = sum(target.kind == kind for target in targets)
            place = Place(COMMAND_LINE).field(f"--{kind}")
            try:
                address = _web_address(url)
            except WrongValueError as wrong:
                place.refuse(wrong.problem, wrong.remedy)
            name = kind if not number else f"{kind}-{number + 1}"
            targets.append(Target(name, kind, address, secret if kind == WEBHOOK else None))
        return replace(self, targets=tuple(targets))


def load_delivery(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> DeliverySettings:
    """Read the file of targets, its policy laid over the committed one; without a file, the committed defaults.

    Raises ConfigurationError naming file, field and remedy: also where a variable of the environment is not set.
    """
    default = _read(DEFAULTS)
    own = default if file is None else _read(file)
    place = Place(str(file or DEFAULTS))
    policy = _policy(place.field("policy"), default["policy"] | (own["policy"] or {}))
    found = [_target(place.field(f"targets[{i}]"), body, environment) for i, body in enumerate(own["targets"])]
    if not found:
        place.field("targets").refuse("is empty", "Name at least one target")
    names = [target.name for target in found]
    for number, name in enumerate(names):
        if name in names[:number]:
            place.field(f"targets[{number}].name").refuse(f"{name} is there twice", "Give each a name of its own")
    return DeliverySettings(tuple(found), policy)


def _read(file: Path) -> dict[str, Any]:
    place = Place(str(file))
    known = {"targets": (some_list, REQUIRED), "policy": (optional(_mapping), None)}
    return fields_of(place, parsed_yaml(place), known)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError("is not a mapping", "Write `name: value`, one a line")
    return value


def _positive(value: Any) -> float:
    number: float = finite_number(value)
    if number <= 0:
        raise WrongValueError(f"{value} is not above 0", "Give a number above 0")
    return number


def _policy(place: Place, body: Mapping[str, Any]) -> DeliveryPolicy:
    checks = {one.name: (at_least_one if one.type is int else _positive, REQUIRED) for one in fields(DeliveryPolicy)}
    policy = DeliveryPolicy(**fields_of(place, body, checks))
    if policy.longest_wait_seconds < policy.first_wait_seconds:
        place.field("longest_wait_seconds").refuse("is below first_wait_seconds", "Give at least that")
    return policy


def _target(place: Place, body: object, environment: Mapping[str, str]) -> Target:
    known = {
        "name": (_name, REQUIRED),
        "kind": (one_of(KINDS), REQUIRED),
        "url": (_web_address, REQUIRED),
        "secret_from_environment": (optional(text), None),
        "headers_from_environment": (optional(_mapping), None),
        "ca_file": (optional(text), None),
        "of": (one_of((OF_ALERTS, OF_INCIDENTS)), OF_ALERTS),
    }
    found = fields_of(place, body, known)
    secret_name, ca_file = found["secret_from_environment"], found["ca_file"]
    if secret_name and found["kind"] != WEBHOOK:
        problem = f"{found['kind']} takes no signature"
        place.field("secret_from_environment").refuse(problem, "Use headers_from_environment for credentials")
    if ca_file and not Path(ca_file).is_file():
        place.field("ca_file").refuse(f"{ca_file} is no file", "Give the path of a PEM file")
    if found["of"] != OF_ALERTS and found["kind"] != WEBHOOK:
        place.field("of").refuse("only a webhook takes incidents", "Leave it out: Alertmanager groups by itself")
    headers = _headers(place.field("headers_from_environment"), found["headers_from_environment"] or {}, environment)
    secret_place = place.field("secret_from_environment")
    secret = _from_environment(secret_place, secret_name, environment) if secret_name else None
    return Target(found["name"], found["kind"], found["url"], secret, headers, ca_file, found["of"])


def _headers(place: Place, body: Mapping[Any, Any], environment: Mapping[str, str]) -> dict[str, str]:
    for header in map(str, body):
        if not _HEADER.fullmatch(header):
            place.field(header).refuse("is no header's name", "Write it as Authorization")
    return {str(header): _from_environment(place.field(header), name, environment) for header, name in body.items()}


def _from_environment(place: Place, name: object, environment: Mapping[str, str]) -> str:
    found = environment.get(str(name))
    if not found:
        place.refuse(f"environment variable {name} is not set", "Export it first; the file only names it")
    if not (found.isascii() and found.isprintable()):
        place.refuse(f"environment variable {name} is not one line of ASCII", "A header can hold nothing else")
    return found


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise WrongValueError(f"{value!r} is no name", "Write letters, digits, `-`, `_` or `.`")
    return value


def _web_address(value: Any) -> str:
    """An http(s) address without credentials, which would end up in logs."""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, brackets that don't match
        is_address = False
    if not is_address:
        raise WrongValueError(f"{value!r} is no http(s) address", "Write it as https://alertmanager.example:9093")
    if parts.username or parts.password:
        raise WrongValueError("holds credentials", "Take them out, and name them under headers_from_environment")
    return str(value)


def environment_secret(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the webhook secret of the environment; None where there is none.

    Raises ConfigurationError where the variable is there and empty.
    """
    found = environment.get(name)
    if found == "":
        raise ConfigurationError("environment", name, "is empty", "Give it the secret, or unset it")
    return found
