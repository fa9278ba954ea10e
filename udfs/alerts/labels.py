"""The labels of an alert: valid for Prometheus, and different whenever the series differ."""

import re
from collections.abc import Mapping

from udfs.alerts.rule import AlertRule

# A name may not start with two underscores: Prometheus keeps those for itself.
_VALID = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_INVALID_CHARACTER = re.compile(r"[^a-zA-Z0-9_]")


def alert_labels(rule: AlertRule, monitor: str, feature: str, series: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of the alert on `feature` of `series`, sorted by name; empty values are left out.

    `alertname`, `monitor`, `feature`, `severity` and `owner` are ours. A group-by label of that name becomes
    `exported_<name>`, as Prometheus does when a target's label clashes with its own.
    """
    ours = {
        "alertname": rule.alertname,
        "monitor": monitor,
        "feature": feature,
        "severity": rule.severity,
        "owner": rule.owner,
    }
    names = label_names(series, reserved=ours)
    labels = ours | {names[name]: value for name, value in series.items()}
    return {name: value for name, value in sorted(labels.items()) if value}


def label_names(names: Mapping[str, object], reserved: Mapping[str, object]) -> dict[str, str]:
    """Return a Prometheus label name for each of `names`: no two alike, none in `reserved`.

    A valid name stays as it is. In others every other character becomes `_`, with `label_` in front where no
    letter would lead; what is then taken already gets a number behind it. The same set of names always gives the same.

    >>> label_names({"service.name": 0, "service_name": 0, "severity": 0}, reserved={"severity": 0})
    {'service_name': 'service_name', 'severity': 'exported_severity', 'service.name': 'service_name_2'}
    """
    chosen: dict[str, str] = {}
    taken = set(reserved)
    for name in sorted(names, key=lambda name: (_VALID.fullmatch(name) is None, name)):
        chosen[name] = _free(_sanitised(name), reserved, taken)
        taken.add(chosen[name])
    return chosen


def _sanitised(name: str) -> str:
    if _VALID.fullmatch(name):
        return name
    replaced = _INVALID_CHARACTER.sub("_", name)
    return replaced if replaced[:1].isalpha() else f"label_{replaced}"


def _free(name: str, reserved: Mapping[str, object], taken: set[str]) -> str:
    """Return `name`, or the first variant of it that is not taken."""
    if name in reserved:
        name = f"exported_{name}"
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
