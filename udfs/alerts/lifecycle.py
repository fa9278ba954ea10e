"""The life of an alert on one series: N drifted windows in a row open it, M without drift close it.

A pure state machine over verdicts; event time is the only clock. What it guarantees, whatever comes in:

- Firing and resolved alternate, firing first; a series has at most one open alert.
- A verdict that is not newer than the newest one seen changes nothing, so duplicates and replays add nothing.
- Windows are *in a row* when their ends lie one slide apart; windows by count, when their numbers follow each other. A
  missing window breaks the row.
- A window that was not judged (`drifted` unknown, status other than `ok`) is evidence for nothing: it breaks the row
  and never resolves an alert.
- A verdict under another configuration or reference starts a new row. An open alert stays open and is resolved, under
  its old labels, by windows of the new one.

Counting consecutive windows is the `for` of a Prometheus alerting rule, with windows in place of evaluations.
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


def step(state: LifecycleState, event: VerdictEvent, rule: AlertRule) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Return the state after `event` and the transitions it made (none or one).

    Returns `state` itself, the same object, when the verdict is not newer than the newest seen. O(rule's counts).
    """
    window_end_ms = event.window.window_end_ms
    if not _is_newer(event, state):
        return state, ()
    streak = _streak_after(state, event)
    after = replace(
        state,
        last_window_end_ms=window_end_ms,
        last_window_number=event.window_number,
        config_digest=event.config_digest,
        reference_digest=event.reference_digest,
        streak=streak,
    )
    if state.open_alert is None:
        return _fire(after, event, rule) if len(streak) >= rule.firing_after_windows else (after, ())
    if len(streak) >= rule.resolved_after_windows:
        return _resolve(after, state.open_alert, event, rule)
    return after, ()


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


def _fire(state: LifecycleState, event: VerdictEvent, rule: AlertRule) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Open an alert. Labels and URL are fixed here for its whole life."""
    labels = alert_labels(rule, event.monitor, event.feature, event.series)
    opened = OpenAlert(
        fingerprint=fingerprint(labels),
        labels=labels,
        active_at_ms=state.streak[0].window_end_ms,
        starts_at_ms=event.window.window_end_ms,
        generator_url=generator_url(
            rule.generator_url,
            monitor=event.monitor,
            feature=event.feature,
            verdict_id=event.window.verdict_id,
        ),
    )
    life_seconds = ends_at_offset_seconds(event.slide_ms / 1000, rule.resend_delay_seconds)
    ends_at_ms = event.window.window_end_ms + round(life_seconds * 1000)
    alert = _transition(
        AlertState.FIRING, opened=opened, ends_at_ms=ends_at_ms, evidence=state.streak, event=event, rule=rule
    )
    return replace(state, streak=(), open_alert=opened), (alert,)


def _resolve(
    state: LifecycleState, opened: OpenAlert, event: VerdictEvent, rule: AlertRule
) -> tuple[LifecycleState, tuple[Alert, ...]]:
    """Close the open alert at this window's end."""
    ends_at_ms = event.window.window_end_ms
    alert = _transition(
        AlertState.RESOLVED, opened=opened, ends_at_ms=ends_at_ms, evidence=state.streak, event=event, rule=rule
    )
    return replace(state, streak=(), open_alert=None), (alert,)


def _transition(
    state: AlertState,
    *,
    opened: OpenAlert,
    ends_at_ms: int,
    evidence: tuple[EvidenceWindow, ...],
    event: VerdictEvent,
    rule: AlertRule,
) -> Alert:
    return Alert(
        state=state,
        fingerprint=opened.fingerprint,
        labels=opened.labels,
        annotations=alert_annotations(rule, event, state, evidence),
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
    )
