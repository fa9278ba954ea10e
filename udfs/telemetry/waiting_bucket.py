"""What of a bucket of traces goes out: many traces wait in one piece of state, which is read and written as a whole.

State by trace would cost a read from the engine for every trace and timers of its own; a bucket costs one read for the
hundreds of traces in it. What goes out is what `trace_join.release` says of each trace alone. Pure; flink_join.py
drives it.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from udfs.telemetry.trace_join import (
    ARRIVAL_AT,
    LINE_AT,
    LOOK_AT,
    Entry,
    Released,
    Request,
    decode_entry,
    encode_entry,
    release,
)
from udfs.telemetry.waiting_line import SPAN_AT, TRACE_AT
from udfs.telemetry.wall_clock import Cutoff

_TRACE = slice(LINE_AT + TRACE_AT, LINE_AT + SPAN_AT)


@dataclass(frozen=True, slots=True)
class BucketReleased:
    """What goes out of a bucket: the requests, how many spans were counted as children, and the texts that wait on.

    `waiting` is None where nothing goes out and all wait on as they are.
    """

    requests: tuple[Request, ...]
    children: int
    waiting: tuple[str, ...] | None


def bucket_of(trace_id: str, buckets: int) -> int:
    """Return the bucket of a trace, from 0 to below `buckets`: the same in every process, as state depends on it.

    >>> bucket_of("0af7651916cd43dd8448eb211c80319c", 128)
    94
    """
    return zlib.crc32(trace_id.encode()) % buckets


def release_due(texts: Sequence[str], cutoff: Cutoff) -> BucketReleased:
    """Return what goes out of a bucket whose entries (`trace_join.encode_entry`) are `texts`, of any traces.

    A trace is looked at only if one of its entries is due by `cutoff`. O(n) for n entries, and O(m log m) for the m of
    the traces looked at. Raises ValueError on an entry of another version.
    """
    due = _traces_due(texts, cutoff)
    if not due:
        return BucketReleased((), 0, None)
    waiting: list[str] = []
    traces: dict[str, list[Entry]] = defaultdict(list)
    for text in texts:
        if text[_TRACE] in due:
            traces[text[_TRACE]].append(decode_entry(text))
        else:
            waiting.append(text)
    released = [_release(entries, cutoff) for entries in traces.values()]
    if not any(each.requests or each.children for each in released):
        return BucketReleased((), 0, None)
    waiting += [encode_entry(entry) for each in released for entry in each.waiting]
    requests = tuple(request for each in released for request in each.requests)
    return BucketReleased(requests, sum(each.children for each in released), tuple(waiting))


def _traces_due(texts: Iterable[str], cutoff: Cutoff) -> set[str]:
    """Return the traces of which an entry is due by either clock, without reading more of the entries than that."""
    by_ms, overdue = cutoff.arrived_by_ms, cutoff.overdue_look
    return {
        text[_TRACE]
        for text in texts
        if int(text[ARRIVAL_AT:LOOK_AT]) <= by_ms or (overdue >= 0 and int(text[LOOK_AT:LINE_AT]) <= overdue)
    }


def _release(entries: Sequence[Entry], cutoff: Cutoff) -> Released:
    """Release one trace. The looks at the watermark count from the one before the first of its spans came."""
    first_look = min(entry.look for entry in entries)
    if first_look <= cutoff.overdue_look:
        return release(entries, None)
    if cutoff.settled_look is not None and first_look > cutoff.settled_look:
        return Released((), 0, tuple(entries))
    return release(entries, cutoff.arrived_by_ms)
