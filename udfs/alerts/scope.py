"""The incident that an alert belongs to: the labels by which alerts are grouped."""

from collections.abc import Collection, Mapping

import orjson


def scope_labels(labels: Mapping[str, str], incident_labels: Collection[str]) -> dict[str, str]:
    """Return those of `labels` that name the incident, sorted; where it has none of them, its monitor's.

    >>> scope_labels({"service_name": "chat", "monitor": "m"}, ["service_name"])
    {'service_name': 'chat'}
    >>> scope_labels({"region": "eu", "monitor": "m"}, ["service_name"])
    {'monitor': 'm'}
    """
    found = {name: labels[name] for name in sorted(incident_labels) if labels.get(name)}
    return found or {"monitor": labels.get("monitor", "")}


def scope_key(labels: Mapping[str, str], incident_labels: Collection[str]) -> str:
    """Return `scope_labels` as canonical JSON: the key of the second stage.

    >>> scope_key({"service_name": "chat"}, ["service_name"])
    '{"service_name":"chat"}'
    """
    return orjson.dumps(scope_labels(labels, incident_labels), option=orjson.OPT_SORT_KEYS).decode()
