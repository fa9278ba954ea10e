"""One change to what serves: a deploy, a rollout step, new training data... as topic `changes` carries it.

The value is a CloudEvents 1.0 event in JSON (structured mode), the key the service. `changes.schema.json` describes it.

    {"specversion": "1.0", "id": "4711", "source": "urn:ci:pipeline/chat", "type": "slacktide.change.deploy",
     "time": "2026-01-31T12:00:00Z", "subject": "chat",
     "data": {"summary": "chat 1.8", "labels": {"version": "1.8"}, "duration_seconds": 600}}

`type` is `slacktide.change.` and a kind. The service is `data.service`, else `subject`; `*` is every service. `labels`
say which of the service's series the change concerns: an alert with another value of such a label is not. An event is
known by (source, id), as CloudEvents has it; the same one again changes nothing.

Source: CloudEvents 1.0.2, spec.md (required attributes) and formats/json-format.md; spec row A4 for the kinds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from schemas.dead_letters import Reason
from schemas.ids import record_id
from schemas.record_fields import (
    instant_field,
    json_object,
    labels_field,
    optional_text_field,
    refuse,
    seconds_field,
    text_field,
)
from schemas.times import LAST_MS, rfc3339

SPEC_VERSION = "1.0"
TYPE_PREFIX = "slacktide.change."
EVERY_SERVICE = "*"


class ChangeKind(StrEnum):
    """What was changed, or what came over the service."""

    DEPLOY = "deploy"
    ROLLOUT_STEP = "rollout_step"
    TRAINING_DATA_UPDATE = "training_data_update"
    INDEX_REBUILD = "index_rebuild"
    CONFIG_CHANGE = "config_change"
    FLAG_CHANGE = "flag_change"
    HUB_REVISION = "hub_revision"
    HIGH_CONCURRENCY = "high_concurrency"


@dataclass(frozen=True, slots=True)
class Change:
    """One change. Times are epoch milliseconds here and RFC 3339 on the wire.

    `ends_ms` is None where the event says nothing of an end: how long it can explain anything is then the policy's.
    """

    source: str
    event_id: str
    kind: ChangeKind
    service: str
    time_ms: int
    ends_ms: int | None = None
    summary: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def change_id(self) -> str:
        """Deterministic over source and id."""
        return record_id(self.source, self.event_id)

    @property
    def key(self) -> str:
        """The Kafka key."""
        return self.service

    def to_json(self) -> bytes:
        """The Kafka value: a CloudEvent."""
        data: dict[str, Any] = {"service": self.service, "summary": self.summary, "labels": self.labels}
        if self.ends_ms is not None:
            data["ends_at"] = rfc3339(self.ends_ms)
        return orjson.dumps(
            {
                "specversion": SPEC_VERSION,
                "id": self.event_id,
                "source": self.source,
                "type": TYPE_PREFIX + self.kind,
                "time": rfc3339(self.time_ms),
                "subject": self.service,
                "datacontenttype": "application/json",
                "data": data,
            }
        )


def decode_change(payload: bytes | None, kafka_timestamp_ms: int | None = None) -> Change:
    """Read one Kafka value of topic `changes`.

    An event without `time` happened at the record's Kafka timestamp. Raises UnreadableRecordError, whose detail names
    the field at fault and never quotes a value. O(length).

    >>> event = decode_change(b'{"specversion": "1.0", "id": "1", "source": "ci", "type": "slacktide.change.deploy", '
    ...                       b'"time": "2026-01-31T12:00:00Z", "subject": "chat", "data": {"duration_seconds": 60}}')
    >>> str(event.kind), event.service, event.ends_ms - event.time_ms
    ('deploy', 'chat', 60000)
    """
    body = json_object(payload)
    if body.get("specversion") != SPEC_VERSION:
        refuse(Reason.BAD_VALUE, f"specversion is not {SPEC_VERSION}")
    event_id = text_field(body, "id", reason=Reason.BAD_ID)
    source = text_field(body, "source", reason=Reason.BAD_ID)
    kind = _kind(text_field(body, "type"))
    if body.get("time") is None and kafka_timestamp_ms is not None:
        time_ms = kafka_timestamp_ms
    else:
        time_ms = instant_field(body, "time")
    data = _data(body)
    service = optional_text_field(data, "service", place="data.") or text_field(body, "subject")
    return Change(
        source=source,
        event_id=event_id,
        kind=kind,
        service=service,
        time_ms=time_ms,
        ends_ms=_ends_ms(data, time_ms),
        summary=optional_text_field(data, "summary", place="data."),
        labels=labels_field(data, "labels", place="data."),
    )


def _kind(event_type: str) -> ChangeKind:
    name = event_type.removeprefix(TYPE_PREFIX)
    if name == event_type or name not in tuple(ChangeKind):
        refuse(Reason.BAD_VALUE, f"type is not {TYPE_PREFIX} with one of {', '.join(ChangeKind)}")
    return ChangeKind(name)


def _data(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if body.get("data_base64") is not None:
        refuse(Reason.BAD_VALUE, "data_base64 is not read; give data as a JSON object")
    data = body.get("data")
    if data is None:
        return {}
    if not isinstance(data, dict):
        refuse(Reason.BAD_VALUE, "data is not an object")
    return data


def _ends_ms(data: Mapping[str, Any], time_ms: int) -> int | None:
    if data.get("ends_at") is not None:
        ends_ms = instant_field(data, "ends_at", place="data.")
        if ends_ms < time_ms:
            refuse(Reason.BAD_TIME, "data.ends_at is before time")
        return ends_ms
    seconds = seconds_field(data, "duration_seconds", place="data.")
    return None if seconds is None else min(LAST_MS, time_ms + round(min(seconds, 1e9) * 1000))
