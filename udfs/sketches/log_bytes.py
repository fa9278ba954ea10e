"""The bytes of a log sketch, version 1: an envelope (`udfs.versioned_bytes`, tag LOG) around this body, little-endian.

    offset  bytes  what
         0      8  relative accuracy, float64
         8      8  nulls
        16      8  bins, b
        24      4  key of the first bin, signed
        28      1  bytes a step (1, 2, 4 or 8)
        29         b - 1 steps from one key to the next
                1  bytes a count (1, 2, 4 or 8)
                   b counts

Neighbouring bins are a step of 1 apart, so a bin usually takes 2 or 3 bytes.
"""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.unsigned import UNSIGNED, width_of
from udfs.versioned_bytes import refuse, seal, unseal

TAG, VERSION = b"LOG", 1
_HEADER = struct.Struct("<dQQi")


class LogBytes(NamedTuple):
    """What the bytes say: `counts[i]` values in the bin of key `keys[i]`, keys ascending; both int64."""

    relative_accuracy: float
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    n_null: int


def encode(sketch: LogBytes) -> bytes:
    """Return the bytes, the same for equal sketches. O(bins)."""
    first = int(sketch.keys[0]) if sketch.keys.size else 0
    header = _HEADER.pack(sketch.relative_accuracy, sketch.n_null, sketch.keys.size, first)
    return seal(TAG, VERSION, header + _pack(np.diff(sketch.keys)) + _pack(sketch.counts))


def decode(data: bytes) -> LogBytes:
    """Return what the bytes say. Raises ValueError on bytes that are no log sketch. O(bins)."""
    body = unseal(data, TAG)
    if len(body) < _HEADER.size:
        refuse(TAG, "the body is too short")
    accuracy, n_null, size, first = _HEADER.unpack_from(body)
    steps, offset = _unpack(body, _HEADER.size, max(size - 1, 0))
    counts, end = _unpack(body, offset, size)
    if end != len(body):
        refuse(TAG, "the lengths do not add up")
    keys = np.empty(size, dtype=np.int64)
    keys[:1] = first
    np.cumsum(steps, dtype=np.int64, out=keys[1:])
    keys[1:] += first
    return LogBytes(accuracy, keys, counts.astype(np.int64), n_null)


def _pack(values: NDArray[np.int64]) -> bytes:
    width = width_of(int(values.max())) if values.size else 1
    return bytes([width]) + values.astype(UNSIGNED[width]).tobytes()


def _unpack(body: bytes, offset: int, size: int) -> tuple[NDArray[np.unsignedinteger[Any]], int]:
    """Return the entries packed at `offset`, and the offset behind them."""
    width = body[offset] if offset < len(body) else 0
    end = offset + 1 + size * width
    if width not in UNSIGNED or end > len(body):
        refuse(TAG, "the lengths do not add up")
    return np.frombuffer(body, UNSIGNED[width], size, offset + 1), end
