"""One record of topic `alerts` as delivery needs it: checked, and no more of it kept than is sent on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from schemas.dead_letters import Reason
from schemas.strict_json import loads_strictly
from schemas.times import epoch_ms, rfc3339
from udfs.alerts.fingerprint import fingerprint

FIRING, RESOLVED = "firing", "resolved"
PENDING, SUPPRESSED = "pending", "suppressed"
STATES = (FIRING, RESOLVED, PENDING, SUPPRESSED)


class UnreadableAlertError(ValueError):
    """A message of topic `alerts` that is no alert: carries the dead letter's reason and detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


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

    Raises UnreadableAlertError, whose detail names the field at fault and never quotes a value. O(length).

    >>> decode_transition(b'{"alert_id":"a1","state":"firing","labels":{"alertname":"A"},"annotations":{},'
    ...     b'"startsAt":"2026-01-31T12:00:00Z","endsAt":"2026-01-31T12:04:00Z","updatedAt":"2026-01-31T12:00:00Z",'
    ...     b'"generatorURL":"urn:x"}').fingerprint
    'd2c6efc389df0927'
    """
    return transition_of(_json_object(payload))


def decode_notification_id(payload: bytes | None) -> str:
    """Return what names a record of topic `incidents`. Raises UnreadableAlertError where it is no notification.

    >>> decode_notification_id(b'{"notification_id":"n1","version":"4","alerts":[]}')
    'n1'
    """
    body = _json_object(payload)
    if not isinstance(body.get("alerts"), list):
        _refuse(Reason.BAD_VALUE, "alerts is not a list")
    return _text(body, "notification_id")


def transition_of(body: Mapping[str, Any]) -> Transition:
    """Read the fields of a parsed record. Raises UnreadableAlertError."""
    if body.get("state") not in STATES:
        _refuse(Reason.BAD_VALUE, f"state is not one of {', '.join(STATES)}")
    labels = _texts(body, "labels")
    if not any(labels.values()):
        _refuse(Reason.BAD_VALUE, "labels are all empty")
    return Transition(
        alert_id=_text(body, "alert_id"),
        state=str(body["state"]),
        labels=labels,
        annotations=_texts(body, "annotations"),
        starts_at_ms=_instant(body, "startsAt"),
        ends_at_ms=_instant(body, "endsAt"),
        updated_at_ms=_instant(body, "updatedAt"),
        generator_url=_text(body, "generatorURL"),
    )


def _refuse(reason: Reason, detail: str) -> NoReturn:
    raise UnreadableAlertError(reason, detail)


def _json_object(payload: bytes | None) -> dict[str, Any]:
    if not payload:
        _refuse(Reason.NO_VALUE, "the message is empty")
    try:
        body = loads_strictly(payload)
    except (ValueError, RecursionError):
        _refuse(Reason.MALFORMED_JSON, "the message is not JSON")
    if not isinstance(body, dict):
        _refuse(Reason.MALFORMED_JSON, "the message is not a JSON object")
    return body


def _text(body: Mapping[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str) or not found:
        _refuse(Reason.BAD_VALUE, f"{name} is not a text")
    return found


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    found = body.get(name)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        _refuse(Reason.BAD_VALUE, f"{name} is not a mapping of texts")
    try:
        fingerprint(found)
    except UnicodeEncodeError:
        _refuse(Reason.BAD_VALUE, f"{name} hold a text that is no Unicode")
    return dict(sorted(found.items()))


def _instant(body: Mapping[str, Any], name: str) -> int:
    try:
        return epoch_ms(body.get(name))  # type: ignore[arg-type]  # what is no text raises TypeError
    except (TypeError, ValueError, OverflowError):
        _refuse(Reason.BAD_TIME, f"{name} is not an RFC 3339 time with a zone")
