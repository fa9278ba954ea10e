"""One late label, as topic `feedback` carries it: an evaluation's result, a thumb, a person's word on an alert.

The value is JSON; `feedback.schema.json` describes it. A label speaks of one request (`trace_id`) or of one alert
(`fingerprint`). It says how good it was, as a number from 0 to 1 or as a class, and how sure its source is.

Of an alert the scores are `alert` (1: true, 0: a false alarm) and `acknowledged` (1: somebody is on it); its event time
is the alert's startsAt, so fingerprint and event time name one firing of it. The last label of a score holds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from schemas.dead_letters import Reason
from schemas.record_fields import instant_field, json_object, refuse, text_field
from schemas.times import rfc3339

SCHEMA_VERSION = 1
ALERT_SCORE, ACKNOWLEDGED_SCORE = "alert", "acknowledged"
MAX_NOTE_CHARACTERS = 280
"""A note is free text, and may hold anything: it is short, and stays out of Delta (docs/delivery.md)."""
MAX_CLOCK_SKEW_SECONDS = 300.0
"""How much earlier than the request a label's time may lie: the skew that requests are allowed (docs/requests.md)."""


class Label(StrEnum):
    """A judgement in one word; each has a value."""

    GOOD = "good"
    BAD = "bad"

    @property
    def as_value(self) -> float:
        """1 for good, 0 for bad."""
        return 1.0 if self is Label.GOOD else 0.0


@dataclass(frozen=True, slots=True)
class Feedback:
    """One label. Times are epoch milliseconds here and RFC 3339 on the wire.

    `score` names what was judged (`helpful`, `grounded`, `alert`). `value` is from 0 (bad) to 1 (good), of a class its
    number. `confidence` is from 0 to 1. `event_time_ms` is the request's (or alert's) event time, `label_time_ms` when
    the label was given. Exactly one of `trace_id` and `fingerprint` is there. `series` are the labels of the series
    that it counts for. The same `feedback_id` is the same label, however often it comes. `note` is what a person wrote
    to it, at most `MAX_NOTE_CHARACTERS`.
    """

    feedback_id: str
    score: str
    value: float
    confidence: float
    label_time_ms: int
    event_time_ms: int
    source: str
    series: dict[str, str]
    trace_id: str | None = None
    fingerprint: str | None = None
    note: str | None = None

    @property
    def key(self) -> str:
        """The Kafka key: the trace id or the fingerprint."""
        return self.trace_id or self.fingerprint or ""

    @property
    def delay_seconds(self) -> float:
        """How long after the request the label was given; at least 0."""
        return max(0, self.label_time_ms - self.event_time_ms) / 1000

    def to_json(self) -> bytes:
        """The Kafka value."""
        subject = {"trace_id": self.trace_id} if self.trace_id else {"fingerprint": self.fingerprint}
        return orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "feedback_id": self.feedback_id,
                **subject,
                "score": self.score,
                "value": self.value,
                "confidence": self.confidence,
                "label_time": rfc3339(self.label_time_ms),
                "event_time": rfc3339(self.event_time_ms),
                "source": self.source,
                "series": dict(sorted(self.series.items())),
                **({"note": self.note} if self.note else {}),
            }
        )


def decode_feedback(payload: bytes | None) -> Feedback:
    """Read one Kafka value of topic `feedback`.

    Raises UnreadableRecordError, whose detail names the field at fault and never quotes a value. O(length).

    >>> label = decode_feedback(
    ...     b'{"schema_version":1,"feedback_id":"f1","trace_id":"0af7651916cd43dd8448eb211c80319c","score":"helpful",'
    ...     b'"label":"good","confidence":0.9,"label_time":"2026-01-31T14:00:00Z","event_time":"2026-01-31T12:00:00Z",'
    ...     b'"source":"thumb","series":{"model":"m1"}}')
    >>> label.value, label.delay_seconds
    (1.0, 7200.0)
    """
    body = json_object(payload)
    if body.get("schema_version") != SCHEMA_VERSION:
        refuse(Reason.BAD_VALUE, f"schema_version is not {SCHEMA_VERSION}")
    trace_id, fingerprint = _optional_text(body, "trace_id"), _optional_text(body, "fingerprint")
    if (trace_id is None) == (fingerprint is None):
        refuse(Reason.BAD_ID, "exactly one of trace_id and fingerprint must be there")
    label_ms, event_ms = instant_field(body, "label_time"), instant_field(body, "event_time")
    if label_ms < event_ms - MAX_CLOCK_SKEW_SECONDS * 1000:
        refuse(Reason.CLOCK_SKEW, f"label_time is more than {MAX_CLOCK_SKEW_SECONDS:g} s before event_time")
    return Feedback(
        feedback_id=_text(body, "feedback_id"),
        score=_text(body, "score"),
        value=_value(body),
        confidence=_share(body, "confidence"),
        label_time_ms=label_ms,
        event_time_ms=event_ms,
        source=_text(body, "source"),
        series=_labels(body),
        trace_id=trace_id,
        fingerprint=fingerprint,
        note=_note(body),
    )


def _text(body: Mapping[str, Any], name: str) -> str:
    return text_field(body, name, reason=Reason.BAD_ID if name.endswith("_id") else Reason.BAD_VALUE)


def _optional_text(body: Mapping[str, Any], name: str) -> str | None:
    return None if body.get(name) is None else _text(body, name)


def _note(body: Mapping[str, Any]) -> str | None:
    note = _optional_text(body, "note")
    if note is not None and len(note) > MAX_NOTE_CHARACTERS:
        refuse(Reason.BAD_VALUE, f"note is longer than {MAX_NOTE_CHARACTERS} characters")
    return note


def _value(body: Mapping[str, Any]) -> float:
    """The number under `value`, or the number of the class under `label`."""
    if (body.get("value") is None) == (body.get("label") is None):
        refuse(Reason.BAD_VALUE, "exactly one of value and label must be there")
    if body.get("label") is None:
        return _share(body, "value")
    if body["label"] not in tuple(Label):
        refuse(Reason.BAD_VALUE, f"label is not one of {', '.join(Label)}")
    return Label(body["label"]).as_value


def _share(body: Mapping[str, Any], name: str) -> float:
    found = body.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found) or not 0 <= found <= 1:
        refuse(Reason.BAD_VALUE, f"{name} is not a number from 0 to 1")
    return float(found)


def _labels(body: Mapping[str, Any]) -> dict[str, str]:
    found = body.get("series")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        refuse(Reason.BAD_VALUE, "series is not a mapping of texts")
    return dict(sorted(found.items()))
