"""The versioned bytes of what is remembered of one series.

Layout: an envelope (`udfs.versioned_bytes`) around the length of a JSON head, the head (the last report), and the
points seen. To change it: raise `STATE_VERSION`, keep the old reader, and commit a golden file of what the old code
wrote.
"""

import struct
from typing import Any

import orjson

from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.telemetry.metric_series import Figure, Report, SeriesState
from udfs.telemetry.seen_points import SeenPoints
from udfs.versioned_bytes import refuse, seal, unseal

STATE_VERSION = 1
_TAG = b"MTR"
_LENGTH = struct.Struct("<I")


def encode(state: SeriesState) -> bytes:
    """Return the bytes of `state`; equal states give equal bytes. O(buckets + remembered).

    >>> decode(encode(SeriesState())) == SeriesState()
    True
    """
    last = state.last
    head = None if last is None else [last.time_ns, last.start_ns, _plain(last.figure)]
    text = orjson.dumps(head)
    return seal(_TAG, STATE_VERSION, _LENGTH.pack(len(text)) + text + state.seen.to_bytes())


def decode(data: bytes) -> SeriesState:
    """Read them again. Raises ValueError on bytes that are none, or of a later version: that must stop the job."""
    body = unseal(data, _TAG, version=STATE_VERSION)
    try:
        (length,) = _LENGTH.unpack_from(body)
        at = _LENGTH.size + length
        head = orjson.loads(body[_LENGTH.size : at])
        last = None if head is None else Report(head[0], head[1], _figure(head[2]))
        return SeriesState(SeenPoints.from_bytes(body[at:]), last)
    except (struct.error, LookupError, TypeError, orjson.JSONDecodeError) as error:
        refuse(_TAG, f"the body can't be read, {error!r}")


def _plain(figure: Figure) -> Any:
    if isinstance(figure, ExplicitHistogram):
        return {"bounds": figure.bounds, "counts": figure.counts, "sum": figure.sum}
    if isinstance(figure, ExponentialHistogram):
        return {
            "scale": figure.scale,
            "zero_count": figure.zero_count,
            "zero_threshold": figure.zero_threshold,
            "positive": figure.positive,
            "negative": figure.negative,
            "sum": figure.sum,
        }
    return figure


def _figure(plain: Any) -> Figure:
    if isinstance(plain, int | float):
        return plain
    if "bounds" in plain:
        return ExplicitHistogram(tuple(plain["bounds"]), tuple(plain["counts"]), plain["sum"])
    sides = {side: tuple((index, count) for index, count in plain[side]) for side in ("positive", "negative")}
    return ExponentialHistogram(**plain | sides)
