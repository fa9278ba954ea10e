"""What must hold of counts in rings, whatever comes in which order: the sums that a plain list of events gives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.slo import burn_rate, error_budget
from udfs.slo.counts import DAYS, HOURS, MINUTES, SloCounts
from udfs.slo.ring import Ring

BASE = 28_333_334  # a minute of November 2023
Event = tuple[int, int, int]
events = st.lists(
    st.tuples(st.integers(-40 * 1440, 3000), st.integers(0, 50), st.integers(0, 50)).map(
        lambda e: (BASE + e[0], min(e[1], e[2]) if e[2] % 7 else e[1], e[2])
    ),
    max_size=60,
)
ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"])


def counted(found: list[Event], zone: str = "UTC") -> SloCounts:
    counts = SloCounts.begin(zone)
    for minute, good, total in found:
        counts.add(minute, good, total)
    return counts


@settings(max_examples=60)
@given(events, st.integers(1, 3000))
def test_windows_of_minutes_are_those_of_the_events(found: list[Event], minutes: int) -> None:
    counts = counted(found)
    newest = max((e[0] for e in found), default=BASE)
    of = [e for e in found if newest - min(minutes, MINUTES) < e[0] <= newest]
    got = counts.rolling(newest, minutes * 60_000)
    if minutes <= MINUTES:
        valid = [e for e in of if e[1] <= e[2]]
        assert got == (sum(e[1] for e in valid), sum(e[2] for e in valid), len(of) - len(valid))
    first_hour = (newest - minutes + 1) // 60
    inside = [e for e in found if e[0] // 60 >= first_hour and e[1] <= e[2]]
    assert sum(e[2] for e in of if e[1] <= e[2]) <= got.total <= max(sum(e[2] for e in inside), 0)


@settings(max_examples=40)
@given(events, ZONES)
def test_bytes_and_order_and_bundles_do_not_matter(found: list[Event], zone: str) -> None:
    counts = counted(found, zone)
    again = SloCounts.from_bytes(counts.to_bytes(), zone)
    assert again.to_bytes() == counts.to_bytes()
    together = SloCounts.begin(zone)
    minutes, good, total = (np.array([e[i] for e in found], dtype=np.int64) for i in range(3))
    together.add_many(minutes, good, total)
    newest = max((e[0] for e in found), default=BASE)
    for length in (5, 1440, 4320, 40 * 1440, 300 * 1440):
        assert together.rolling(newest, length * 60_000) == counts.rolling(newest, length * 60_000)


@settings(max_examples=40)
@given(events, events)
def test_merged_is_as_if_one_had_counted_all(left: list[Event], right: list[Event]) -> None:
    newest = max((e[0] for e in left + right), default=BASE)
    merged, pooled = counted(left).merge(counted(right)), counted(sorted(left + right))
    for length in (5, 1440, 4320, 40 * 1440):
        assert merged.rolling(newest, length * 60_000) == pooled.rolling(newest, length * 60_000)
    assert counted(right).merge(counted(left)).rolling(newest, 86_400_000) == merged.rolling(newest, 86_400_000)


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 9)), max_size=40))
def test_a_ring_is_a_list_with_the_oldest_cut_off(size: int, added: list[tuple[int, int]]) -> None:
    ring, plain, newest = Ring.of_size(size), dict[int, int](), None
    for slot, n in added:
        newest = slot if newest is None else max(newest, slot)
        assert ring.add(slot, n, n) == (slot > newest - size)
        if slot > newest - size:
            plain[slot] = plain.get(slot, 0) + n
    for first, last in ((-60, 60), (-5, 5), (0, 60)):
        expected = sum(n for s, n in plain.items() if newest - size < s and first <= s <= last) if added else 0
        assert ring.sum(first, last).total == expected


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.floats(0, 0.9999999))
def test_figures_are_never_nan_infinite_or_a_credit(good: int, total: int, target: float) -> None:
    budget, burn = error_budget(good, total, target), burn_rate(good, total, target)
    figures = [budget.error_ratio, budget.burn_rate, budget.remaining, budget.sli, burn]
    assert all(figure is None or math.isfinite(figure) for figure in figures)
    assert budget.remaining is None or budget.remaining <= 1.0
    assert (burn is None) == (total == 0 or good > total)


def test_memory_is_bounded_and_the_oldest_day_is_the_end() -> None:
    counts = SloCounts.begin()
    for day in range(0, 1000):
        counts.add(BASE + day * 1440, 1, 1)
    assert len(counts.to_bytes()) < 20 * (MINUTES + HOURS + DAYS) + 100
    assert counts.too_old == 0
    counts.add(BASE, 1, 1)
    assert counts.too_old == 1
    with pytest.raises(ValueError, match="SLC"):
        SloCounts.from_bytes(counts.to_bytes()[:-1])
    with pytest.raises(ValueError, match="zones"):
        counts.merge(SloCounts.begin("Asia/Tokyo"))
