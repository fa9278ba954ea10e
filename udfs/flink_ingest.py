"""The ingest job's vectorised functions: one Python call for a batch of Kafka messages."""

import base64
from dataclasses import dataclass, field

import orjson
import pandas as pd
from pyflink.table.udf import FunctionContext, ScalarFunction

from schemas.dead_letters import Reason, dead_letter_record
from udfs.privacy.latency_verdict import masking_verdicts
from udfs.privacy.mask import Masker
from udfs.privacy.name_model import load_name_model
from udfs.telemetry.batch import REQUEST_INDEX_AT, REQUEST_NUMBERS_AT, REQUEST_TIME_AT, ingest_lines, request_of_line
from udfs.telemetry.masking import MAX_TEXT_CHARACTERS, TextMasking
from udfs.telemetry.waiting_line import GENAI, PAYLOAD_AT

JOB = "ingest"
LEDGER_SEPARATOR = "|"  # no ledger holds one: names of kinds, numbers and base64


@dataclass(frozen=True)
class Privacy:
    """What the job's workers mask and carry. `name_model` is `package.module:factory`, empty for none."""

    key: bytes | None = field(default=None, repr=False)
    carries_text: bool = False
    max_characters: int = MAX_TEXT_CHARACTERS
    name_model: str = ""

    def masking(self) -> TextMasking:
        """Return what masks. Raises ValueError where the name model can't be loaded."""
        model = load_name_model(self.name_model) if self.name_model else None
        return TextMasking(Masker(self.key, model), self.carries_text, self.max_characters)


class DecodeSpans(ScalarFunction):
    """(message bytes, Kafka timestamp) -> newline-separated lines of `udfs.telemetry.batch.ingest_lines`."""

    def __init__(
        self, encoding: str, *, lenient: bool, max_skew_ms: int, joins: bool, privacy: "Privacy | None" = None
    ) -> None:
        self.encoding, self.lenient, self.max_skew_ms, self.joins = encoding, lenient, max_skew_ms, joins
        self.privacy = privacy or Privacy()
        self._masking: TextMasking | None = None

    def open(self, function_context: FunctionContext) -> None:
        """Load the name model, once a worker."""
        self._masking = self.privacy.masking()

    def eval(self, messages: "pd.Series[bytes]", timestamps: "pd.Series[int]") -> "pd.Series[str]":
        """Series of BYTES and BIGINT (epoch ms) to a Series of STRING of the same length."""
        lines = ingest_lines(
            list(messages),
            [int(stamp) for stamp in timestamps],
            encoding=self.encoding,
            lenient=self.lenient,
            max_skew_ms=self.max_skew_ms,
            joins=self.joins,
            masking=self._masking,
        )
        return pd.Series(lines, dtype=object)


class JudgeMasking(ScalarFunction):
    """(ledgers of a window, with LEDGER_SEPARATOR between; its start and end) -> its verdicts as JSON, one a line."""

    def eval(self, ledgers: "pd.Series[str]", starts: "pd.Series[int]", ends: "pd.Series[int]") -> "pd.Series[str]":
        """Three Series of equal length to a Series of STRING."""
        windows = zip(ledgers, starts, ends, strict=True)
        judged = [
            masking_verdicts(lines.split(LEDGER_SEPARATOR), int(start), int(end)) for lines, start, end in windows
        ]
        return pd.Series(["\n".join(v.to_json().decode() for v in verdicts) for verdicts in judged], dtype=object)


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
        payload = (line[PAYLOAD_AT:] if line[0] == GENAI else request_of_line(line)).encode()
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
        "index": int(line[REQUEST_INDEX_AT:REQUEST_NUMBERS_AT]),
        "event_time_ms": int(line[REQUEST_TIME_AT:REQUEST_INDEX_AT]),
    }
