"""What keeps one alert back because another fires: inhibition and duplicates (spec A5).

Both are decided over all open alerts of an incident at once, so the order in which they came makes no difference.
"""

from collections.abc import Iterable, Mapping, Sequence

from schemas.alerts import Alert, Suppression, SuppressionReason
from schemas.matchers import all_match
from udfs.alerts.fingerprint import fingerprint
from udfs.alerts.incident_policy import DeduplicationRule, InhibitionRule


def duplicate_key(labels: Mapping[str, str], rule: DeduplicationRule) -> str | None:
    """Return the fingerprint of the labels that make two alerts the same; None where the rule does not apply.

    >>> rule = DeduplicationRule(matchers=(), fingerprint_fields=("service",))
    >>> one = duplicate_key({"alertname": "alert one", "service": "billing-api"}, rule)
    >>> one == duplicate_key({"alertname": "alert two", "service": "billing-api"}, rule)
    True
    """
    fields = {name: labels[name] for name in rule.fingerprint_fields if labels.get(name)}
    return fingerprint(fields) if fields and all_match(rule.matchers, labels) else None


def duplicates(
    alerts: Sequence[Alert], already_firing: frozenset[str], rules: Iterable[DeduplicationRule]
) -> dict[str, Suppression]:
    """Return, by fingerprint, which of `alerts` are duplicates of another of them.

    Of alerts that are the same, one that fires already stays, else the one that began first. O(alerts * rules).
    """
    found: dict[str, Suppression] = {}
    ordered = sorted(alerts, key=lambda a: (a.fingerprint not in already_firing, a.starts_at_ms, a.fingerprint))
    for rule in rules:
        first: dict[str, Alert] = {}
        for alert in ordered:
            if alert.fingerprint in found or (key := duplicate_key(alert.labels, rule)) is None:
                continue
            kept = first.setdefault(key, alert)
            if kept is not alert:
                detail = f"the same as {_name(kept)} by {', '.join(rule.fingerprint_fields)}"
                found[alert.fingerprint] = Suppression(SuppressionReason.DUPLICATE, kept.fingerprint, detail)
    return found


def inhibited(alerts: Sequence[Alert], rules: Iterable[InhibitionRule]) -> dict[str, Suppression]:
    """Return, by fingerprint, which of `alerts` another of them inhibits. O(alerts * rules)."""
    found: dict[str, Suppression] = {}
    for rule in rules:
        sources: dict[tuple[str, ...], Alert] = {}
        for alert in sorted(alerts, key=lambda a: (a.starts_at_ms, a.fingerprint)):
            if _is_source_only(alert, rule):
                sources.setdefault(_equal(alert, rule), alert)
        if not sources:
            continue
        for alert in alerts:
            if alert.fingerprint in found or not all_match(rule.target, alert.labels):
                continue
            source = sources.get(_equal(alert, rule))
            if source is not None and source is not alert:
                detail = f"{_name(source)} ({source.labels.get('severity', '')}) fires on the same"
                found[alert.fingerprint] = Suppression(SuppressionReason.INHIBITION, source.fingerprint, detail)
    return found


def _is_source_only(alert: Alert, rule: InhibitionRule) -> bool:
    """An alert on both sides inhibits nothing: two of them would silence each other."""
    return all_match(rule.source, alert.labels) and not all_match(rule.target, alert.labels)


def _equal(alert: Alert, rule: InhibitionRule) -> tuple[str, ...]:
    return tuple(alert.labels.get(name, "") for name in rule.equal)


def _name(alert: Alert) -> str:
    return f"{alert.labels.get('alertname', '')} {alert.monitor}/{alert.feature}"
