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
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("<B3s")
_CRC = struct.Struct("<I")
_UNSIGNED: dict[int, np.dtype[np.unsignedinteger[Any]]] = {width: np.dtype(f"<u{width}") for width in (1, 2, 4, 8)}


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


def pack_unsigned(values: NDArray[np.int64]) -> bytes:
    """Return one byte saying how wide an entry is (1, 2, 4 or 8 bytes), then the entries, none below 0. O(entries).

    >>> pack_unsigned(np.array([1, 300])).hex()
    '0201002c01'
    """
    width = int(np.min_scalar_type(values.max()).itemsize) if values.size else 1
    return bytes([width]) + values.astype(_UNSIGNED[width]).tobytes()


def unpack_unsigned(body: bytes, offset: int, size: int) -> tuple[NDArray[np.int64], int]:
    """Return the `size` entries written at `offset` by `pack_unsigned`, and the offset behind them.

    Raises ValueError where the body is too short or the width is none.
    """
    width = body[offset] if offset < len(body) else 0
    end = offset + 1 + size * width
    if width not in _UNSIGNED or end > len(body):
        raise ValueError("the lengths do not add up")
    return np.frombuffer(body, _UNSIGNED[width], size, offset + 1).astype(np.int64), end


def refuse(tag: bytes, problem: str) -> NoReturn:
    """Raise the ValueError that says why bytes are not what `tag` names."""
    raise ValueError(f"not {tag.decode()} bytes: {problem}")
