"""The life of an alert on one series: N drifted windows in a row open it, M without drift close it.

    inactive --a drifted window--> pending --N in a row--> firing --M quiet in a row, kept long enough--> inactive
                                      |
                                      +--a window that is quiet, missing or not judged--> inactive

A pure state machine over verdicts; event time is the only clock. What it guarantees, whatever comes in:

- Firing and resolved alternate, firing first; a series has at most one open alert.
- A verdict that is not newer than the newest one seen changes nothing, so duplicates and replays add nothing.
- Windows are *in a row* when their ends lie one slide apart; windows by count, when their numbers follow each other. A
  missing window breaks the row.
- A window that was not judged (`drifted` unknown, status other than `ok`) is evidence for nothing: it breaks the row
  and never resolves an alert.
- A verdict under another configuration or reference starts a new row. An open alert stays open and is resolved, under
  its old labels, by windows of the new one.
- An alert is not resolved before `keep_firing_seconds` after its last drifted window, and while it flaps (it fired
  `flap_firings` times within `flap_within_seconds`) not before `flap_quiet_seconds` after it.
- `endsAt` of a firing alert lies four times the longer of slide and resend delay ahead.

Counting consecutive windows is the `for` of a Prometheus alerting rule, with windows in place of evaluations, and
`keep_firing_seconds` its `keep_firing_for`. *Suppressed* is not decided here: it takes more than one series
(`udfs.alerts.incident`).
"""

from dataclasses import replace

from schemas.alerts import Alert, AlertState, EvidenceWindow
from udfs.alerts.annotations import alert_annotations
from udfs.alerts.fingerprint import fingerprint
from udfs.alerts.generator_url import generator_url
from udfs.alerts.labels import alert_labels
from udfs.alerts.rule import AlertRule
from udfs.alerts.state import LifecycleState, OpenAlert
from udfs.alerts.verdict_event import VerdictEvent

# Prometheus rules/alerting.go, sendAlerts: enough for failed evaluations and failed sends in between.
_LIFE_IN_RESENDS = 4
_SLO = "slo"  # a verdict's kind


