"""What could not be used: the raw bytes, the reason, and where they came from. Nothing is dropped silently."""

import base64
import hashlib
from dataclasses import dataclass
from enum import StrEnum

import orjson

from schemas.ids import record_id

WHOLE_MESSAGE = -1
MAX_PAYLOAD_BYTES = 8 * 1024 * 1024


class Reason(StrEnum):
    """The closed list of reasons; each names what is wrong with the record, never a value of it."""

    MALFORMED_PROTO = "malformed_proto"
    MALFORMED_JSON = "malformed_json"
    BAD_ID = "bad_id"
    ENUM_NAME = "enum_name"
    BAD_TIME = "bad_time"
    BAD_VALUE = "bad_value"
    CLOCK_SKEW = "clock_skew"
    LATE = "late"
    NO_VALUE = "no_value"
    TEMPORALITY_UNSPECIFIED = "temporality_unspecified"
    UNSUPPORTED_METRIC = "unsupported_metric"
    INVALID_HISTOGRAM = "invalid_histogram"
    CONFLICT = "conflict"
    SERIES_OVERFLOW = "series_overflow"
    DELIVERY_REFUSED = "delivery_refused"
    SCORER_FAILED = "scorer_failed"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One unusable span or message of a decoded batch.

    `message_index` is its place in the batch, `span_index` its place among the message's spans in wire order
    (`WHOLE_MESSAGE` where the message itself can't be read). `payload` is the span's (or message's) own bytes,
    `detail` a sentence naming field and fault without quoting a value.
    """

    reason: Reason
    detail: str
    message_index: int
    span_index: int
    payload: bytes


def dead_letter_record(
    *,
    reason: str,
    detail: str,
    job: str,
    topic: str,
    partition: int,
    offset: int,
    index: int,
    payload: bytes,
    kafka_timestamp_ms: int | None,
    event_time_ms: int | None = None,
) -> bytes:
    """Return the JSON value of one record of topic `dead_letters`.

    The id is deterministic over (job, topic, partition, offset, index, reason). Payloads above `MAX_PAYLOAD_BYTES` are
    cut, with `truncated` true; `length` and `sha256` are always the whole payload's.

    >>> record = orjson.loads(dead_letter_record(reason="late", detail="", job="drift", topic="requests", partition=0,
    ...     offset=7, index=-1, payload=b"x", kafka_timestamp_ms=1))
    >>> record["reason"], record["offset"], record["length"], record["payload_base64"]
    ('late', 7, 1, 'eA==')
    """
    return orjson.dumps(
        {
            "dead_letter_id": record_id(job, topic, partition, offset, index, reason),
            "reason": reason,
            "detail": detail,
            "job": job,
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "index": index,
            "kafka_timestamp_ms": kafka_timestamp_ms,
            "event_time_ms": event_time_ms,
            "length": len(payload),
            "sha256": hashlib.sha256(payload).hexdigest(),
            "truncated": len(payload) > MAX_PAYLOAD_BYTES,
            "payload_base64": base64.b64encode(payload[:MAX_PAYLOAD_BYTES]).decode(),
        }
    )
