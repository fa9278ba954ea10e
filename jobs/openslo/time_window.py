"""`timeWindow`: the period of the budget."""

from typing import Any

from jobs.openslo.documents import mapping
from jobs.openslo.values import calendar_unit, flag, local_instant, shorthand, time_zone, whole_minutes
from jobs.yaml_fields import REQUIRED, Place, WrongValueError, fields_of, optional
from udfs.slo.counts import MOST_ROLLING_MS
from udfs.slo.periods import DAY_MS, HOUR_MS, Calendar, Period, Rolling

# The workbook's period; OpenSLO lets the window out without saying what holds then.
DEFAULT = Rolling(30 * DAY_MS)
_SHORTEST_MS = HOUR_MS


_WINDOW = {
    "duration": (lambda value: shorthand(value) and value, REQUIRED),
    "isRolling": (optional(flag), None),
    "calendar": (optional(mapping), None),
}
_CALENDAR = {"startTime": (local_instant, REQUIRED), "timeZone": (time_zone, REQUIRED)}


def period_of(place: Place, body: Any) -> Period:
    """Return the period of an SLO's `spec.timeWindow`, a list of exactly one window; `place` is the spec."""
    if body is None:
        return DEFAULT
    if not isinstance(body, list) or len(body) != 1:
        place.field("timeWindow").refuse(
            "must be a list of exactly one window", "Write `- duration: 30d` and `isRolling: true` below it"
        )
    at = place.field("timeWindow[0]")
    values = fields_of(at, body[0], _WINDOW)
    by_calendar = values["calendar"]
    is_rolling = by_calendar is None if values["isRolling"] is None else values["isRolling"]
    if is_rolling and by_calendar is not None:
        at.field("isRolling").refuse("is true beside a calendar", "Leave one of them out")
    if not is_rolling and by_calendar is None:
        at.field("calendar").refuse("is missing", "Give startTime and timeZone, or `isRolling: true`")
    return _rolling(at, values["duration"]) if is_rolling else _calendar(at, values["duration"], by_calendar)


def _rolling(at: Place, duration: str) -> Rolling:
    try:
        length_ms = whole_minutes(duration)
    except WrongValueError as wrong:
        at.field("duration").refuse(wrong.problem, wrong.remedy)
    if not _SHORTEST_MS <= length_ms <= MOST_ROLLING_MS:
        at.field("duration").refuse(f"{duration} is not from 1h to 366d", "Budgets are kept for 7d, 28d or 30d, say")
    return Rolling(length_ms)


def _calendar(at: Place, duration: str, by_calendar: Any) -> Calendar:
    try:
        count, unit = calendar_unit(duration)
    except WrongValueError as wrong:
        at.field("duration").refuse(wrong.problem, wrong.remedy)
    values = fields_of(at.field("calendar"), by_calendar, _CALENDAR)
    period = Calendar(count, unit, values["timeZone"], values["startTime"])
    if period.length_ms > MOST_ROLLING_MS:
        at.field("duration").refuse(f"{duration} is longer than a year", "Give at most 1Y")
    return period
