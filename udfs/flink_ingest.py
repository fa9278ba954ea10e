"""The ingest job's vectorised functions: one Python call for a batch of Kafka messages."""

import base64

import orjson
import pandas as pd
from pyflink.table.udf import ScalarFunction

from schemas.dead_letters import Reason, dead_letter_record
from udfs.telemetry.batch import REQUEST_INDEX_AT, REQUEST_PAYLOAD_AT, REQUEST_TIME_AT, ingest_lines
from udfs.telemetry.waiting_line import GENAI, PAYLOAD_AT

JOB = "ingest"


class DecodeSpans(ScalarFunction):
    """(message bytes, Kafka timestamp) -> newline-separated lines of `udfs.telemetry.batch.ingest_lines`."""

    def __init__(self, encoding: str, *, lenient: bool, max_skew_ms: int, joins: bool) -> None:
        self.encoding, self.lenient, self.max_skew_ms, self.joins = encoding, lenient, max_skew_ms, joins

    def eval(self, messages: "pd.Series[bytes]", timestamps: "pd.Series[int]") -> "pd.Series[str]":
        """Series of BYTES and BIGINT (epoch ms) to a Series of STRING of the same length."""
        lines = ingest_lines(
            list(messages),
            [int(stamp) for stamp in timestamps],
            encoding=self.encoding,
            lenient=self.lenient,
            max_skew_ms=self.max_skew_ms,
            joins=self.joins,
        )
        return pd.Series(lines, dtype=object)


class DeadLetters(ScalarFunction):
    """(line, place) -> the value for topic `dead_letters`; a line of a request (`R`, `W`) is one that came too late."""

    def eval(
        self,
        lines: "pd.Series[str]",
        topics: "pd.Series[str]",
        partitions: "pd.Series[int]",
        offsets: "pd.Series[int]",
        timestamps: "pd.Series[int]",
    ) -> "pd.Series[bytes]":
        """Five Series of equal length to a Series of BYTES."""
        rows = zip(lines, topics, partitions, offsets, timestamps, strict=True)
        return pd.Series([dead_letter_from_line(*row) for row in rows], dtype=object)


def dead_letter_from_line(line: str, topic: str, partition: int, offset: int, timestamp_ms: int) -> bytes:
    """Return the dead letter of a `D` line, or of an `R` or `W` line that is late: its payload is then the request."""
    if line[0] == "D":
        body = orjson.loads(line[1:])
        payload = base64.b64decode(body["payload_base64"])
    else:
        body = late_body(line)
        payload = line[PAYLOAD_AT if line[0] == GENAI else REQUEST_PAYLOAD_AT :].encode()
    return dead_letter_record(
        reason=body["reason"],
        detail=body["detail"],
        job=JOB,
        topic=topic,
        partition=int(partition),
        offset=int(offset),
        index=body["index"],
        payload=payload,
        kafka_timestamp_ms=int(timestamp_ms),
        event_time_ms=body["event_time_ms"],
    )


def late_body(line: str) -> dict[str, str | int]:
    """Say of an `R` or `W` line why it is late: everything but the payload."""
    detail = "the span ended longer before the newest span of its partition than the allowed lateness"
    return {
        "reason": Reason.LATE,
        "detail": detail,
        "index": int(line[REQUEST_INDEX_AT:REQUEST_PAYLOAD_AT]),
        "event_time_ms": int(line[REQUEST_TIME_AT:REQUEST_INDEX_AT]),
    }
