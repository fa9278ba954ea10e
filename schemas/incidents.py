"""One notification of an incident: a group of alerts with one cause, as topic `incidents` carries it.

The value is JSON: Alertmanager's webhook payload of version 4 under its own names, so that whatever takes that takes
this, and ours in snake_case beside it. `incidents.schema.json` describes it. A page is one record here, however many
series breach. Nothing in it depends on when or where it was computed.

Source: prometheus/alertmanager notify/webhook/webhook.go (`Message`) and template/template.go (`Data`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from schemas.alerts import Alert, AlertState
from schemas.ids import record_id
from schemas.times import rfc3339

SCHEMA_VERSION = 1
# What `counts` counts; not_listed are alerts beyond what an incident remembers.
COUNTS = ("firing", "suppressed", "resolved", "not_listed")
_NEVER = "0001-01-01T00:00:00Z"  # Go's zero time: how Alertmanager writes the end of what has none


class IncidentEvent(StrEnum):
    """Why a notification goes out."""

    OPENED = "opened"
    ESCALATED = "escalated"  # a graver alert joined
    UPDATED = "updated"  # alerts came or went
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Incident:
    """One notification. Times are epoch milliseconds of event time here and RFC 3339 on the wire.

    `number` counts the incident's notifications from 1. `alerts` are the gravest, firing before resolved, at most the
    policy's number; `truncated` says how many more there are. `counts` has `firing`, `suppressed`, `resolved` since the
    last notification, and `not_listed` (beyond what an incident remembers). `severity` is the gravest that fires, or
    that fired.
    """

    incident_id: str
    number: int
    event: IncidentEvent
    severity: str
    group_labels: dict[str, str]
    common_labels: dict[str, str]
    common_annotations: dict[str, str]
    alerts: Sequence[Alert]
    truncated: int
    counts: Mapping[str, int]
    started_at_ms: int
    updated_at_ms: int
    root_cause: Mapping[str, Any] | None = None

    @property
    def notification_id(self) -> str:
        """Deterministic over incident and number."""
        return record_id(self.incident_id, self.number)

    def to_json(self) -> bytes:
        """The Kafka value: ids first, keys in a fixed order."""
        return orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "notification_id": self.notification_id,
                "incident_id": self.incident_id,
                "number": self.number,
                "event": self.event,
                "version": "4",
                "groupKey": f"{{}}:{orjson.dumps(_sorted(self.group_labels)).decode()}",
                "status": "firing" if self.counts["firing"] else "resolved",
                "receiver": "",
                "groupLabels": _sorted(self.group_labels),
                "commonLabels": _sorted(self.common_labels),
                "commonAnnotations": _sorted(self.common_annotations),
                "externalURL": "",
                "alerts": [_listed(alert) for alert in self.alerts],
                "truncatedAlerts": self.truncated,
                "severity": self.severity,
                "counts": dict(self.counts),
                "started_at": rfc3339(self.started_at_ms),
                "updated_at": rfc3339(self.updated_at_ms),
                "root_cause": self.root_cause,
            }
        )


def _sorted(texts: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(texts.items()))


def _listed(alert: Alert) -> dict[str, Any]:
    """One alert as the webhook has it."""
    resolved = alert.state is AlertState.RESOLVED
    return {
        "status": "resolved" if resolved else "firing",
        "labels": _sorted(alert.labels),
        "annotations": _sorted(alert.annotations),
        "startsAt": rfc3339(alert.starts_at_ms),
        "endsAt": rfc3339(alert.ends_at_ms) if resolved else _NEVER,
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }
