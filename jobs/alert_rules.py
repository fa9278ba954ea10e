"""The alert rules file: read, laid over the committed defaults, and checked before anything is submitted."""

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from jobs.incident_rules import SECTIONS as INCIDENT_SECTIONS
from jobs.incident_rules import incident_policy
from jobs.kafka_client import ConfigurationError
from udfs.alerts.generator_url import PLACEHOLDERS, unknown_placeholders
from udfs.alerts.rule import AlertRule, AlertRules
from udfs.alerts.rule_overrides import MAX_WINDOWS, SEVERITIES, is_severity, is_window_count

DEFAULTS = "alert_rules.yaml"

_ANNOTATION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class _Field:
    """What a field may hold, and what to do when it holds something else."""

    accepts: Callable[[Any], bool]
    remedy: str


def _is_text(found: object) -> bool:
    return isinstance(found, str)


def _is_name(found: object) -> bool:
    return isinstance(found, str) and bool(found.strip())


def _is_positive(found: object) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found) and found > 0


def _is_number_from_zero(found: object) -> bool:
    return _is_positive(found) or (found == 0 and not isinstance(found, bool))


def _is_flap_count(found: object) -> bool:
    return found == 0 or (is_window_count(found) and found != 1)


def _is_web_address_or_empty(found: object) -> bool:
    if not isinstance(found, str):
        return False
    parts = urlsplit(found)
    return not found or (parts.scheme in ("http", "https") and bool(parts.netloc))


def _is_url_template(found: object) -> bool:
    if not isinstance(found, str):
        return False
    try:
        return bool(urlsplit(found).scheme) and not unknown_placeholders(found)
    except ValueError:
        return False


def _is_annotations(found: object) -> bool:
    return isinstance(found, dict) and all(
        isinstance(name, str) and _ANNOTATION_NAME.fullmatch(name) and isinstance(text, str)
        for name, text in found.items()
    )


_WINDOWS = _Field(is_window_count, f"Give a whole number from 1 to {MAX_WINDOWS}")
_RULE_FIELDS = {
    "alertname": _Field(_is_name, "Give a name such as FeatureDrift"),
    "severity": _Field(is_severity, f"Choose one of {', '.join(SEVERITIES)}"),
    "owner": _Field(_is_text, 'Give a text; "" for none'),
    "runbook_url": _Field(_is_web_address_or_empty, 'Give an http(s) address; "" for none'),
    "firing_after_windows": _WINDOWS,
    "resolved_after_windows": _WINDOWS,
    "resend_delay_seconds": _Field(_is_positive, "Give a number of seconds above 0"),
    "generator_url": _Field(
        _is_url_template,
        f"Give an address with a scheme; in braces only {', '.join(sorted(PLACEHOLDERS))} may stand",
    ),
    "keep_firing_seconds": _Field(_is_number_from_zero, "Give a number of seconds, 0 for none"),
    "flap_firings": _Field(_is_flap_count, f"Give a whole number from 2 to {MAX_WINDOWS}; 0 to damp nothing"),
    "flap_within_seconds": _Field(_is_positive, "Give a number of seconds above 0"),
    "flap_quiet_seconds": _Field(_is_positive, "Give a number of seconds above 0"),
    "publish_pending": _Field(lambda found: isinstance(found, bool), "Write true or false"),
    "never_suppress": _Field(lambda found: isinstance(found, bool), "Write true or false"),
    "annotations": _Field(_is_annotations, "Write `name: text`, names of letters, digits and _"),
}
_JOB_FIELDS = {
    "max_clock_skew_seconds": _Field(_is_positive, "Give a number of seconds above 0"),
    "forget_series_after_days": _Field(_is_positive, "Give a number of days above 0"),
}
_SECTIONS = (*_JOB_FIELDS, "default", "monitors", *INCIDENT_SECTIONS)


def load_alert_rules(path: str | None = None) -> AlertRules:
    """Return the rules of the file at `path` laid over the committed defaults; of the defaults alone without one.

    Raises ConfigurationError naming file, field and remedy: no file, not YAML, a key twice, an unknown field, a value
    out of range.
    """
    committed = _parsed(DEFAULTS, files("jobs").joinpath(DEFAULTS).read_text())
    given = {} if path is None else _parsed(path, _read(path))
    defaults = _checked(DEFAULTS, committed)
    own = {} if path is None else _checked(path, given)
    incidents = incident_policy(DEFAULTS, committed)
    default = defaults["default"] | own.get("default", {})
    return AlertRules(
        default=AlertRule(**default),
        monitors={name: AlertRule(**(default | rule)) for name, rule in own.get("monitors", {}).items()},
        incidents=incidents if path is None else incident_policy(path, given, incidents),
        **{name: own.get(name, defaults[name]) for name in _JOB_FIELDS},
    )


class _UniqueKeys(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys; here the second is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = []
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} is there twice", key.start_mark)
            seen.append(name)
        return super().construct_mapping(node, deep)


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ConfigurationError(path, "(file)", error.strerror or "can't be read", "Give --rules a file") from None


def _parsed(file: str, text: str) -> dict[str, Any]:
    """Return the file's mapping; an empty file is an empty one."""
    try:
        loaded = yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problem = error.problem or "is not YAML"
        raise ConfigurationError(file, f"line {line}", problem, f"See the example in {DEFAULTS}") from None
    except yaml.YAMLError:
        raise ConfigurationError(file, "(file)", "is not YAML", f"See the example in {DEFAULTS}") from None
    return _mapping(file, "(root)", loaded)


def _checked(file: str, root: dict[str, Any]) -> dict[str, Any]:
    """Return the file's sections with every field checked."""
    _refuse_unknown(file, "", root, _SECTIONS)
    checked = {
        name: _value(file, name, _JOB_FIELDS[name], found) for name, found in root.items() if name in _JOB_FIELDS
    }
    if "default" in root:
        checked["default"] = _rule(file, "default", root["default"])
    monitors = _mapping(file, "monitors", root.get("monitors"))
    checked["monitors"] = {str(name): _rule(file, f"monitors.{name}", rule) for name, rule in monitors.items()}
    return checked


def _rule(file: str, place: str, found: object) -> dict[str, Any]:
    rule = _mapping(file, place, found)
    _refuse_unknown(file, f"{place}.", rule, tuple(_RULE_FIELDS))
    return {name: _value(file, f"{place}.{name}", _RULE_FIELDS[name], value) for name, value in rule.items()}


def _value(file: str, place: str, field: _Field, found: object) -> object:
    if not field.accepts(found):
        raise ConfigurationError(file, place, f"{found!r} is not allowed", field.remedy)
    return found


def _mapping(file: str, place: str, found: object) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigurationError(file, place, "is not a mapping", f"See the example in {DEFAULTS}")
    return found


def _refuse_unknown(file: str, prefix: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else f"Known here: {', '.join(known)}"
            raise ConfigurationError(file, f"{prefix}{name}", "is not a field", remedy)
