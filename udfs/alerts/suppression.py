"""What keeps one alert back by itself: a silence, or a change that explains it (spec A4).

A change explains an alert when its rule's matchers match, the alert's service is the changed one or declared to depend
on it, no label that the change names has another value, and the alert's row of breaching windows began after it.
"""

import math
from collections.abc import Iterable

from schemas.alerts import Alert, EvidenceWindow, Suppression, SuppressionReason
from schemas.changes import EVERY_SERVICE, Change
from schemas.matchers import all_match
from schemas.silences import Silence
from schemas.times import rfc3339
from udfs.alerts.incident_policy import ChangeRule, IncidentPolicy

_SERVICE_LABEL = "service_name"


def silence_of(alert: Alert, at_ms: int, silences: Iterable[Silence]) -> Suppression | None:
    """Return the silence that lasts longest of those on this alert at `at_ms`; None where there is none."""
    found = [silence for silence in silences if silence.silences(alert.labels, at_ms)]
    if not found:
        return None
    longest = max(found, key=lambda silence: (silence.ends_ms, silence.silence_id))
    why = f": {longest.comment}" if longest.comment else ""
    detail = f"silenced by {longest.created_by} until {rfc3339(longest.ends_ms)}{why}"
    return Suppression(SuppressionReason.SILENCE, longest.silence_id, detail, longest.ends_ms)


def change_of(alert: Alert, at_ms: int, changes: Iterable[Change], policy: IncidentPolicy) -> Suppression | None:
    """Return the change that explains this alert longest at `at_ms`; None where there is none.

    Never for an alert with `never_suppress` (those of SLOs), and never beyond `max_suppressed_seconds` after it began.
    """
    if alert.never_suppress:
        return None
    last_ms = alert.starts_at_ms + round(policy.max_suppressed_seconds * 1000)
    found: list[tuple[int, str, Change, ChangeRule]] = []
    for change in changes:
        rule = policy.changes.get(change.kind)
        if rule is None or not _explains(change, rule, alert, policy):
            continue
        until_ms = min(window_end_ms(change, rule), last_ms)
        if at_ms < until_ms and not (rule.action == "raise_bar" and _beyond(alert, rule)):
            found.append((until_ms, change.change_id, change, rule))
    if not found:
        return None
    until_ms, change_id, change, rule = max(found, key=lambda each: each[:2])
    what = f"{change.kind} of {change.service} at {rfc3339(change.time_ms)}"
    what += f" ({change.summary})" if change.summary else ""
    how = "explains it" if rule.action == "suppress" else f"raises the bar by {rule.bar_factor:g}, which it is below"
    return Suppression(SuppressionReason.CHANGE, change_id, f"{what} {how}, until {rfc3339(until_ms)}", until_ms)


def window_end_ms(change: Change, rule: ChangeRule) -> int:
    """Return until when the change can explain anything: bounded, whatever end it gives itself."""
    ended_ms = change.time_ms if change.ends_ms is None else change.ends_ms
    longest_ms = change.time_ms + round(rule.max_window_seconds * 1000)
    return min(ended_ms + round(rule.window_seconds * 1000), longest_ms)


def _explains(change: Change, rule: ChangeRule, alert: Alert, policy: IncidentPolicy) -> bool:
    if alert.active_at_ms < change.time_ms:
        return False
    service = alert.labels.get(_SERVICE_LABEL, "")
    if change.service != EVERY_SERVICE and policy.dependencies.distance(service, change.service) is None:
        return False
    if any(alert.labels.get(name, value) != value for name, value in change.labels.items()):
        return False
    return all_match(rule.explains, alert.labels)


def _beyond(alert: Alert, rule: ChangeRule) -> bool:
    return bool(alert.evidence) and passes_raised_bar(alert.evidence[-1], rule.bar_factor)


def passes_raised_bar(window: EvidenceWindow, factor: float) -> bool:
    """Whether the window breaches also a limit that is stricter by `factor`.

    A limit on the statistic is taken times the factor where the statistic is above it, divided by it where below, both
    for a limit above 0; else the distance must be (factor - 1) times the limit's size. A limit on p becomes
    alpha^factor. Where neither is known it does not pass.

    >>> window = EvidenceWindow("v", 0, 2.5, None, 100, None, None, threshold=1.0)
    >>> passes_raised_bar(window, 2), passes_raised_bar(window, 3)
    (True, False)
    """
    if window.threshold is not None and window.statistic is not None:
        limit, found = window.threshold, window.statistic
        if limit > 0:
            return found >= limit * factor if found > limit else found <= limit / factor
        return abs(found - limit) >= (factor - 1) * abs(limit)
    if window.p_value is not None and window.alpha is not None:
        return window.p_value <= 0 or math.log(window.p_value) <= factor * math.log(window.alpha)
    return False
