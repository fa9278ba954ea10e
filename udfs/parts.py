"""Several byte strings as one: each behind its length, in an envelope (`udfs.versioned_bytes`, tag PTS)."""

import struct
from collections.abc import Sequence

from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"PTS", 1
_LENGTH = struct.Struct("<I")


def join_parts(parts: Sequence[bytes]) -> bytes:
    """Return the parts as one. O(total length).

    >>> split_parts(join_parts([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    return seal(_TAG, _VERSION, b"".join(_LENGTH.pack(len(part)) + part for part in parts))


def split_parts(data: bytes, size: int | None = None) -> list[bytes]:
    """Return the parts again. Raises ValueError on other bytes, and unless there are `size` parts where it is given."""
    body = unseal(data, _TAG)
    parts, offset, end = [], 0, len(body)
    while offset < end:
        start = offset + _LENGTH.size
        stop = start + int.from_bytes(body[offset:start], "little")
        if start > end or stop > end:
            refuse(_TAG, "the lengths do not add up")
        parts.append(body[start:stop])
        offset = stop
    if size is not None and len(parts) != size:
        refuse(_TAG, f"{len(parts)} parts, {size} were expected")
    return parts
