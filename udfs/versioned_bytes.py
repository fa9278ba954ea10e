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
    if len(data) < _HEADER.size + _CRC.size:
        refuse(tag, f"{len(data)} bytes are too few")
    found_version, found_tag = _HEADER.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, len(data) - _CRC.size)
    if found_tag != tag:
        refuse(tag, f"the tag is {found_tag!r}")
    if found_version != version:
        refuse(tag, f"version {found_version} is unknown, version {version} was expected")
    if zlib.crc32(memoryview(data)[: -_CRC.size]) != crc:
        refuse(tag, "the checksum is wrong, the bytes were changed or cut")
    return data[_HEADER.size : -_CRC.size]


def refuse(tag: bytes, problem: str) -> NoReturn:
    """Raise the ValueError that says why bytes are not what `tag` names."""
    raise ValueError(f"not {tag.decode()} bytes: {problem}")
