"""One record of topic `alerts` as delivery needs it: checked, and no more of it kept than is sent on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.dead_letters import Reason
from schemas.record_fields import instant_field, json_object, refuse, text_field
from schemas.times import rfc3339
from udfs.alerts.fingerprint import fingerprint

FIRING, RESOLVED = "firing", "resolved"
PENDING, SUPPRESSED = "pending", "suppressed"
STATES = (FIRING, RESOLVED, PENDING, SUPPRESSED)


@dataclass(frozen=True, slots=True)
class Transition:
    """One transition of an alert; times are epoch milliseconds.

    `fingerprint` is computed from the labels as Alertmanager does, so what is delivered is found there under it.
    """

    alert_id: str
    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at_ms: int
    ends_at_ms: int
    updated_at_ms: int
    generator_url: str
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", fingerprint(self.labels))

    def to_body(self) -> dict[str, Any]:
        """Plain data that `transition_of` reads again."""
        return {
            "alert_id": self.alert_id,
            "state": self.state,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
            "startsAt": rfc3339(self.starts_at_ms),
            "endsAt": rfc3339(self.ends_at_ms),
            "updatedAt": rfc3339(self.updated_at_ms),
            "generatorURL": self.generator_url,
        }


def decode_transition(payload: bytes | None) -> Transition:
    """Read one Kafka value of topic `alerts`; fields it does not need are ignored.

    Raises UnreadableRecordError, whose detail names the field at fault and never quotes a value. O(length).

    >>> decode_transition(b'{"alert_id":"a1","state":"firing","labels":{"alertname":"A"},"annotations":{},'
    ...     b'"startsAt":"2026-01-31T12:00:00Z","endsAt":"2026-01-31T12:04:00Z","updatedAt":"2026-01-31T12:00:00Z",'
    ...     b'"generatorURL":"urn:x"}').fingerprint
    'd2c6efc389df0927'
    """
    return transition_of(json_object(payload))


def decode_notification_id(payload: bytes | None) -> str:
    """Return what names a record of topic `incidents`. Raises UnreadableRecordError where it is no notification.

    >>> decode_notification_id(b'{"notification_id":"n1","version":"4","alerts":[]}')
    'n1'
    """
    body = json_object(payload)
    if not isinstance(body.get("alerts"), list):
        refuse(Reason.BAD_VALUE, "alerts is not a list")
    return text_field(body, "notification_id")


def transition_of(body: Mapping[str, Any]) -> Transition:
    """Read the fields of a parsed record. Raises UnreadableRecordError."""
    if body.get("state") not in STATES:
        refuse(Reason.BAD_VALUE, f"state is not one of {', '.join(STATES)}")
    labels = _texts(body, "labels")
    if not any(labels.values()):
        refuse(Reason.BAD_VALUE, "labels are all empty")
    return Transition(
        alert_id=text_field(body, "alert_id"),
        state=str(body["state"]),
        labels=labels,
        annotations=_texts(body, "annotations"),
        starts_at_ms=instant_field(body, "startsAt"),
        ends_at_ms=instant_field(body, "endsAt"),
        updated_at_ms=instant_field(body, "updatedAt"),
        generator_url=text_field(body, "generatorURL"),
    )


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    found = body.get(name)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        refuse(Reason.BAD_VALUE, f"{name} is not a mapping of texts")
    try:
        fingerprint(found)
    except UnicodeEncodeError:
        refuse(Reason.BAD_VALUE, f"{name} hold a text that is no Unicode")
    return dict(sorted(found.items()))
