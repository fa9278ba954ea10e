"""Calendar periods against the calendar: months, clock changes, zones that are off by parts of an hour."""

import json
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from schemas.times import epoch_ms
from udfs.slo.counts import SloCounts
from udfs.slo.periods import (
    DAY_MS,
    HOUR_MS,
    Calendar,
    Rolling,
    Unit,
    duration_text,
    hours_of_day,
    hours_of_month,
    is_day_of_month,
)

CASE = next(
    case
    for case in json.loads((Path(__file__).parent.parent / "cases" / "alerts_slo.json").read_text())
    if case["id"] == "slo-dst-day"
)


def test_the_case_of_a_month_that_loses_an_hour() -> None:
    zone, expected = CASE["input"]["tz"], CASE["expected"]
    found = [is_day_of_month(epoch_ms(text), zone, CASE["input"]["days_of_month"]) for text in CASE["input"]["t"]]
    assert found == expected["match"]
    for name, hours in expected["hours"].items():
        parts = [int(part) for part in name.split("-")]
        assert (hours_of_month(*parts, zone) if len(parts) == 2 else hours_of_day(date(*parts), zone)) == hours


BOUNDS = """
1M Europe/Berlin     1970-01-01T00:00  2026-10-25T12:00:00Z  2026-09-30T22:00:00Z  2026-10-31T23:00:00Z
1Q UTC               1970-01-01T00:00  2026-05-31T00:00:00Z  2026-04-01T00:00:00Z  2026-07-01T00:00:00Z
1Y Asia/Kolkata      1970-01-01T00:00  2026-05-31T00:00:00Z  2025-12-31T18:30:00Z  2026-12-31T18:30:00Z
1w UTC               2026-01-05T00:00  2026-01-04T23:59:59Z  2025-12-29T00:00:00Z  2026-01-05T00:00:00Z
1M UTC               2020-01-31T12:30  2026-02-28T12:29:00Z  2026-01-31T12:30:00Z  2026-02-28T12:30:00Z
1d Asia/Kathmandu    1970-01-01T00:00  2026-02-28T18:20:00Z  2026-02-28T18:15:00Z  2026-03-01T18:15:00Z
2M UTC               2026-01-01T00:00  2025-12-31T18:20:00Z  2025-11-01T00:00:00Z  2026-01-01T00:00:00Z
"""


@pytest.mark.parametrize("row", BOUNDS.strip().splitlines())
def test_bounds(row: str) -> None:
    length, zone, begin, now, start, end = row.split()
    period = Calendar(int(length[:-1]), Unit(length[-1]), zone, datetime.fromisoformat(begin))
    assert period.bounds(epoch_ms(now)) == (epoch_ms(start), epoch_ms(end))
    assert period.bounds(epoch_ms(start)).start_ms == epoch_ms(start)
    assert period.bounds(epoch_ms(end) - 1).end_ms == epoch_ms(end)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"])
def test_every_event_of_a_calendar_month_is_counted_in_it_and_no_other(zone: str) -> None:
    period = Calendar(1, Unit.MONTH, zone)
    for month in (3, 4, 10, 11):
        noon = int(datetime(2026, month, 14, 12, tzinfo=ZoneInfo(zone)).timestamp()) * 1000
        bounds = period.bounds(noon)
        first, last = bounds.start_ms // 60_000, bounds.end_ms // 60_000 - 1
        counts = SloCounts.begin(zone)
        for minute in (first - 1, first, first + 777, last - 1441, last - 1, last):
            counts.add(minute, 1, 1)
        assert counts.since(last, first).total == 5
        assert counts.hours.sum(counts._hour(first), counts._hour(last)).total == 5
        hours = (bounds.end_ms - bounds.start_ms) / HOUR_MS
        assert hours == hours_of_month(2026, month, zone)


def test_periods_say_their_names() -> None:
    assert [Rolling(28 * DAY_MS).name, Calendar(1, Unit.QUARTER, "Asia/Tokyo").name] == ["28d", "1Q Asia/Tokyo"]
    assert Rolling(DAY_MS).bounds(DAY_MS * 3) == (2 * DAY_MS, 3 * DAY_MS)
    assert duration_text(100) == "0.1s"
    with pytest.raises(ValueError, match="day of the month"):
        is_day_of_month(0, "UTC", 0)
