"""The envelope around every small state that outlives a process: what it is, which version, and a checksum.

    offset  bytes  what
         0      1  version of the body's layout
         1      3  tag: what the body is, three ASCII letters
         4         the body, little-endian throughout
       end      4  CRC-32 of everything before

Bytes of an earlier version must stay readable: a new layout gets a new version number, and the old reader stays.
"""

import struct
import zlib
from typing import NoReturn

_HEADER = struct.Struct("<B3s")
_CRC = struct.Struct("<I")
_SHORTEST = _HEADER.size + _CRC.size
_CRC_OF_WHOLE = 0x2144DF1C  # what any bytes that end in their own CRC-32 have as CRC-32


def seal(tag: bytes, version: int, body: bytes) -> bytes:
    """Return `body` in its envelope. O(body).

    >>> seal(b"LOG", 1, b"abc").hex()
    '014c4f4761626311298455'
    """
    sealed = _HEADER.pack(version, tag) + body
    return sealed + _CRC.pack(zlib.crc32(sealed))


def unseal(data: bytes, tag: bytes, *, version: int = 1) -> bytes:
    """Return the body of an envelope. Raises ValueError on another tag or version and on changed or cut bytes.

    >>> unseal(seal(b"LOG", 1, b"abc"), b"LOG")
    b'abc'
    """
    if data[1:4] == tag and data[0] == version and len(data) >= _SHORTEST and zlib.crc32(data) == _CRC_OF_WHOLE:
        return data[4 : -_CRC.size]
    if len(data) < _SHORTEST:
        refuse(tag, f"{len(data)} bytes are too few")
    found_version, found_tag = _HEADER.unpack_from(data)
    if found_tag != tag:
        refuse(tag, f"the tag is {found_tag!r}")
    if found_version != version:
        refuse(tag, f"version {found_version} is unknown, version {version} was expected")
    refuse(tag, "the checksum is wrong, the bytes were changed or cut")


def refuse(tag: bytes, problem: str) -> NoReturn:
    """Raise the ValueError that says why bytes are not what `tag` names."""
    raise ValueError(f"not {tag.decode()} bytes: {problem}")
