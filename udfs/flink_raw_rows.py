"""Rows of a topic that is read as bytes (jobs/sql/raw_topic.sql), and what is made of one that can't be read."""

from typing import Protocol

from pyflink.common import Row

from schemas.dead_letters import WHOLE_MESSAGE, Reason, dead_letter_record


class Unreadable(Protocol):
    """Says why a message can't be used; its detail quotes no value."""

    reason: Reason
    detail: str


def kafka_timestamp_ms(row: Row) -> int:
    """When the message of the row came to Kafka, in epoch milliseconds."""
    return int(row[4].to_epoch_milli())


def dead_letter_of(row: Row, error: Unreadable, job: str) -> bytes:
    """Return the dead letter of the whole message that `row` holds."""
    payload, topic, partition, offset, _ = row
    return dead_letter_record(
        reason=error.reason,
        detail=error.detail,
        job=job,
        topic=topic,
        partition=partition,
        offset=offset,
        index=WHOLE_MESSAGE,
        payload=payload or b"",
        kafka_timestamp_ms=kafka_timestamp_ms(row),
    )
