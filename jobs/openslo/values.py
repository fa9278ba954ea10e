"""Values as OpenSLO writes them: durations, targets, time zones, instants."""

import re
from datetime import date, datetime
from typing import Any
from zoneinfo import available_timezones

from jobs.yaml_fields import WrongValueError, nearest
from udfs.slo.periods import DAY_MS, HOUR_MS, MINUTE_MS, Unit

_MOST_MINUTES = 366 * 24 * 60
_DURATION = re.compile(r"([1-9][0-9]{0,6})([smhdwMQY])")
_MILLISECONDS = {"s": 1000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}


def shorthand(value: Any) -> tuple[int, str]:
    """A duration in OpenSLO's shorthand: (number, letter). Seconds (`30s`) are Slacktide's own.

    >>> shorthand("4w")
    (4, 'w')
    """
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(f"{value!r} is no duration", "Write a whole number and one letter, such as 30d, 6h or 5m")
    return int(found[1]), found[2]


def duration_ms(value: Any) -> int:
    """A duration of fixed length, in milliseconds: seconds, minutes, hours, days, weeks.

    >>> duration_ms("90m"), duration_ms("30s")
    (5400000, 30000)
    """
    number, letter = shorthand(value)
    if letter not in _MILLISECONDS:
        raise WrongValueError(f"{value} has no fixed length", "Give minutes, hours, days or weeks, such as 30d")
    return number * _MILLISECONDS[letter]


def whole_minutes(value: Any) -> int:
    """A duration of whole minutes, in milliseconds; a bare number is minutes.

    >>> whole_minutes(5), whole_minutes("1h")
    (300000, 3600000)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        if value > _MOST_MINUTES:
            raise WrongValueError(f"{value} minutes are more than a year", "Give minutes, such as 1m")
        return value * MINUTE_MS
    found = duration_ms(value)
    if found % MINUTE_MS:
        raise WrongValueError(f"{value} is no whole number of minutes", "Give minutes, such as 1m")
    return found


def part_of_a_minute(value: Any) -> int:
    """A duration in milliseconds that divides a minute, or is a whole number of them."""
    found = duration_ms(value)
    if MINUTE_MS % found and found % MINUTE_MS:
        raise WrongValueError(f"{value} neither divides a minute nor is made of minutes", "Give 30s, 1m, 5m or alike")
    return found


def calendar_unit(value: Any) -> tuple[int, Unit]:
    """A duration by the calendar: days, weeks, months, quarters, years.

    >>> calendar_unit("1M")
    (1, <Unit.MONTH: 'M'>)
    """
    number, letter = shorthand(value)
    if letter not in set(Unit):
        raise WrongValueError(
            f"{value} is no period of the calendar", "Give days, weeks, months, quarters or years: 1M"
        )
    return number, Unit(letter)


def time_zone(value: Any) -> str:
    """A name of the IANA time zone database."""
    if not isinstance(value, str) or value not in available_timezones():
        close = nearest(str(value), sorted(available_timezones())).partition(" Known are")[0]
        remedy = f"{close} " if close.startswith("Did") else ""
        raise WrongValueError(f"{value!r} is no IANA time zone", f"{remedy}Write one such as Europe/Berlin or UTC")
    return value


def local_instant(value: Any) -> datetime:
    """A date, or date and time to the minute, without zone: OpenSLO's startTime."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value.tzinfo is not None or value.second or value.microsecond:
        remedy = "Write it without zone and to the minute, such as 2026-01-31 12:30:00"
        raise WrongValueError("is no local date and time", remedy)
    return value


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongValueError(f"{value!r} is neither true nor false", "Write true or false")
    return value


def ratio(value: Any) -> float:
    """A target: above 0, below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        remedy = "Give a share above 0 and below 1, such as 0.99: 1 leaves no budget, 0 asks for nothing"
        raise WrongValueError(f"target must be in [0,1), and above 0; {value!r} is not", remedy)
    return float(value)


def percent(value: Any) -> float:
    """A target in percent, returned as a share.

    >>> percent(99.95)
    0.9995
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 100:
        remedy = "Give a percentage above 0 and below 100, such as 99.9"
        raise WrongValueError(f"targetPercent must be in [0,100), and above 0; {value!r} is not", remedy)
    return ratio(round(value / 100, 12))


def above_0_up_to_1(value: Any) -> float:
    """A share above 0, up to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise WrongValueError(f"{value!r} is no share above 0, up to 1", "Give one such as 0.95")
    return float(value)
