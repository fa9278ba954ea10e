"""Silences and changes as the job keeps them, and the clock that stands in for event time."""

from dataclasses import replace

import pytest

from schemas.changes import Change, ChangeKind
from schemas.matchers import parse_matcher
from schemas.silences import Silence
from udfs.alerts import context_store
from udfs.alerts.context_store import Stored, key_of, replaces, surplus
from udfs.alerts.incident_clock import Clock, decode_clock, encode_clock
from udfs.alerts.incident_policy import ChangeRule, IncidentPolicy

SILENCE = Silence("s1", (parse_matcher("a=b"),), 1_000, 2_000, 1_000, "ann")
CHANGE = Change("ci", "1", ChangeKind.DEPLOY, "chat", 1_000_000)


def test_the_newest_word_on_a_silence_counts_and_a_change_is_told_once() -> None:
    key, known = key_of(SILENCE), SILENCE.to_json()
    assert replaces(known, None, key)
    assert not replaces(known, known, key)
    assert replaces(replace(SILENCE, ends_ms=1_500, updated_ms=1_001).to_json(), known, key)
    assert not replaces(replace(SILENCE, ends_ms=1_500, updated_ms=999).to_json(), known, key)
    assert not replaces(replace(CHANGE, summary="again").to_json(), CHANGE.to_json(), key_of(CHANGE))


def test_what_is_kept_comes_back_in_a_fixed_order() -> None:
    records = {key_of(each): each.to_json() for each in (CHANGE, SILENCE, replace(CHANGE, event_id="2", time_ms=5))}
    stored = Stored.of(records.items())
    assert stored.silences == (SILENCE,)
    assert [change.event_id for change in stored.changes] == ["2", "1"]
    assert stored == Stored.of(reversed(list(records.items())))


def test_only_what_can_still_matter_is_looked_at() -> None:
    stored = Stored((SILENCE,), (CHANGE,))
    policy = IncidentPolicy(changes={ChangeKind.DEPLOY: ChangeRule("suppress", 600, 9_000)})
    assert stored.since(2_000, policy) == Stored((), (CHANGE,))
    assert stored.since(1_999, policy) == stored
    assert stored.since(CHANGE.time_ms + 9_000_000, policy).changes == (CHANGE,)
    assert stored.since(CHANGE.time_ms + 9_000_001, policy).changes == ()
    assert stored.since(CHANGE.time_ms + 7_200_001, IncidentPolicy()).changes == ()  # the root cause's lookback


def test_beyond_the_bound_those_go_first_that_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_store, "MAX_OF_A_KIND", 2)
    silences = [replace(SILENCE, silence_id=str(i), ends_ms=10_000 - i) for i in range(4)]
    changes = [replace(CHANGE, event_id=str(i), time_ms=i) for i in range(3)]
    records = {key_of(each): each.to_json() for each in (*silences, *changes)}
    assert set(surplus(records)) == {"silence/3", "silence/2", key_of(changes[0])}


def test_event_time_goes_on_with_the_wall_clock_and_never_back() -> None:
    clock = Clock().seen(50_000, 1_000)
    assert clock.event_at(1_000) == 50_000
    assert clock.event_at(4_000) == 53_000
    assert clock.event_at(500) == 50_000
    assert clock.seen(52_000, 4_000) == clock  # behind where it is by now
    assert clock.seen(60_000, 4_000).event_at(4_000) == 60_000
    assert Clock().event_at(9_999) == 0  # no event time is known yet


def test_while_the_job_is_down_event_time_stands_still() -> None:
    clock = Clock().seen(50_000, 1_000).waking(3_000)
    back = clock.woken(3_000, 100_000)
    assert back.event_at(100_000) == 52_000
    assert back.wake_ms is None
    assert clock.woken(3_000, 3_200).event_at(3_200) == 52_200  # late, not down


def test_the_earlier_wake_wins() -> None:
    clock = Clock().waking(5_000)
    assert clock.waking(7_000) is clock
    assert clock.waking(4_000).wake_ms == 4_000


def test_the_clock_is_encoded_without_loss() -> None:
    clock = Clock(1, 2, 3, 4, 5, True)
    assert decode_clock(encode_clock(clock)) == clock
    with pytest.raises(ValueError, match="version 2"):
        decode_clock(encode_clock(clock).replace(b'"version":1', b'"version":2'))
