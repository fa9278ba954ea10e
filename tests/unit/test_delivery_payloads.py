"""What is posted: Alertmanager's alert with the right `endsAt`, and the webhook's message with its signature."""

import subprocess
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from infra.delivery.alertmanager import alertmanager_body, postable_alert
from infra.delivery.transition import (
    SUPPRESSED,
    Transition,
    decode_notification_id,
    decode_transition,
)
from infra.delivery.webhook import delivery_id, signature, signed_headers, webhook_body
from schemas.dead_letters import Reason
from schemas.record_fields import UnreadableRecordError
from schemas.times import epoch_ms

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDS = {state: (GOLDEN / "alerts" / f"{state}.json").read_bytes() for state in ("firing", "resolved")}
FIRING, RESOLVED = (decode_transition(RECORDS[state]) for state in ("firing", "resolved"))
NOW_MS = epoch_ms("2023-11-14T22:40:00Z")
SECRET = "only for this file"


def test_payloads_are_as_committed() -> None:
    found = {
        "alertmanager.json": alertmanager_body([FIRING, RESOLVED], now_ms=NOW_MS, resend_delay_seconds=60),
        "webhook.json": webhook_body([FIRING, RESOLVED]),
        "webhook_headers.json": orjson.dumps(
            signed_headers(webhook_body([RESOLVED]), SECRET, delivery=delivery_id([RESOLVED]), now_ms=NOW_MS)
        ),
    }
    for name, body in found.items():
        shown = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        assert shown == (GOLDEN / "delivery" / name).read_bytes(), name


def test_a_record_keeps_its_fingerprint() -> None:
    assert FIRING.fingerprint == orjson.loads(RECORDS["firing"])["fingerprint"]


def test_firing_ends_four_resends_ahead_however_long_it_waited() -> None:
    for now_ms in (FIRING.starts_at_ms, FIRING.ends_at_ms + 3_600_000):
        posted = postable_alert(FIRING, now_ms=now_ms, resend_delay_seconds=60)
        assert epoch_ms(posted["endsAt"]) == now_ms + 240_000
        assert epoch_ms(posted["startsAt"]) == FIRING.starts_at_ms


@pytest.mark.parametrize("state", [RESOLVED.state, SUPPRESSED])
def test_resolved_ends_when_it_did_and_never_ahead(state: str) -> None:
    over = replace(RESOLVED, state=state)
    assert epoch_ms(postable_alert(over, now_ms=NOW_MS, resend_delay_seconds=60)["endsAt"]) == over.ends_at_ms
    early_ms = over.ends_at_ms - 10_000
    assert epoch_ms(postable_alert(over, now_ms=early_ms, resend_delay_seconds=60)["endsAt"]) == early_ms
    before_start_ms = over.starts_at_ms - 10_000
    posted = postable_alert(over, now_ms=before_start_ms, resend_delay_seconds=60)
    assert posted["endsAt"] == posted["startsAt"], "Alertmanager refuses an end before the start"


def test_a_signature_is_what_openssl_says() -> None:
    body, stamp = webhook_body([FIRING]), str(NOW_MS // 1000)
    line = ["openssl", "dgst", "-sha256", "-hmac", SECRET, "-r"]
    done = subprocess.run(line, input=stamp.encode() + b"." + body, capture_output=True, check=True)
    assert signature(body, SECRET, stamp) == f"sha256={done.stdout.split()[0].decode()}"


def test_without_a_secret_nothing_is_signed() -> None:
    assert set(signed_headers(b"{}", None, delivery="d", now_ms=0)) == {"X-Slacktide-Delivery", "X-Slacktide-Timestamp"}


def test_what_alerts_have_alike_is_common() -> None:
    other = replace(FIRING, labels={**FIRING.labels, "region": "us"})
    common = orjson.loads(webhook_body([FIRING, other]))["commonLabels"]
    assert common == {name: text for name, text in FIRING.labels.items() if name != "region"}
    assert delivery_id([FIRING, RESOLVED]) != delivery_id([RESOLVED, FIRING]) != delivery_id([RESOLVED])


def changed(**changes: object) -> bytes:
    return orjson.dumps(orjson.loads(RECORDS["firing"]) | changes)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (None, Reason.NO_VALUE),
        (b"", Reason.NO_VALUE),
        (b"\xff", Reason.MALFORMED_JSON),
        (b"[]", Reason.MALFORMED_JSON),
        (b"[" * 100_000, Reason.MALFORMED_JSON),
        (changed(state="on fire"), Reason.BAD_VALUE),
        (changed(state=["firing"]), Reason.BAD_VALUE),
        (changed(labels={}), Reason.BAD_VALUE),
        (changed(labels={"a": ""}), Reason.BAD_VALUE),
        (changed(labels={"a": 1}), Reason.BAD_VALUE),
        (RECORDS["firing"].replace(b'"ml-oncall"', b'"\\ud800"'), Reason.BAD_VALUE),
        (changed(annotations=None), Reason.BAD_VALUE),
        (changed(alert_id=None), Reason.BAD_VALUE),
        (changed(startsAt="2023-11-14T22:14:30"), Reason.BAD_TIME),
        (changed(endsAt=5), Reason.BAD_TIME),
    ],
)
def test_what_is_no_alert_says_why_and_quotes_nothing(payload: bytes | None, reason: Reason) -> None:
    with pytest.raises(UnreadableRecordError) as caught:
        decode_transition(payload)
    assert caught.value.reason in (reason, Reason.MALFORMED_JSON)
    assert "oncall" not in caught.value.detail


@pytest.mark.parametrize("payload", [None, b"{", b"[]", b"{}", b'{"alerts":[]}', b'{"notification_id":"n","alerts":1}'])
def test_what_is_no_notification_says_so(payload: bytes | None) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_notification_id(payload)


def test_a_transition_comes_back_from_its_body() -> None:
    for transition in (FIRING, RESOLVED):
        found: Transition = decode_transition(orjson.dumps(transition.to_body()))
        assert found == transition
