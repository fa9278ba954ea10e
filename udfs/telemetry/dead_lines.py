"""The line of one dead letter, between the call that decodes a batch and the one that writes to `dead_letters`.

D{"reason":...,"detail":...,"index":...,"event_time_ms":...,"payload_base64":...}
"""

import base64

import orjson

from schemas.dead_letters import DeadLetter, dead_letter_record


def dead_line(letter: DeadLetter, event_time_ms: int | None = None) -> str:
    """Return the line of a dead letter. It holds no line break."""
    body = {
        "reason": letter.reason,
        "detail": letter.detail,
        "index": letter.span_index,
        "event_time_ms": event_time_ms,
        "payload_base64": base64.b64encode(letter.payload).decode(),
    }
    return "D" + orjson.dumps(body).decode()


def record_of_line(line: str, *, job: str, topic: str, partition: int, offset: int, kafka_timestamp_ms: int) -> bytes:
    """Return the value for topic `dead_letters` of a line of a message at this place."""
    body = orjson.loads(line[1:])
    return dead_letter_record(
        reason=body["reason"],
        detail=body["detail"],
        job=job,
        topic=topic,
        partition=partition,
        offset=offset,
        index=body["index"],
        payload=base64.b64decode(body["payload_base64"]),
        kafka_timestamp_ms=kafka_timestamp_ms,
        event_time_ms=body["event_time_ms"],
    )
