"""Which alerts fire and when they are posted again: laws over any row of transitions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from infra.delivery.firing import FiringAlerts
from infra.delivery.transition import FIRING, PENDING, RESOLVED, STATES, SUPPRESSED, Transition

RESEND_MS, FORGET_MS = 60_000, 1_000_000


def transition(name: str, state: str = FIRING, at_ms: int = 0) -> Transition:
    return Transition(f"{name}-{state}-{at_ms}", state, {"alertname": name}, {}, at_ms, at_ms + 1, at_ms, "urn:x")


def empty(max_alerts: int = 100) -> FiringAlerts:
    return FiringAlerts(resend_delay_ms=RESEND_MS, forget_after_ms=FORGET_MS, max_alerts=max_alerts)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(STATES))))
@hypothesis_settings(max_examples=60)
def test_what_fires_is_what_fired_last_and_was_neither_resolved_nor_suppressed(rows: list[tuple[str, str]]) -> None:
    firing, expected = empty(), set()
    for at_ms, (name, state) in enumerate(rows):
        told = firing.to_send(transition(name, state, at_ms))
        if state == PENDING:
            assert told is None
            firing.take(transition(name, state, at_ms), at_ms)
            continue
        if state == SUPPRESSED:
            assert (told is not None) == (name in expected), "it ends what is known to fire, and is else no news"
            assert told is None or (told.state == RESOLVED and told.ends_at_ms >= told.starts_at_ms)
        firing.take(transition(name, state, at_ms), at_ms)
        expected = expected | {name} if state == FIRING else expected - {name}
        assert {alert.labels["alertname"] for alert in firing} == expected
    again = empty()
    again.restore(firing.encode())
    assert list(again) == list(firing)


def test_each_is_due_a_resend_after_it_was_last_posted() -> None:
    firing = empty()
    firing.take(transition("a"), 0)
    firing.take(transition("b"), 10)
    assert firing.next_due_ms() == RESEND_MS
    assert firing.due(RESEND_MS - 1, 10) == []
    assert [a.labels["alertname"] for a in firing.due(RESEND_MS, 10)] == ["a"]
    firing.resent(firing.due(RESEND_MS, 10), RESEND_MS)
    assert firing.next_due_ms() == RESEND_MS + 10
    assert [a.labels["alertname"] for a in firing.due(3 * RESEND_MS, 1)] == ["b"]
    firing.all_due()
    assert len(firing.due(0, 10)) == 2
    firing.drop(transition("a"))
    assert len(firing) == 1


def test_news_of_a_firing_alert_is_posted_from_then_on() -> None:
    firing = empty()
    firing.take(transition("a"), 0)
    newer = replace(transition("a", at_ms=5), annotations={"summary": "worse"})
    firing.take(newer, 5)
    assert firing.due(5 + RESEND_MS, 10) == [newer]


def test_memory_is_bounded_and_what_is_not_kept_is_counted() -> None:
    firing = empty(max_alerts=2)
    for name in "abcd":
        firing.take(transition(name), 0)
    assert (len(firing), firing.not_kept) == (2, 2)
    firing.take(transition("a", at_ms=1), 1)
    assert (len(firing), firing.not_kept) == (2, 2), "one that is kept already takes no more room"
    firing.take(transition("a", RESOLVED), 0)
    firing.take(transition("c"), 0)
    assert {alert.labels["alertname"] for alert in firing} == {"b", "c"}


def test_one_that_is_long_unheard_of_is_forgotten() -> None:
    firing = empty()
    firing.take(transition("a"), 0)
    assert len(firing.due(FORGET_MS, 10)) == 1
    assert firing.due(FORGET_MS + 1, 10) == []
    assert len(firing) == 0


@pytest.mark.parametrize("body", [{}, {"state": FIRING}])
def test_a_broken_state_is_said_so(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"labels|state"):
        empty().restore([body])
