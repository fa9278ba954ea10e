"""One OTLP log record, the same from both encodings."""

from dataclasses import dataclass

from schemas.dead_letters import Reason
from udfs.telemetry.span_checks import INT64_MAX, Fault

TIME_MISSING: Fault = (Reason.BAD_TIME, "neither time_unix_nano nor observed_time_unix_nano is given")
TIME_OVERFLOW: Fault = (Reason.BAD_TIME, "a time is beyond the year 2262 (does not fit 64 signed bits)")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record. Times are nanoseconds since 1970; `time_ns` is the observed time where the source gave no other.

    `body` is a text as it came, whatever it holds: a text that is itself JSON stays a text. A body of another kind is
    the JSON of it; `body_kind` tells (string, bool, int, double, array, kvlist, bytes; null without one). Ids are
    lower-case hex, None where the record belongs to no trace.
    """

    service_name: str
    labels: dict[str, str]
    scope: str
    time_ns: int
    observed_ns: int
    severity_number: int
    severity_text: str
    body: str | None
    body_kind: str
    event_name: str
    trace_id: str | None
    span_id: str | None


def time_fault(time_ns: int, observed_ns: int) -> Fault | None:
    """Return what is wrong with a record's times, or None.

    >>> time_fault(0, 0)[0].value, time_fault(0, 5)
    ('bad_time', None)
    """
    if not 0 <= time_ns <= INT64_MAX or not 0 <= observed_ns <= INT64_MAX:
        return TIME_OVERFLOW
    return None if time_ns or observed_ns else TIME_MISSING
