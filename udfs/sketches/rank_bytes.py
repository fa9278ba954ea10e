"""The bytes of a rank sketch, version 1, little-endian throughout.

    bytes      what
    1          version, 1
    1          layout: 0 bin numbers, 1 counts
    1          width of each number in the body: 1, 2, 4 or 8 bytes
    1          width of a multiplicity, or 0: every reference point occurs once
    8          digest of the reference
    8          k, its distinct points; there are 2k + 1 bins
    8          its nulls
    k * width  its multiplicities, where not all are 1
    8          nulls of the window
    8          infinite values of the window
    rest       body: the bin number of every value, ascending; or the count of every bin
    4          CRC-32 of everything before

The shorter body is taken, so a sketch of n values takes O(min(n, 2k + 1)) bytes and equal sketches have equal bytes.
The multiplicities of a reference with ties are carried so that D can be told from the bytes alone.
"""

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.reference import DIGEST_BYTES, RankReference

VERSION = 1
BIN_NUMBERS, COUNTS = 0, 1
_START = struct.Struct("<BBB")
_REFERENCE = struct.Struct(f"<B{DIGEST_BYTES}sQQ")
_WINDOW = struct.Struct("<QQ")
_CRC = struct.Struct("<I")
_CRC_OF_WHOLE = 0x2144DF1C  # what any bytes that end in their own CRC-32 have as CRC-32
_UNSIGNED: dict[int, np.dtype[np.unsignedinteger[Any]]] = {width: np.dtype(f"<u{width}") for width in (1, 2, 4, 8)}


@dataclass(frozen=True, slots=True)
class Tally:
    """What sketches add up to: int64 counts of all bins, and the nulls and infinities beside them."""

    counts: NDArray[np.int64]
    n_null: int
    n_infinite: int


def encode(layout: int, body: NDArray[np.int64], n_null: int, n_infinite: int, reference: RankReference) -> bytes:
    """Return the bytes of a sketch with this body. O(body + k)."""
    largest = reference.n_bins - 1 if layout == BIN_NUMBERS else int(body.max())
    width = width_of(largest)
    data = b"".join(
        (
            _START.pack(VERSION, layout, width),
            reference_bytes(reference),
            _WINDOW.pack(n_null, n_infinite),
            body.astype(_UNSIGNED[width]).tobytes(),
        )
    )
    return data + _CRC.pack(zlib.crc32(data))


def add(sketches: Iterable[bytes], reference: RankReference) -> Tally:
    """Return the sum of sketches against `reference`. O(total bytes + k).

    Raises ValueError on bytes that are no sketch, or one against another reference.
    """
    expected = reference_bytes(reference)
    window_at = _START.size + len(expected)
    body_at = window_at + _WINDOW.size
    bodies: defaultdict[bytes, list[bytes]] = defaultdict(list)
    n_null = n_infinite = 0
    for data in sketches:
        _check_sum(data)
        if not data.startswith(expected, _START.size):
            read_reference(data)  # tells what is wrong, if it is no sketch at all
            raise ValueError("a sketch against another reference can't be added")
        if len(data) < body_at + _CRC.size:
            _refuse("the lengths do not add up")
        nulls, infinities = _WINDOW.unpack_from(data, window_at)
        n_null += nulls
        n_infinite += infinities
        bodies[data[: _START.size]].append(data[body_at : -_CRC.size])
    counts = np.zeros(reference.n_bins, dtype=np.int64)
    for start, parts in bodies.items():
        version, layout, width = _START.unpack(start)
        if version != VERSION:
            _refuse(f"version {version} is unknown, {VERSION} was expected")
        counts += _sum_of(layout, width, parts, reference.n_bins)
    return Tally(counts, n_null, n_infinite)


def read_reference(data: bytes) -> RankReference:
    """Return the reference that a sketch's bytes carry, without its points. Raises ValueError on no sketch. O(k)."""
    _check_sum(data)
    if len(data) < _START.size + _REFERENCE.size + _WINDOW.size + _CRC.size:
        _refuse(f"{len(data)} bytes are too few")
    tie_width, digest, k, n_null = _REFERENCE.unpack_from(data, _START.size)
    ties_at = _START.size + _REFERENCE.size
    if tie_width and tie_width not in _UNSIGNED:
        _refuse(f"a multiplicity of {tie_width} bytes is unknown")
    if ties_at + k * tie_width + _WINDOW.size + _CRC.size > len(data):
        _refuse("the lengths do not add up")
    if not tie_width:
        return RankReference(None, np.ones(k, dtype=np.int64), n_null, digest)
    multiplicity = np.frombuffer(data, _UNSIGNED[tie_width], k, ties_at)
    return RankReference(None, multiplicity.astype(np.int64), n_null, digest)


@lru_cache(maxsize=128)
def reference_bytes(reference: RankReference) -> bytes:
    """Return the part of the bytes that says what the reference is; the same for each of its sketches."""
    ties = reference.multiplicity
    width = 0 if reference.is_distinct else width_of(int(ties.max()))
    start = _REFERENCE.pack(width, reference.digest, ties.size, reference.n_null)
    return start + (ties.astype(_UNSIGNED[width]).tobytes() if width else b"")


def width_of(largest: int) -> int:
    """Return how many bytes hold `largest`: 1, 2, 4 or 8.

    >>> width_of(255), width_of(256)
    (1, 2)
    """
    return next(width for width in _UNSIGNED if largest < 1 << 8 * width)


def _check_sum(data: bytes) -> None:
    if zlib.crc32(data) != _CRC_OF_WHOLE:
        _refuse("the checksum is wrong, the bytes were changed or cut")


def _sum_of(layout: int, width: int, bodies: list[bytes], n_bins: int) -> NDArray[np.int64]:
    if layout not in (BIN_NUMBERS, COUNTS) or width not in _UNSIGNED:
        _refuse(f"layout {layout} of width {width} is unknown")
    if any(len(body) % width for body in bodies) or (
        layout == COUNTS and any(len(b) != n_bins * width for b in bodies)
    ):
        _refuse("the lengths do not add up")
    numbers = np.frombuffer(b"".join(bodies), _UNSIGNED[width]).astype(np.int64)
    if layout == COUNTS:
        return np.asarray(numbers.reshape(-1, n_bins).sum(axis=0))
    counts = np.bincount(numbers, minlength=n_bins)
    if counts.size > n_bins:
        _refuse("a bin number is beyond the last bin")
    return counts


def _refuse(problem: str) -> NoReturn:
    raise ValueError(f"not a rank sketch: {problem}")
