"""What is posted to Alertmanager: `postableAlert` of its API v2, with an `endsAt` that holds until the next resend.

Source: prometheus/alertmanager api/v2/openapi.yaml (`postableAlert`); Prometheus rules/alerting.go (`sendAlerts`): a
firing alert's `endsAt` is four resend delays ahead, so that it outlives failed sends in between.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from infra.delivery.transition import FIRING, Transition
from schemas.times import rfc3339
from udfs.alerts.lifecycle import ends_at_offset_seconds

PATH = "/api/v2/alerts"


def postable_alert(alert: Transition, *, now_ms: int, resend_delay_seconds: float) -> dict[str, Any]:
    """Return one alert as Alertmanager takes it.

    Firing, `endsAt` is `now_ms` and four resend delays, whatever the record says: it may have waited for long. Any
    other state ends the alert, at its own `endsAt`, but not ahead of now: Alertmanager would show it as active until
    then. `endsAt` never lies before `startsAt`, which Alertmanager refuses.
    """
    if alert.state == FIRING:
        ends_at_ms = now_ms + round(ends_at_offset_seconds(0.0, resend_delay_seconds) * 1000)
    else:
        ends_at_ms = min(alert.ends_at_ms, now_ms)
    return {
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": rfc3339(alert.starts_at_ms),
        "endsAt": rfc3339(max(ends_at_ms, alert.starts_at_ms)),
        "generatorURL": alert.generator_url,
    }


def alertmanager_body(alerts: Iterable[Transition], *, now_ms: int, resend_delay_seconds: float) -> bytes:
    """Return the body of one POST to `PATH`."""
    return orjson.dumps(
        [postable_alert(alert, now_ms=now_ms, resend_delay_seconds=resend_delay_seconds) for alert in alerts]
    )
