"""Several byte strings as one: the sketches of a slice, one for each judge of its monitor.

>>> unbundle(bundle([b"a", b"", b"bcd"]))
[b'a', b'', b'bcd']
"""

import struct
from collections.abc import Sequence

_LENGTH = struct.Struct("<I")


def bundle(parts: Sequence[bytes]) -> bytes:
    """Return `parts`, each behind its length."""
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def unbundle(data: bytes) -> list[bytes]:
    """Return what `bundle` was given. Raises struct.error on bytes that are cut."""
    parts, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        parts.append(data[at : at + length])
        at += length
    return parts
