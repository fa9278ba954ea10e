"""What holds for every sequence of transitions, silences and changes, however it is cut into ticks."""

import itertools
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.alerts import Alert, AlertState
from schemas.changes import Change, ChangeKind
from schemas.matchers import parse_matcher
from schemas.silences import Silence
from tests.incident_alerts import BY_FEATURE, POLICY, Scope, at, firing, resolved
from udfs.alerts.incident import Context
from udfs.alerts.incident_policy import ChangeRule

RULED = replace(
    POLICY,
    update_interval_seconds=60,
    quiet_seconds=90,
    max_open_alerts=6,
    deduplication=(BY_FEATURE,),
    changes={ChangeKind.DEPLOY: ChangeRule("suppress", window_seconds=120, max_window_seconds=200)},
)
SECONDS = st.integers(0, 40).map(lambda slot: slot * 10)


@st.composite
def transitions(draw: st.DrawFn) -> list[Alert]:
    """What the first stage may say of a few series: of each, firing and resolved in turn, with growing times."""
    found: list[Alert] = []
    for feature, pod in itertools.product("abc", "xyz"):
        times = sorted(set(draw(st.lists(SECONDS, max_size=4))))
        severity = draw(st.sampled_from(["warning", "warning", "ticket", "page"]))
        opened: Alert | None = None
        for seconds in times:
            if opened is None:
                opened = firing(seconds, feature, severity=severity, labels={"pod": pod})
                opened = replace(opened, never_suppress=severity == "page")
                found.append(opened)
            else:
                found.append(resolved(opened, seconds))
                opened = None
    return sorted(found, key=lambda alert: alert.updated_at_ms)


SILENCES = st.lists(
    st.builds(
        lambda starts, length, matcher: Silence(
            f"{starts}-{length}-{matcher}",
            (parse_matcher(matcher),),
            at(starts),
            at(starts + length),
            at(starts),
            "ann",
        ),
        SECONDS,
        st.integers(1, 12).map(lambda slot: slot * 10),
        st.sampled_from(["feature=a", "pod=~x|y", "severity=page"]),
    ),
    max_size=2,
)
CHANGES = st.lists(
    st.builds(
        lambda time, labels: Change(
            "ci", str((time, labels)), ChangeKind.DEPLOY, "chat", at(time), labels=dict(labels)
        ),
        SECONDS,
        st.sampled_from([(), (("pod", "x"),)]),
    ),
    max_size=2,
)
CONTEXTS = st.builds(lambda silences, changes: Context(tuple(silences), tuple(changes)), SILENCES, CHANGES)
END_SECONDS = 900


def run(found: list[Alert], context: Context, cuts: list[int]) -> Scope:
    """Tick at every cut with what came until then, and at the end."""
    scope, rest = Scope(policy=RULED, context=context), list(found)
    for cut in [*sorted(set(cuts)), END_SECONDS]:
        now = [alert for alert in rest if alert.updated_at_ms <= at(cut)]
        rest = rest[len(now) :]
        scope.tick(cut, *now)
    return scope


@settings(max_examples=60)
@given(transitions(), CONTEXTS)
def test_nothing_is_published_without_a_cause(found: list[Alert], context: Context) -> None:
    scope = run(found, context, [])
    assert len({alert.alert_id for alert in scope.alerts}) == len(scope.alerts)
    by_life: dict[tuple[str, int], list[Alert]] = {}
    for alert in scope.alerts:
        by_life.setdefault((alert.fingerprint, alert.starts_at_ms), []).append(alert)
    assert len(by_life) == sum(alert.state is AlertState.FIRING for alert in found)
    for life in by_life.values():
        states = [alert.state for alert in life]
        assert states[0] in (AlertState.FIRING, AlertState.SUPPRESSED)
        assert AlertState.RESOLVED not in states[:-1]
        for one, other in itertools.pairwise(life):
            assert one.updated_at_ms <= other.updated_at_ms
            assert not (one.state is other.state is AlertState.FIRING)
            assert (one.state, one.suppression) != (other.state, other.suppression)
        assert all((a.suppression is not None) for a in life if a.state is AlertState.SUPPRESSED)
        for alert in life:
            if alert.suppression is not None and alert.never_suppress:
                assert alert.suppression.reason != "change"


