"""What makes a span unusable whatever its encoding: ids and times. One sentence a fault, none quoting a value."""

import numpy as np
import numpy.typing as npt

from schemas.dead_letters import Reason
from udfs.telemetry.span_batch import Bools

NS_PER_MS = 1_000_000
INT64_MAX = 2**63 - 1

Fault = tuple[Reason, str]

TRACE_ID_LENGTH: Fault = (Reason.BAD_ID, "trace_id is not 16 bytes")
TRACE_ID_ZERO: Fault = (Reason.BAD_ID, "trace_id is all zero")
SPAN_ID_LENGTH: Fault = (Reason.BAD_ID, "span_id is not 8 bytes")
SPAN_ID_ZERO: Fault = (Reason.BAD_ID, "span_id is all zero")
PARENT_ID_LENGTH: Fault = (Reason.BAD_ID, "parent_span_id is neither empty nor 8 bytes")
END_MISSING: Fault = (Reason.BAD_TIME, "end_time_unix_nano is absent, or within a millisecond of 1970")
TIME_OVERFLOW: Fault = (Reason.BAD_TIME, "a time is beyond the year 2262 (does not fit 64 signed bits)")
END_BEFORE_START: Fault = (Reason.BAD_TIME, "end_time_unix_nano is before start_time_unix_nano")
TIME_TYPE: Fault = (Reason.BAD_TIME, "a time is no whole number of nanoseconds")


def time_fault(start_ns: int, end_ns: int) -> Fault | None:
    """Return what is wrong with one span's times, or None. A start of 0 means absent, and is no fault.

    >>> time_fault(5_000_000, 4_000_000)[0].value
    'bad_time'
    >>> time_fault(0, 1_700_000_000_000_000_000) is None
    True
    """
    if not 0 <= start_ns <= INT64_MAX or end_ns > INT64_MAX:
        return TIME_OVERFLOW
    if end_ns < NS_PER_MS:
        return END_MISSING
    return END_BEFORE_START if end_ns < start_ns else None


def time_faults(start_ns: npt.NDArray[np.uint64], end_ns: npt.NDArray[np.uint64]) -> Bools:
    """Return which rows have a `time_fault`; both arrays are uint64 (n,)."""
    largest = np.uint64(INT64_MAX)
    faulty: Bools = (start_ns > largest) | (end_ns > largest) | (end_ns < NS_PER_MS) | (end_ns < start_ns)
    return faulty
