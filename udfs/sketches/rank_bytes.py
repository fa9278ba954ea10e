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
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from udfs.sketches.reference import RankReference
from udfs.sketches.unsigned import UNSIGNED, width_of

VERSION = 1
BIN_NUMBERS, COUNTS = 0, 1
_START = struct.Struct("<BBB")
_WINDOW = struct.Struct("<QQ")
_NOTHING_BESIDE = bytes(_WINDOW.size)
_CRC = struct.Struct("<I")
_CRC_OF_WHOLE = 0x2144DF1C  # what any bytes that end in their own CRC-32 have as CRC-32


class Tally(NamedTuple):
    """What sketches add up to: int64 counts of all bins, their sum, and the nulls and infinities beside them."""

    counts: NDArray[np.int64]
    n: int
    n_null: int
    n_infinite: int


def encode(layout: int, body: NDArray[np.int64], n_null: int, n_infinite: int, reference: RankReference) -> bytes:
    """Return the bytes of a sketch with this body. O(body + k)."""
    largest = reference.n_bins - 1 if layout == BIN_NUMBERS else int(body.max())
    width = width_of(largest)
    data = b"".join(
        (
            _START.pack(VERSION, layout, width),
            reference.header,
            _WINDOW.pack(n_null, n_infinite),
            body.astype(UNSIGNED[width]).tobytes(),
        )
    )
    return data + _CRC.pack(zlib.crc32(data))


def add(sketches: Iterable[bytes], reference: RankReference) -> Tally:
    """Return the sum of sketches against `reference`. O(total bytes + k).

    Raises ValueError on bytes that are no sketch, or one against another reference.
    """
    window_at = _START.size + len(reference.header)
    body_at = window_at + _WINDOW.size
    shortest = body_at + _CRC.size
    bodies: defaultdict[bytes, list[bytes]] = defaultdict(list)  # by layout, width and reference
    n_null = n_infinite = 0
    for data in sketches:
        if zlib.crc32(data) != _CRC_OF_WHOLE or len(data) < shortest:
            _check_sum(data)
            _refuse(_OTHER_REFERENCE)
        beside = data[window_at:body_at]
        if beside != _NOTHING_BESIDE:  # unpacking takes as long as all the rest of this loop
            nulls, infinities = _WINDOW.unpack(beside)
            n_null += nulls
            n_infinite += infinities
        bodies[data[:window_at]].append(data[body_at : -_CRC.size])
    sums = [_sum_of(start, parts, reference) for start, parts in bodies.items()]
    counts = sum(sums[1:], start=sums[0]) if sums else np.zeros(reference.n_bins, dtype=np.int64)
    return Tally(counts, int(counts.sum()), n_null, n_infinite)


def plain_bin_numbers(sketches: Iterable[bytes], reference: RankReference) -> NDArray[np.unsignedinteger[Any]] | None:
    """Return the bin numbers of sketches that are all of that layout, in one width, without nulls and infinities.

    This is how slices of a quiet stream are, and there is nothing else to read; None of others, which `add` takes.
    """
    found = list(sketches)
    plain = found[0][: _START.size] + reference.header + _NOTHING_BESIDE if found else b""
    version, layout, width = plain[: _START.size] if found and len(plain) > _START.size else (0, 0, 0)
    if version != VERSION or layout != BIN_NUMBERS or width not in UNSIGNED:
        return None
    body_at, crc = len(plain), zlib.crc32
    bodies = [data[body_at:-4] for data in found if data.startswith(plain) and crc(data) == _CRC_OF_WHOLE]
    whole = b"".join(bodies)
    return np.frombuffer(whole, UNSIGNED[width]) if len(bodies) == len(found) and not len(whole) % width else None


def read_reference(data: bytes) -> RankReference:
    """Return the reference that a sketch's bytes carry, without its points. Raises ValueError on no sketch. O(k)."""
    _check_sum(data)
    return RankReference.from_header(data[_START.size : -_CRC.size])


def _check_sum(data: bytes) -> None:
    if zlib.crc32(data) != _CRC_OF_WHOLE:
        _refuse("the checksum is wrong, the bytes were changed or cut")


def _sum_of(start: bytes, bodies: list[bytes], reference: RankReference) -> NDArray[np.int64]:
    version, layout, width = _START.unpack_from(start)
    n_bins = reference.n_bins
    if version != VERSION:
        _refuse(f"version {version} is unknown, {VERSION} was expected")
    if start[_START.size :] != reference.header:
        _refuse(_OTHER_REFERENCE)
    if layout not in (BIN_NUMBERS, COUNTS) or width not in UNSIGNED:
        _refuse(f"layout {layout} of width {width} is unknown")
    whole = b"".join(bodies)
    if len(whole) % width or (layout == COUNTS and len(whole) != len(bodies) * n_bins * width):
        _refuse("the lengths do not add up")
    numbers = np.frombuffer(whole, UNSIGNED[width]).astype(np.int64)
    if layout == COUNTS:
        return np.asarray(numbers.reshape(-1, n_bins).sum(axis=0))
    counts = np.bincount(numbers, minlength=n_bins)
    if counts.size > n_bins:
        _refuse("a bin number is beyond the last bin")
    return counts


_OTHER_REFERENCE = "not one against this reference"


def _refuse(problem: str) -> NoReturn:
    raise ValueError(f"not a rank sketch: {problem}")