@settings(max_examples=60)
@given(transitions(), CONTEXTS, st.lists(st.integers(0, END_SECONDS), max_size=12))
def test_it_makes_no_difference_how_the_way_is_cut_into_ticks(
    found: list[Alert], context: Context, cuts: list[int]
) -> None:
    whole, cut = run(found, context, []), run(found, context, cuts)
    assert [alert.to_json() for alert in cut.alerts] == [alert.to_json() for alert in whole.alerts]
    assert [told.to_json() for told in cut.incidents] == [told.to_json() for told in whole.incidents]
    assert (cut.state, cut.entries) == (whole.state, whole.entries)


@settings(max_examples=60)
@given(transitions(), CONTEXTS, st.randoms(use_true_random=False))
def test_the_order_within_a_tick_makes_no_difference(found: list[Alert], context: Context, random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Scope(policy=RULED, context=context), Scope(policy=RULED, context=context)
    one.tick(END_SECONDS, *found)
    other.tick(END_SECONDS, *shuffled)
    assert [alert.to_json() for alert in one.alerts] == [alert.to_json() for alert in other.alerts]
    assert [told.to_json() for told in one.incidents] == [told.to_json() for told in other.incidents]


@settings(max_examples=60)
@given(transitions(), CONTEXTS)
def test_an_incident_opens_once_and_is_numbered_without_gaps(found: list[Alert], context: Context) -> None:
    scope = run(found, context, [])
    by_incident: dict[str, list[str]] = {}
    for told in scope.incidents:
        events = by_incident.setdefault(told.incident_id, [])
        events.append(str(told.event))
        assert told.number == len(events)
        assert len(told.alerts) <= RULED.top_alerts
    for events in by_incident.values():
        assert events[0] == "opened"
        assert "opened" not in events[1:]
        assert "resolved" not in events[:-1]
    assert len(scope.entries) <= RULED.max_open_alerts


@settings(max_examples=40)
@given(transitions(), CONTEXTS)
def test_a_replay_into_the_state_pages_nobody(found: list[Alert], context: Context) -> None:
    """A checkpoint is taken, everything that is still open is said again, and nothing new comes of it."""
    scope = run(found, context, [])
    alerts, told = len(scope.alerts), len(scope.incidents)
    ended = {(a.fingerprint, a.starts_at_ms) for a in found if a.state is AlertState.RESOLVED}
    remembered = [a for a in found if a.fingerprint in scope.entries and (a.fingerprint, a.starts_at_ms) not in ended]
    scope.tick(END_SECONDS, *remembered)
    assert (len(scope.alerts), len(scope.incidents)) == (alerts, told)


@settings(max_examples=60)
@given(transitions(), CONTEXTS, st.data())
def test_what_comes_late_breaks_nothing(found: list[Alert], context: Context, data: st.DataObject) -> None:
    """Series arrive with delays of their own, each in order: another job's verdicts may be minutes behind."""
    delays = {name: data.draw(st.sampled_from([0, 0, 10, 70, 200])) for name in {a.fingerprint for a in found}}
    scope, waiting = Scope(policy=RULED, context=context), list(found)
    for until in range(0, END_SECONDS + 1, 30):
        now = [alert for alert in waiting if alert.updated_at_ms + delays[alert.fingerprint] * 1000 <= at(until)]
        waiting = [alert for alert in waiting if alert not in now]
        scope.tick(until, *now)
    assert not waiting
    assert len({alert.alert_id for alert in scope.alerts}) == len(scope.alerts)
    by_life: dict[tuple[str, int], list[AlertState]] = {}
    for alert in scope.alerts:
        by_life.setdefault((alert.fingerprint, alert.starts_at_ms), []).append(alert.state)
    whole = {(alert.fingerprint, alert.starts_at_ms) for alert in run(found, context, []).alerts}
    assert set(by_life) == whole
    for states in by_life.values():
        assert (AlertState.FIRING, AlertState.FIRING) not in itertools.pairwise(states)
        assert AlertState.RESOLVED not in states[:-1]
    ended = {(a.fingerprint, a.starts_at_ms) for a in found if a.state is AlertState.RESOLVED}
    assert {life for life, states in by_life.items() if states[-1] is AlertState.RESOLVED} == ended