def step(state: LifecycleState, event: VerdictEvent, rule: AlertRule) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Return the state after `event` and the transitions it made (none or one).

    What the verdict says of its own alert (`event.overrides`) goes over `rule`. Returns `state` itself, the same
    object, when the verdict is not newer than the newest seen. O(rule's counts).
    """
    if not _is_newer(event, state):
        return state, ()
    rule = rule_of(rule, event)
    after = replace(
        state,
        last_window_end_ms=event.window.window_end_ms,
        last_window_number=event.window_number,
        config_digest=event.config_digest,
        reference_digest=event.reference_digest,
        streak=_streak_after(state, event),
    )
    if state.open_alert is None:
        return _towards_firing(after, event, rule)
    if event.drifted:
        return replace(after, last_drifted_end_ms=event.window.window_end_ms), ()
    return _towards_resolved(after, state.open_alert, event, rule)


def rule_of(rule: AlertRule, event: VerdictEvent) -> AlertRule:
    """Return the rule that holds for this verdict. An SLO's alert is never suppressed by a change unless it says so."""
    overrides = dict(event.overrides)
    if event.kind == _SLO:
        overrides.setdefault("never_suppress", True)
    return replace(rule, **overrides) if overrides else rule


def _towards_firing(
    state: LifecycleState, event: VerdictEvent, rule: AlertRule
) -> tuple[LifecycleState, tuple[Alert, ...]]:
    if len(state.streak) >= rule.firing_after_windows:
        return _fire(state, event, rule)
    if len(state.streak) == 1 and rule.publish_pending:
        return state, (_pending(state, event, rule),)
    return state, ()


def _towards_resolved(
    state: LifecycleState, opened: OpenAlert, event: VerdictEvent, rule: AlertRule
) -> tuple[LifecycleState, tuple[Alert, ...]]:
    needed = rule.resolved_after_windows
    if len(state.streak) < needed:
        return state, ()
    last_ms = opened.starts_at_ms if state.last_drifted_end_ms is None else state.last_drifted_end_ms
    if event.window.window_end_ms < last_ms + round(_kept_seconds(state, rule) * 1000):
        # Only the newest windows are kept, so that the state stays small however long it waits.
        return replace(state, streak=state.streak[len(state.streak) - needed + 1 :]), ()
    return _resolve(state, opened, event, rule)


def _kept_seconds(state: LifecycleState, rule: AlertRule) -> float:
    """How long after its last drifted window the open alert stays firing at least."""
    if is_flapping(state, rule):
        return max(rule.keep_firing_seconds, rule.flap_quiet_seconds)
    return rule.keep_firing_seconds


def is_flapping(state: LifecycleState, rule: AlertRule) -> bool:
    """Whether the last `flap_firings` alerts of the series began within `flap_within_seconds`."""
    starts = state.recent_starts_ms[-rule.flap_firings :] if rule.flap_firings else ()
    if not starts or len(starts) < rule.flap_firings:
        return False
    return starts[-1] - starts[0] <= rule.flap_within_seconds * 1000


def ends_at_offset_seconds(interval_seconds: float, resend_delay_seconds: float) -> float:
    """Return how long after its last evaluation a firing alert stays valid: four times the longer of the two.

    A shorter time lets Alertmanager resolve a firing alert between two resends (grafana/grafana#37461). Source:
    Prometheus rules/alerting.go (`sendAlerts`), `ts + 4 * max(interval, resendDelay)`.

    >>> ends_at_offset_seconds(interval_seconds=10, resend_delay_seconds=60)
    240
    """
    return _LIFE_IN_RESENDS * max(interval_seconds, resend_delay_seconds)


def _is_newer(event: VerdictEvent, state: LifecycleState) -> bool:
    """By the window's end; of two windows by count that end in the same millisecond, by their numbers."""
    if state.last_window_end_ms is None or event.window.window_end_ms > state.last_window_end_ms:
        return True
    if event.window_number is None or state.last_window_number is None:
        return False
    return event.window.window_end_ms == state.last_window_end_ms and event.window_number > state.last_window_number


def _is_next(event: VerdictEvent, state: LifecycleState) -> bool:
    """Whether the window is the one behind the newest seen: a slide later, or of the next number."""
    if event.window_number is not None:
        return state.last_window_number is not None and event.window_number == state.last_window_number + 1
    return (
        state.last_window_end_ms is not None and event.window.window_end_ms == state.last_window_end_ms + event.slide_ms
    )


def _streak_after(state: LifecycleState, event: VerdictEvent) -> tuple[EvidenceWindow, ...]:
    """The windows in a row that argue for the next transition, `event`'s included if it does."""
    wanted = state.open_alert is None
    if event.drifted is not wanted:
        return ()
    in_a_row = (
        _is_next(event, state)
        and event.config_digest == state.config_digest
        and event.reference_digest == state.reference_digest
    )
    return (*state.streak, event.window) if in_a_row else (event.window,)


def _opened(state: LifecycleState, event: VerdictEvent, rule: AlertRule, starts_at_ms: int) -> OpenAlert:
    labels = alert_labels(rule, event.monitor, event.feature, event.series)
    return OpenAlert(
        fingerprint=fingerprint(labels),
        labels=labels,
        active_at_ms=state.streak[0].window_end_ms,
        starts_at_ms=starts_at_ms,
        generator_url=generator_url(
            rule.generator_url,
            monitor=event.monitor,
            feature=event.feature,
            verdict_id=event.window.verdict_id,
        ),
        never_suppress=rule.never_suppress,
    )


def _ends_at_ms(event: VerdictEvent, rule: AlertRule) -> int:
    life_seconds = ends_at_offset_seconds(event.slide_ms / 1000, rule.resend_delay_seconds)
    return event.window.window_end_ms + round(life_seconds * 1000)


def _pending(state: LifecycleState, event: VerdictEvent, rule: AlertRule) -> Alert:
    """The first window of a row. The record lapses at its `endsAt`: nothing tells that a row broke."""
    return _transition(
        AlertState.PENDING,
        opened=_opened(state, event, rule, starts_at_ms=event.window.window_end_ms),
        ends_at_ms=_ends_at_ms(event, rule),
        evidence=state.streak,
        event=event,
        rule=rule,
    )


def _fire(state: LifecycleState, event: VerdictEvent, rule: AlertRule) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Open an alert. Labels and URL are fixed here for its whole life."""
    end_ms = event.window.window_end_ms
    opened = _opened(state, event, rule, starts_at_ms=end_ms)
    starts = (*state.recent_starts_ms, end_ms)[-rule.flap_firings :] if rule.flap_firings else ()
    after = replace(state, streak=(), open_alert=opened, last_drifted_end_ms=end_ms, recent_starts_ms=starts)
    alert = _transition(
        AlertState.FIRING,
        opened=opened,
        ends_at_ms=_ends_at_ms(event, rule),
        evidence=state.streak,
        event=event,
        rule=rule,
        flapping=is_flapping(after, rule),
    )
    return after, (alert,)


def _resolve(
    state: LifecycleState, opened: OpenAlert, event: VerdictEvent, rule: AlertRule
) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Close the open alert at this window's end."""
    ends_at_ms = event.window.window_end_ms
    alert = _transition(
        AlertState.RESOLVED, opened=opened, ends_at_ms=ends_at_ms, evidence=state.streak, event=event, rule=rule
    )
    return replace(state, streak=(), open_alert=None, last_drifted_end_ms=None), (alert,)


def _transition(
    state: AlertState,
    *,
    opened: OpenAlert,
    ends_at_ms: int,
    evidence: tuple[EvidenceWindow, ...],
    event: VerdictEvent,
    rule: AlertRule,
    flapping: bool = False,
) -> Alert:
    return Alert(
        state=state,
        fingerprint=opened.fingerprint,
        labels=opened.labels,
        annotations=alert_annotations(rule, event, state, evidence, flapping),
        active_at_ms=opened.active_at_ms,
        starts_at_ms=opened.starts_at_ms,
        ends_at_ms=ends_at_ms,
        updated_at_ms=event.window.window_end_ms,
        generator_url=opened.generator_url,
        monitor=event.monitor,
        feature=event.feature,
        series=event.series,
        model_card_digest=event.model_card_digest,
        evidence=evidence,
        never_suppress=opened.never_suppress,
    )
