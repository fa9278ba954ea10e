"""Which points of a series were seen lately: tells a copy from news, and news from what comes too late. Bounded.

A point is known by its time and start. What is remembered reaches back `remember_ns` behind the newest point, and never
holds more than `most` points; everything at or before the newest one forgotten is late, so bounded memory stays exact.
"""

import struct
from bisect import bisect_left, insort
from dataclasses import dataclass
from enum import Enum
from itertools import chain

_POINT = struct.Struct("<qqI")
_HEAD = struct.Struct("<q")


class Sight(Enum):
    """What a point is to those seen before."""

    NEW = "new"
    COPY = "copy"  # the same point again
    CONFLICT = "conflict"  # another value at the same time: two sources share one identity
    LATE = "late"  # older than what is remembered


@dataclass(frozen=True, slots=True)
class SeenPoints:
    """Points in order of (time, start), each with a checksum of its figures; all after `floor_ns`."""

    points: tuple[tuple[int, int, int], ...] = ()
    floor_ns: int = -1

    def look(self, time_ns: int, start_ns: int, checksum: int) -> Sight:
        """Return what this point is. O(log points)."""
        place = bisect_left(self.points, (time_ns, start_ns))
        if place < len(self.points) and self.points[place][:2] == (time_ns, start_ns):
            return Sight.COPY if self.points[place][2] == checksum else Sight.CONFLICT
        return Sight.LATE if time_ns <= self.floor_ns else Sight.NEW

    def with_point(self, time_ns: int, start_ns: int, checksum: int, *, remember_ns: int, most: int) -> "SeenPoints":
        """Return these and one more, without those that need not be remembered. O(points).

        >>> seen = SeenPoints()
        >>> for time in (10, 30, 20, 40):
        ...     seen = seen.with_point(time, 0, 7, remember_ns=100, most=3)
        >>> seen.floor_ns, [str(seen.look(time, 0, 7).value) for time in (10, 20, 25)]
        (10, ['late', 'copy', 'new'])
        """
        points = list(self.points)
        insort(points, (time_ns, start_ns, checksum))
        floor_ns = max(self.floor_ns, points[-1][0] - remember_ns - 1)
        kept = points[bisect_left(points, (floor_ns + 1,)) :]
        if len(kept) > most:
            floor_ns = kept[-most - 1][0]
            kept = kept[bisect_left(kept, (floor_ns + 1,)) :]
        return SeenPoints(tuple(kept), floor_ns)

    @property
    def newest_ns(self) -> int:
        """Time of the newest point; the floor where none is remembered."""
        return self.points[-1][0] if self.points else self.floor_ns

    def to_bytes(self) -> bytes:
        """Return 8 bytes and 20 a point."""
        layout = _HEAD.format + _POINT.format[1:] * len(self.points)
        return struct.pack(layout, self.floor_ns, *chain.from_iterable(self.points))

    @classmethod
    def from_bytes(cls, data: bytes) -> "SeenPoints":
        """Read them back. Raises struct.error on bytes that are none."""
        (floor_ns,) = _HEAD.unpack_from(data)
        return cls(tuple(_POINT.iter_unpack(data[_HEAD.size :])), floor_ns)
