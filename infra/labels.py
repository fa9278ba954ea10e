"""What a person says of an alert, as records of topic `feedback`: acknowledged, a true alarm, a false one."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from infra.errors import StackError
from infra.follow import follow
from infra.send_record import send_record
from jobs.kafka_client import KafkaClient
from schemas.alerts import AlertState
from schemas.feedback import ACKNOWLEDGED_SCORE, ALERT_SCORE, MAX_CLOCK_SKEW_SECONDS, Feedback
from schemas.ids import record_id
from schemas.times import epoch_ms
from schemas.topics import FEEDBACK

PERSON = "person"


class Word(StrEnum):
    """What can be said of an alert."""

    ACKNOWLEDGED = "acknowledged"
    FALSE_ALARM = "false-alarm"
    TRUE_ALARM = "true-alarm"


_MEANING = {
    Word.ACKNOWLEDGED: (ACKNOWLEDGED_SCORE, 1.0),
    Word.FALSE_ALARM: (ALERT_SCORE, 0.0),
    Word.TRUE_ALARM: (ALERT_SCORE, 1.0),
}


@dataclass(frozen=True, slots=True)
class FiredAlert:
    """What a label must know of the alert that it speaks of: one firing of a fingerprint."""

    fingerprint: str
    starts_at_ms: int
    monitor: str
    feature: str
    alertname: str
    series: dict[str, str]


def alert_label(alert: FiredAlert, word: Word, *, at_ms: int, by: str = PERSON, note: str | None = None) -> Feedback:
    """Return the label. Each has an id of its own, made of all that it says but the note: the last one holds.

    >>> fired = FiredAlert("d3b971819376d835", 0, "chat", "f", "FeatureDrift", {})
    >>> label = alert_label(fired, Word.FALSE_ALARM, at_ms=60_000)
    >>> label.score, label.value, label.event_time_ms
    ('alert', 0.0, 0)
    """
    score, value = _MEANING[word]
    # A clock that is behind would make a label that came before its alert, which is refused.
    label_time_ms = max(at_ms, alert.starts_at_ms - round(MAX_CLOCK_SKEW_SECONDS * 1000))
    return Feedback(
        feedback_id=record_id(alert.fingerprint, alert.starts_at_ms, score, str(value), by, label_time_ms),
        score=score,
        value=value,
        confidence=1.0,
        label_time_ms=label_time_ms,
        event_time_ms=alert.starts_at_ms,
        source=by,
        series=alert.series,
        fingerprint=alert.fingerprint,
        note=note,
    )


def find_alert(kafka: KafkaClient, topic: str, fingerprint: str, starts_at_ms: int | None = None) -> FiredAlert:
    """Return the newest firing of `fingerprint` on `topic`, or the one that began at `starts_at_ms`.

    Reads the whole topic. Raises StackError when there is none.
    """
    firings = (_fired(message.value()) for message in follow(kafka, topic, to_end=True))
    found = newest_firing(firings, fingerprint, starts_at_ms)
    if found is None:
        remedy = "`slacktide alerts --no-follow --json` shows what there is; Kafka keeps alerts for 7 days"
        raise StackError(f"no alert {fingerprint} has fired on topic {topic}", remedy)
    return found


def newest_firing(
    firings: Iterable[FiredAlert | None], fingerprint: str, starts_at_ms: int | None = None
) -> FiredAlert | None:
    """Return the one of `firings` that is meant; None where there is none."""
    meant = [
        fired
        for fired in firings
        if fired is not None and fired.fingerprint == fingerprint and starts_at_ms in (None, fired.starts_at_ms)
    ]
    return max(meant, key=lambda fired: fired.starts_at_ms, default=None)


def _fired(payload: bytes | None) -> FiredAlert | None:
    """Return the firing that a record speaks of; None for one that never came to a person, or is no alert."""
    try:
        body: Any = orjson.loads(payload or b"")
        if body["state"] not in (AlertState.FIRING, AlertState.RESOLVED):
            return None
        return FiredAlert(
            fingerprint=body["fingerprint"],
            starts_at_ms=epoch_ms(body["startsAt"]),
            monitor=body["monitor"],
            feature=body["feature"],
            alertname=body["labels"]["alertname"],
            series=dict(body["series"]),
        )
    except (ValueError, LookupError, TypeError):
        return None


def send_label(kafka: KafkaClient, label: Feedback, topic_prefix: str = "", timeout_seconds: float = 10.0) -> None:
    """Write the label to topic `feedback` and wait until it is there. Raises StackError."""
    send_record(kafka, topic_prefix + FEEDBACK.name, label.key, label.to_json(), timeout_seconds)
