"""What is posted to a webhook: Alertmanager's own webhook message (version 4), so that its receivers read ours too.

With a secret the request is signed: `X-Slacktide-Signature: sha256=HEX`, HMAC-SHA256 over the timestamp's header, a dot
and the body. A receiver computes the same over the bytes it got, compares in constant time, and refuses old timestamps:
then nobody else can send alerts, or send old ones again.

Sources: Alertmanager template/template.go (`Data`), notify/webhook/webhook.go (`Message`); RFC 2104 (HMAC).
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from infra.delivery.transition import FIRING, RESOLVED, Transition
from schemas.ids import record_id
from schemas.times import rfc3339

RECEIVER = "slacktide"
SIGNATURE, TIMESTAMP, DELIVERY = "X-Slacktide-Signature", "X-Slacktide-Timestamp", "X-Slacktide-Delivery"
_NEVER = "0001-01-01T00:00:00Z"  # Go's zero time: what Alertmanager writes while an alert fires


def webhook_body(alerts: Sequence[Transition]) -> bytes:
    """Return one message of `alerts` (at least one). The same alerts give the same bytes."""
    states = {_status(alert) for alert in alerts}
    labels = _common([alert.labels for alert in alerts])
    return orjson.dumps(
        {
            "version": "4",
            "groupKey": f"slacktide:{delivery_id(alerts)}",
            "truncatedAlerts": 0,
            "status": FIRING if FIRING in states else RESOLVED,
            "receiver": RECEIVER,
            "groupLabels": {},
            "commonLabels": labels,
            "commonAnnotations": _common([alert.annotations for alert in alerts]),
            "externalURL": "",
            "alerts": [_alert(alert) for alert in alerts],
        }
    )


def delivery_id(alerts: Sequence[Transition]) -> str:
    """Return the name of this delivery: one that comes a second time, after a lost answer, has the same."""
    return record_id(*(alert.alert_id for alert in alerts))


def signed_headers(body: bytes, secret: str | None, *, delivery: str, now_ms: int) -> dict[str, str]:
    """Return the headers that name and, with a `secret`, sign a request.

    >>> signed_headers(b"{}", "s3cret", delivery="d1", now_ms=1_700_000_000_000)["X-Slacktide-Signature"][:14]
    'sha256=9792681'
    """
    timestamp = str(now_ms // 1000)
    headers = {DELIVERY: delivery, TIMESTAMP: timestamp}
    if secret:
        headers[SIGNATURE] = signature(body, secret, timestamp)
    return headers


def signature(body: bytes, secret: str, timestamp: str) -> str:
    """Return what `X-Slacktide-Signature` must be for a body that came with this timestamp."""
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"sha256={digest}"


def _status(alert: Transition) -> str:
    return FIRING if alert.state == FIRING else RESOLVED


def _common(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all have alike, by name."""
    first, rest = mappings[0], mappings[1:]
    return {name: value for name, value in sorted(first.items()) if all(other.get(name) == value for other in rest)}


def _alert(alert: Transition) -> dict[str, Any]:
    status = _status(alert)
    return {
        "status": status,
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": rfc3339(alert.starts_at_ms),
        "endsAt": _NEVER if status == FIRING else rfc3339(alert.ends_at_ms),
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
        "alert_id": alert.alert_id,
    }
