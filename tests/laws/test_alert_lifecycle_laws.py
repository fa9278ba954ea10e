"""What holds for every sequence of verdicts."""

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from schemas.alerts import Alert, AlertState
from tests.alert_verdicts import RULE, events, verdict
from udfs.alerts.lifecycle import step
from udfs.alerts.rule import AlertRule
from udfs.alerts.state import LifecycleState, decode, encode
from udfs.alerts.verdict_event import VerdictEvent

# (letter, windows since the one before or number of the window, configuration)
Timeline = list[tuple[str, int, str]]

RULES = st.builds(
    lambda firing, resolved, keep, flap, resend: replace(
        RULE,
        firing_after_windows=firing,
        resolved_after_windows=resolved,
        keep_firing_seconds=keep,
        flap_firings=flap,
        flap_within_seconds=300,
        flap_quiet_seconds=150,
        resend_delay_seconds=resend,
    ),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([0, 0, 60, 100]),
    st.sampled_from([0, 2]),
    st.sampled_from([10, 60]),
)
# Verdicts in order of their windows, with gaps, unknown ones and edited monitors.
TIMELINES = st.lists(
    st.tuples(st.sampled_from("DDDqq?"), st.sampled_from([1, 1, 1, 1, 2]), st.sampled_from("aaab")), max_size=40
)
# In any order, with repeats.
SHUFFLED = st.lists(st.tuples(st.sampled_from("DDDqq?"), st.integers(1, 12), st.sampled_from("aaab")), max_size=60)


def ordered(timeline: Timeline) -> list[VerdictEvent]:
    window, out = 0, []
    for letter, gap, config in timeline:
        window += gap
        out.append(verdict(letter, window, config_digest=config))
    return events(out)


def run(
    timeline: list[VerdictEvent], rule: AlertRule, state: LifecycleState | None = None
) -> tuple[LifecycleState, list[Alert]]:
    state = state or LifecycleState()
    out: list[Alert] = []
    for event in timeline:
        state, alerts = step(state, event, rule)
        out += alerts
    return state, out


@given(SHUFFLED, RULES)
def test_firing_and_resolved_alternate_whatever_comes(timeline: Timeline, rule: AlertRule) -> None:
    _, alerts = run(events([verdict(letter, at, config_digest=config) for letter, at, config in timeline]), rule)
    states = [alert.state for alert in alerts]
    assert states[::2] == [AlertState.FIRING] * len(states[::2])
    assert states[1::2] == [AlertState.RESOLVED] * len(states[1::2])
    for firing, resolved in zip(alerts[::2], alerts[1::2], strict=False):
        assert firing.starts_at_ms == resolved.starts_at_ms < resolved.ends_at_ms
        assert firing.labels == resolved.labels
    assert len({alert.alert_id for alert in alerts}) == len(alerts)


@given(TIMELINES, RULES)
def test_evidence_is_enough_in_a_row_and_of_one_kind(timeline: Timeline, rule: AlertRule) -> None:
    judged = ordered(timeline)
    drifted = {event.window.verdict_id: event.drifted for event in judged}
    for alert in run(judged, rule)[1]:
        firing = alert.state is AlertState.FIRING
        assert len(alert.evidence) == (rule.firing_after_windows if firing else rule.resolved_after_windows)
        assert [drifted[window.verdict_id] for window in alert.evidence] == [firing] * len(alert.evidence)
        ends = [window.window_end_ms for window in alert.evidence]
        assert [b - a for a, b in itertools.pairwise(ends)] == [30_000] * (len(ends) - 1)
        assert ends[-1] == alert.updated_at_ms


@given(TIMELINES, RULES, st.data())
def test_replaying_any_prefix_changes_nothing(timeline: Timeline, rule: AlertRule, data: st.DataObject) -> None:
    judged = ordered(timeline)
    state, alerts = run(judged, rule)
    replayed = judged[: data.draw(st.integers(0, len(judged)))]
    assert run(replayed, rule, state) == (state, [])
    # Also from the middle: what a restart from the last checkpoint reads again.
    cut = data.draw(st.integers(0, len(judged)))
    again = data.draw(st.integers(0, cut))
    first_state, first = run(judged[:cut], rule)
    last_state, rest = run(judged[again:], rule, first_state)
    assert (last_state, first + rest) == (state, alerts)


@given(TIMELINES, RULES, st.data())
def test_duplicates_change_nothing(timeline: Timeline, rule: AlertRule, data: st.DataObject) -> None:
    judged = ordered(timeline)
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=len(judged), max_size=len(judged)))
    doubled = [event for event, times in zip(judged, repeats, strict=True) for _ in range(times)]
    assert run(doubled, rule) == run(judged, rule)


@given(TIMELINES, RULES)
def test_the_encoding_loses_nothing_and_stays_small(timeline: Timeline, rule: AlertRule) -> None:
    state, longest = LifecycleState(), max(rule.firing_after_windows, rule.resolved_after_windows)
    for event in ordered(timeline):
        state, _ = step(state, event, rule)
        assert decode(encode(state)) == state
        assert len(state.streak) < longest


@given(TIMELINES, RULES)
def test_a_firing_alert_outlives_its_resend(timeline: Timeline, rule: AlertRule) -> None:
    for alert in run(ordered(timeline), rule)[1]:
        life_seconds = (alert.ends_at_ms - alert.updated_at_ms) / 1000
        firing = alert.state is AlertState.FIRING
        assert life_seconds == (4 * max(30, rule.resend_delay_seconds) if firing else 0)


@given(TIMELINES, RULES)
def test_nothing_resolves_before_it_was_kept_long_enough(timeline: Timeline, rule: AlertRule) -> None:
    judged = ordered(timeline)
    for alert in run(judged, rule)[1]:
        if alert.state is AlertState.RESOLVED:
            end_ms = alert.updated_at_ms
            drifted = [e.window.window_end_ms for e in judged if e.drifted and e.window.window_end_ms < end_ms]
            assert end_ms - max(drifted) >= rule.keep_firing_seconds * 1000
