"""Which times to first token may be counted: those of streamed answers.

A call that is not streamed has no first token of its own: what is reported then is the whole generation, and a
percentile over both means nothing. Source: langfuse issue 3554.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NON_STREAMING, EQUALS_END_TO_END = "non_streaming", "equals_end_to_end"


@dataclass(frozen=True, slots=True)
class FirstTokenTimes:
    """`seconds` of the requests that count, in their order, and how many were excluded, by reason."""

    seconds: list[float] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)


def first_token_times(requests: Iterable[Mapping[str, Any]]) -> FirstTokenTimes:
    """Return the times to first token of `requests` (fields as topic `requests` has them) that may be counted.

    Excluded are requests that say they were not streamed, and, where a request doesn't say, those whose first token
    came with the last although there were several. Requests without the time are neither. O(n).

    >>> found = first_token_times([
    ...     {"is_streaming": False, "end_to_end_seconds": 8.0, "time_to_first_token_seconds": 8.0},
    ...     {"is_streaming": True, "end_to_end_seconds": 8.0, "time_to_first_token_seconds": 0.4}])
    >>> found.seconds, dict(found.excluded)
    ([0.4], {'non_streaming': 1})
    """
    found = FirstTokenTimes()
    for request in requests:
        seconds = request.get("time_to_first_token_seconds")
        if seconds is None:
            continue
        reason = exclusion(request)
        if reason is None:
            found.seconds.append(seconds)
        else:
            found.excluded[reason] += 1
    return found


def exclusion(request: Mapping[str, Any]) -> str | None:
    """Return why a request's time to first token must not be counted, or None.

    In SQL: `is_streaming IS FALSE OR (is_streaming IS NULL AND time_to_first_token_seconds >= end_to_end_seconds AND
    (output_tokens IS NULL OR output_tokens > 1))`.
    """
    is_streaming = request.get("is_streaming")
    if is_streaming is False:
        return NON_STREAMING
    first, last = request.get("time_to_first_token_seconds"), request.get("end_to_end_seconds")
    if is_streaming is None and first is not None and last is not None and first >= last:
        tokens = request.get("output_tokens")
        return EQUALS_END_TO_END if tokens is None or tokens > 1 else None
    return None
