"""The line of one span that waits for other spans of its trace: written here for a whole batch, read here one by one.

    W or C + trace id (32) + span id (16) + event time in ms (15 digits) + span index (8 digits)
           + phase (1) + start (19 digits) + end (19 digits), ns since 1970 + the span's own fields as a request's JSON

`W` is a GenAI span, which becomes a request unless one is found above it; `C` any other, which can only lie below one.
The phase is 0, or the place of the span's name in schemas.semconv.PHASE_SPANS, counted from 1. The head up to the span
index is that of a request's line (batch.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from schemas.semconv import PHASE_SPANS
from udfs.telemetry.request_lines import request_json

GENAI, OTHER = "W", "C"

# Where the parts of a line begin, counted from 0.
TRACE_AT = 1
SPAN_AT = 33
PHASE_AT = 72
START_AT = 73
END_AT = 92
PAYLOAD_AT = 111

_PHASES = tuple(PHASE_SPANS)


@dataclass(frozen=True, slots=True)
class WaitingSpan:
    """One waiting span. `phase` is its name where that is a phase, else empty; `fields` are its own request fields."""

    is_genai: bool
    phase: str
    start_ns: int
    end_ns: int
    fields: dict[str, Any]


def waiting_lines(spans: pa.Table, head: Iterable[pa.StringArray]) -> pa.StringArray:
    """Return one line a row of `spans` (udfs.telemetry.otlp.WAITING_SCHEMA); `head` has the parts up to the index.

    O(total length), by Arrow's string kernels.
    """
    phase = pc.index_in(spans.column("name").combine_chunks(), value_set=pa.array(_PHASES))
    return pc.binary_join_element_wise(
        pc.if_else(spans.column("is_genai").combine_chunks(), GENAI, OTHER),
        *head,
        pc.fill_null(pc.add(phase, 1), 0).cast(pa.string()),
        padded(spans.column("start_ns"), END_AT - START_AT),
        padded(spans.column("end_ns"), PAYLOAD_AT - END_AT),
        request_json(spans),
        "",
    )


def padded(numbers: pa.ChunkedArray | pa.Array, width: int) -> pa.StringArray:
    """Return numbers, none of them negative, as decimal texts of `width` digits.

    >>> padded(pa.chunked_array([[7]]), 3)[0].as_py()
    '007'
    """
    whole = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
    return pc.utf8_lpad(whole.cast(pa.string()), width, "0")


def read_waiting_line(line: str) -> WaitingSpan:
    """Return the span of one line. O(length)."""
    phase = int(line[PHASE_AT])
    return WaitingSpan(
        is_genai=line[0] == GENAI,
        phase=_PHASES[phase - 1] if phase else "",
        start_ns=int(line[START_AT:END_AT]),
        end_ns=int(line[END_AT:PAYLOAD_AT]),
        fields=orjson.loads(line[PAYLOAD_AT:]),
    )
