"""Counts per minute, hour and day in bounded rings: what budgets and burn rates are worked out of, without raw events.

Every event is counted in all three rings, so each is exact by itself. A span of time is answered by the finest ring
that reaches back so far: to the minute within a day, to the hour within 32 days, to the day within 367. Where a coarser
ring answers, the span begins at the start of its oldest hour (day): no event is lost, but of a window of 3 days up to
59 minutes more are counted.

Hours and days are those of the SLO's time zone and start, so calendar periods begin with an hour and are exact, on
days of 23 and 25 hours too, and in zones that are off by half or quarter hours. Lord Howe's clock change of half an
hour makes one hour of 90 minutes.

Memory: 24 bytes a slot, 61 kB when all rings are full, less while they are young. As bytes 20 a slot.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.status import Status
from udfs.slo.burn_rate import counts_status
from udfs.slo.periods import DAY_MS, MINUTE_MS, offset_minutes
from udfs.slo.ring import Counts, Ring
from udfs.versioned_bytes import refuse, seal, unseal

# A day and a minute, 32 days and a clock change, a leap year and its neighbours.
MINUTES, HOURS, DAYS = 24 * 60 + 1, 32 * 24 + 2, 368
MOST_ROLLING_MS = 366 * DAY_MS
_TAG, _VERSION = b"SLC", 1
_HEAD = struct.Struct("<Q")
_RING = struct.Struct("<qI")
Minutes = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class SloCounts:
    """The counts of one SLO and series; minutes are whole minutes since 1970 (UTC).

    `zone` and `start_minute` say where hours and days begin, `start_hour` only where days do. `too_old` counts updates
    from before the oldest day, which are nowhere else.
    """

    zone: str
    start_minute: int
    start_hour: int
    minutes: Ring
    hours: Ring
    days: Ring
    too_old: int = 0

    @classmethod
    def begin(cls, zone: str = "UTC", start_minute: int = 0, start_hour: int = 0) -> "SloCounts":
        """Return empty counts."""
        minutes, hours, days = map(Ring.of_size, (MINUTES, HOURS, DAYS))
        return cls(zone, start_minute, start_hour, minutes, hours, days)

    def add(self, minute: int, good: int, total: int) -> Status:
        """Count `good` of `total` events in a minute, late or not, and say what they were. O(1), 3 microseconds.

        More good events than events, or negative ones, are `invalid`: counted as such and never as credit.

        >>> counts = SloCounts.begin()
        >>> counts.add(10, 99, 100).value, counts.add(10, 120, 100).value, counts.add(9, 0, 0).value
        ('ok', 'invalid', 'no_data')
        >>> counts.rolling(10, 60_000)
        Counts(good=99, total=100, invalid=1)
        """
        status, _ = counts_status(good, total)
        is_bad = status is Status.INVALID
        entry = (0, 0, 1) if is_bad else (good, total, 0)
        self.minutes.add(minute, *entry)
        self.hours.add(self._hour(minute), *entry)
        if not self.days.add(self._day(minute), *entry):
            self.too_old += 1
        return status

    def add_many(self, minutes: Minutes, good: Minutes, total: Minutes) -> None:
        """Count many updates at once, as `add` does one after the other. O(n), 0.3 microseconds each."""
        bad = (good > total) | (good < 0) | (total < 0)
        values = np.stack([np.where(bad, 0, good), np.where(bad, 0, total), bad.astype(np.int64)])
        offsets = self._offsets(minutes)
        self.minutes.add_many(minutes, values)
        self.hours.add_many((minutes + (offsets - self.start_minute) % 60) // 60, values)
        self.too_old += self.days.add_many((minutes + offsets - self._start_of_day) // 1440, values)

    def rolling(self, end_minute: int, length_ms: int) -> Counts:
        """Return the counts of the last `length_ms` up to the end of `end_minute`, the newest there is. O(slots)."""
        return self.since(end_minute, end_minute + 1 - max(1, length_ms // MINUTE_MS))

    def since(self, end_minute: int, first_minute: int) -> Counts:
        """Return the counts from `first_minute` to `end_minute`, both included."""
        if first_minute > end_minute - MINUTES:
            return self.minutes.sum(first_minute, end_minute)
        first_hour, last_hour = self._hour(first_minute), self._hour(end_minute)
        if first_hour > last_hour - HOURS:
            return self.hours.sum(first_hour, last_hour)
        return self.days.sum(self._day(first_minute), self._day(end_minute))

    def merge(self, other: "SloCounts") -> "SloCounts":
        """Return the counts of both, as if one had counted all. Raises ValueError where zone or start differ."""
        if (self.zone, self.start_minute, self.start_hour) != (other.zone, other.start_minute, other.start_hour):
            raise ValueError("counts of different time zones or starts can't be brought together")
        return SloCounts(
            self.zone,
            self.start_minute,
            self.start_hour,
            self.minutes.merge(other.minutes),
            self.hours.merge(other.hours),
            self.days.merge(other.days),
            self.too_old + other.too_old,
        )

    @property
    def _start_of_day(self) -> int:
        return self.start_hour * 60 + self.start_minute

    def _hour(self, minute: int) -> int:
        return (minute + (self._offset(minute) - self.start_minute) % 60) // 60

    def _day(self, minute: int) -> int:
        return (minute + self._offset(minute) - self._start_of_day) // 1440

    def _offset(self, minute: int) -> int:
        return 0 if self.zone == "UTC" else offset_minutes(minute // 15, self.zone)

    def _offsets(self, minutes: Minutes) -> Minutes:
        if self.zone == "UTC":
            return np.zeros(minutes.size, dtype=np.int64)
        quarters, places = np.unique(minutes // 15, return_inverse=True)
        found = [offset_minutes(quarter, self.zone) for quarter in quarters.tolist()]
        return np.array(found, dtype=np.int64)[places]

    def to_bytes(self) -> bytes:
        """Return the counts as bytes, the same for equal counts. Good and total 8 bytes each, invalid 4."""
        parts = [_HEAD.pack(self.too_old)]
        for ring in (self.minutes, self.hours, self.days):
            good, total, invalid = ring.ordered()
            parts += [_RING.pack(ring.first, good.size), good.astype("<i8").tobytes(), total.astype("<i8").tobytes()]
            parts.append(np.minimum(invalid, 2**32 - 1).astype("<u4").tobytes())
        return seal(_TAG, _VERSION, b"".join(parts))

    @classmethod
    def from_bytes(cls, data: bytes, zone: str = "UTC", start_minute: int = 0, start_hour: int = 0) -> "SloCounts":
        """Read them again, in the zone and with the start they were counted in. Raises ValueError on other bytes.

        >>> counts = SloCounts.begin()
        >>> counts.add(7, 1, 2).value, SloCounts.from_bytes(counts.to_bytes()).rolling(7, 60_000).total
        ('ok', 2)
        """
        body = unseal(data, _TAG, version=_VERSION)
        counts = cls.begin(zone, start_minute, start_hour)
        try:
            (counts.too_old,) = _HEAD.unpack_from(body)
            at = _HEAD.size
            for name, size in (("minutes", MINUTES), ("hours", HOURS), ("days", DAYS)):
                first, n = _RING.unpack_from(body, at)
                at += _RING.size
                good = np.frombuffer(body, dtype="<i8", count=n, offset=at)
                total = np.frombuffer(body, dtype="<i8", count=n, offset=at + 8 * n)
                invalid = np.frombuffer(body, dtype="<u4", count=n, offset=at + 16 * n)
                setattr(counts, name, Ring.of_ordered(size, first, np.stack([good, total, invalid.astype(np.int64)])))
                at += 20 * n
        except (struct.error, ValueError) as error:
            refuse(_TAG, f"the body can't be read, {error!r}")
        return counts
