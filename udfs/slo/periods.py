"""The period of an error budget: rolling, or by the calendar of a time zone.

A calendar period is so many days, weeks, months, quarters or years of local time from a start, so a day of it has 23,
24 or 25 hours, and a month 28 to 31 days of such. Time zones are IANA's. Instants are epoch milliseconds.
"""

import calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class Unit(StrEnum):
    """Units of a calendar period, by OpenSLO's letters."""

    DAY = "d"
    WEEK = "w"
    MONTH = "M"
    QUARTER = "Q"
    YEAR = "Y"


class Bounds(NamedTuple):
    """A period: [start, end), epoch milliseconds."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Rolling:
    """The last `length_ms`, a whole number of minutes."""

    length_ms: int

    @property
    def zone(self) -> str:
        """Rolling periods know no zone."""
        return "UTC"

    @property
    def start_minute(self) -> int:
        """Minute of the hour at which hours begin."""
        return 0

    @property
    def name(self) -> str:
        """Such as `30d`."""
        return duration_text(self.length_ms)

    def bounds(self, now_ms: int) -> Bounds:
        """The period that ends now."""
        return Bounds(now_ms - self.length_ms, now_ms)


@dataclass(frozen=True, slots=True)
class Calendar:
    """`count` units of local time, over and over from `start` (local, without zone) on, and before it."""

    count: int
    unit: Unit
    zone: str = "UTC"
    start: datetime = datetime(1970, 1, 1)

    @property
    def start_minute(self) -> int:
        """Minute of the hour at which periods, and so their hours, begin."""
        return self.start.minute

    @property
    def length_ms(self) -> int:
        """The mean length: months are a twelfth of 365 days."""
        days = {Unit.DAY: 1.0, Unit.WEEK: 7.0, Unit.MONTH: 365 / 12, Unit.QUARTER: 365 / 4, Unit.YEAR: 365.0}
        return round(self.count * days[self.unit] * DAY_MS)

    @property
    def name(self) -> str:
        """Such as `1M Europe/Berlin`."""
        return f"{self.count}{self.unit} {self.zone}"

    def bounds(self, now_ms: int) -> Bounds:
        """The period that `now_ms` is in.

        >>> march = Calendar(1, Unit.MONTH, "America/New_York").bounds(1_615_734_000_000)  # a Sunday in March 2021
        >>> (march.end_ms - march.start_ms) / HOUR_MS
        743.0
        """
        local = local_time(now_ms, self.zone)
        number = self._guess(local)
        while epoch_ms_of(self._begin(number), self.zone) > now_ms:
            number -= 1
        while epoch_ms_of(self._begin(number + 1), self.zone) <= now_ms:
            number += 1
        return Bounds(epoch_ms_of(self._begin(number), self.zone), epoch_ms_of(self._begin(number + 1), self.zone))

    def _guess(self, local: datetime) -> int:
        """The number of a period near `local`, the one at `start` being 0."""
        if self.unit in (Unit.DAY, Unit.WEEK):
            return (local - self.start).days // (self.count * (7 if self.unit is Unit.WEEK else 1))
        months = (local.year - self.start.year) * 12 + local.month - self.start.month
        return months // (self.count * _MONTHS[self.unit])

    def _begin(self, number: int) -> datetime:
        """The local begin of a period; of a start on the 31st, the last day of a shorter month."""
        units = number * self.count
        if self.unit in (Unit.DAY, Unit.WEEK):
            return self.start + timedelta(days=units * (7 if self.unit is Unit.WEEK else 1))
        month = self.start.year * 12 + self.start.month - 1 + units * _MONTHS[self.unit]
        year, month = month // 12, month % 12 + 1
        return self.start.replace(year=year, month=month, day=min(self.start.day, calendar.monthrange(year, month)[1]))


Period = Rolling | Calendar
_MONTHS = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}


def local_time(epoch_ms: int, zone: str) -> datetime:
    """Return the wall clock of `zone`, without zone."""
    return datetime.fromtimestamp(epoch_ms // 1000, _zone(zone)).replace(tzinfo=None)


def epoch_ms_of(local: datetime, zone: str) -> int:
    """Return the instant of a wall-clock time: the first where there are two, that an hour on where there is none."""
    return int(local.replace(tzinfo=_zone(zone)).timestamp()) * 1000


@lru_cache(maxsize=65_536)
def offset_minutes(quarter: int, zone: str) -> int:
    """Return by how many minutes `zone` was ahead of UTC in the `quarter`-th quarter of an hour since 1970, cached.

    No zone has changed its clock within one since 1972.
    """
    delta = datetime.fromtimestamp(quarter * 900, _zone(zone)).utcoffset()
    return int((delta or timedelta()).total_seconds()) // 60


def hours_of_day(day: date, zone: str) -> float:
    """Return how many hours a day has there.

    >>> hours_of_day(date(2021, 3, 14), "America/New_York"), hours_of_day(date(2021, 11, 7), "America/New_York")
    (23.0, 25.0)
    """
    return _hours(day, day + timedelta(days=1), zone)


def hours_of_month(year: int, month: int, zone: str) -> float:
    """Return how many hours a month has there.

    >>> hours_of_month(2021, 3, "America/New_York")
    743.0
    """
    return _hours(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1), zone)


def is_day_of_month(epoch_ms: int, zone: str, day: int) -> bool:
    """Whether the instant is on that day of its month; -1 is the last day, -2 the one before. Raises ValueError on 0.

    >>> is_day_of_month(1_617_206_400_000, "America/New_York", -1)  # 2021-03-31T12:00:00-04:00
    True
    """
    if not 1 <= abs(day) <= 31:
        raise ValueError(f"a day of the month is 1 to 31 or -31 to -1, not {day}")
    local = local_time(epoch_ms, zone)
    return local.day == (day if day > 0 else calendar.monthrange(local.year, local.month)[1] + 1 + day)


def duration_text(milliseconds: int) -> str:
    """Return a duration in OpenSLO's shorthand, by the largest unit that divides it; seconds where none does.

    >>> duration_text(30 * DAY_MS), duration_text(90 * MINUTE_MS), duration_text(30_000)
    ('30d', '90m', '30s')
    """
    for unit, letter in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m")):
        if milliseconds % unit == 0:
            return f"{milliseconds // unit}{letter}"
    return f"{milliseconds / 1000:g}s"


def _hours(first: date, end: date, zone: str) -> float:
    begin, stop = (epoch_ms_of(datetime(day.year, day.month, day.day), zone) for day in (first, end))
    return (stop - begin) / HOUR_MS


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
