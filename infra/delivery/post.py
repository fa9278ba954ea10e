"""One POST to a target: of alerts, or of an incident's notification."""

from collections.abc import Mapping, Sequence

from infra.delivery.alertmanager import PATH, alertmanager_body
from infra.delivery.http_post import Answer, post_json
from infra.delivery.targets import ALERTMANAGER, DeliveryPolicy, Target
from infra.delivery.transition import Transition
from infra.delivery.webhook import delivery_id, signed_headers, webhook_body


def post_alerts(target: Target, policy: DeliveryPolicy, alerts: Sequence[Transition], at_ms: int) -> Answer:
    """Post `alerts` (at least one) to `target` once."""
    if target.kind == ALERTMANAGER:
        body = alertmanager_body(alerts, now_ms=at_ms, resend_delay_seconds=policy.resend_delay_seconds)
        return _post(target, policy, target.url.rstrip("/") + PATH, body, {})
    body = webhook_body(alerts)
    headers = signed_headers(body, target.secret, delivery=delivery_id(alerts), now_ms=at_ms)
    return _post(target, policy, target.url, body, headers)


def post_incident(target: Target, policy: DeliveryPolicy, body: bytes, notification_id: str, at_ms: int) -> Answer:
    """Post a record of topic `incidents` to a webhook once, as it is: it has the webhook's form already."""
    headers = signed_headers(body, target.secret, delivery=notification_id, now_ms=at_ms)
    return _post(target, policy, target.url, body, headers)


def _post(target: Target, policy: DeliveryPolicy, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
    all_headers = {**headers, **target.headers}
    return post_json(url, body, headers=all_headers, timeout_seconds=policy.timeout_seconds, ca_file=target.ca_file)
