"""What one notification of an incident says: the gravest alerts, how many there are, and what they have in common."""

from collections.abc import Iterable, Mapping

from schemas.alerts import Alert
from schemas.incidents import Incident, IncidentEvent
from udfs.alerts.incident_policy import SEVERITY_RANK, IncidentPolicy
from udfs.alerts.incident_state import Entry, OpenIncident
from udfs.alerts.scope import scope_labels


def notification(
    event: IncidentEvent,
    incident: OpenIncident,
    number: int,
    *,
    entries: Iterable[Entry],
    beyond: int,
    at_ms: int,
    policy: IncidentPolicy,
) -> Incident:
    """Return the notification. Suppressed alerts are counted and not listed. O(entries log entries)."""
    entries = list(entries)
    firing = sorted((entry.alert for entry in entries if entry.is_firing), key=_gravest_first)
    resolved = sorted((entry.alert for entry in entries if not entry.is_open), key=_gravest_first)
    told = [*firing, *resolved]
    counts = {
        "firing": len(firing),
        "suppressed": len(entries) - len(told),
        "resolved": len(resolved),
        "not_listed": beyond,
    }
    return Incident(
        incident_id=incident.incident_id,
        number=number,
        event=event,
        severity=incident.severity,
        group_labels=scope_labels(told[0].labels, policy.incident_labels) if told else {},
        common_labels=_common([alert.labels for alert in told]),
        common_annotations=_common([alert.annotations for alert in told]),
        alerts=told[: policy.top_alerts],
        truncated=max(0, len(told) - policy.top_alerts) + beyond,
        counts=counts,
        started_at_ms=incident.started_ms,
        updated_at_ms=at_ms,
        root_cause=next((alert.root_cause for alert in told if alert.root_cause), None),
    )


def _gravest_first(alert: Alert) -> tuple[int, int, str]:
    return -SEVERITY_RANK.get(alert.labels.get("severity", ""), 0), alert.starts_at_ms, alert.fingerprint


def _common(mappings: list[dict[str, str]]) -> dict[str, str]:
    """What all have, with the same value.

    >>> _common([{"a": "1", "b": "1"}, {"a": "1", "b": "2"}])
    {'a': '1'}
    """
    if not mappings:
        return {}
    common: Mapping[str, str] = mappings[0]
    for mapping in mappings[1:]:
        common = {name: value for name, value in common.items() if mapping.get(name) == value}
    return dict(common)
