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
    parts, offset = [], 0
    while offset < len(body):
        start = offset + _LENGTH.size
        if start > len(body):
            refuse(_TAG, "the lengths do not add up")
        offset = start + _LENGTH.unpack_from(body, start - _LENGTH.size)[0]
        if offset > len(body):
            refuse(_TAG, "the lengths do not add up")
        parts.append(body[start:offset])
    if size is not None and len(parts) != size:
        refuse(_TAG, f"{len(parts)} parts, {size} were expected")
    return parts
