"""Transitions for the incident tests: as the first stage makes them, from a few words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.alerts import Alert, AlertState, EvidenceWindow
from schemas.incidents import Incident
from schemas.matchers import parse_matcher
from udfs.alerts.fingerprint import fingerprint
from udfs.alerts.incident import Context, Ticked, tick
from udfs.alerts.incident_policy import DeduplicationRule, IncidentPolicy, InhibitionRule
from udfs.alerts.incident_state import (
    Entry,
    ScopeState,
    decode_entry,
    decode_scope,
    encode_entry,
    encode_scope,
)

START_MS = 1_700_000_000_000 - 1_700_000_000_000 % 60_000
SECOND_MS = 1000
PAGE_OVER_WARNING = InhibitionRule(
    source=(parse_matcher("severity=~page|critical"),),
    target=(parse_matcher("severity=~warning|ticket|info"),),
    equal=("service_name",),
)
POLICY = IncidentPolicy(inhibition=(PAGE_OVER_WARNING,))
BY_FEATURE = DeduplicationRule(matchers=(), fingerprint_fields=("service_name", "feature"))


def at(seconds: float) -> int:
    """Event time `seconds` after the start."""
    return START_MS + round(seconds * 1000)


def firing(seconds: float, feature: str = "input_tokens", *, severity: str = "warning", **changes: Any) -> Alert:
    """An alert of service `chat` that fires at `seconds`; `labels` are added to its own."""
    labels = {
        "alertname": "FeatureDrift",
        "feature": feature,
        "monitor": "m",
        "service_name": "chat",
        "severity": severity,
        **changes.pop("labels", {}),
    }
    window = EvidenceWindow(f"v-{feature}-{seconds}", at(seconds), 0.3, 0.001, 500, 0.01, 0.1, None)
    made = Alert(
        state=AlertState.FIRING,
        fingerprint=fingerprint(labels),
        labels=labels,
        annotations={"summary": f"{feature} has drifted", "description": "3 windows in a row."},
        active_at_ms=at(seconds - 60),
        starts_at_ms=at(seconds),
        ends_at_ms=at(seconds + 240),
        updated_at_ms=at(seconds),
        generator_url="urn:slacktide:verdict:v",
        monitor="m",
        feature=feature,
        series={"service_name": "chat"},
        model_card_digest="sha256:" + "0" * 64,
        evidence=(window,),
    )
    return replace(made, **changes)


def resolved(alert: Alert, seconds: float) -> Alert:
    """The end of `alert` at `seconds`, as the first stage tells it."""
    return replace(alert, state=AlertState.RESOLVED, updated_at_ms=at(seconds), ends_at_ms=at(seconds))


@dataclass
class Scope:
    """One scope with its state, which goes through its encoding at every tick, as in the job."""

    policy: IncidentPolicy = POLICY
    context: Context = field(default_factory=Context)
    state: bytes = field(default_factory=lambda: encode_scope(ScopeState()))
    entries: dict[str, bytes] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)

    def tick(self, until_seconds: float, *transitions: Alert) -> Ticked:
        """Work up to `until_seconds`."""
        ticked = tick(
            decode_scope(self.state),
            {name: decode_entry(data) for name, data in self.entries.items()},
            transitions,
            until_ms=at(until_seconds),
            context=self.context,
            policy=self.policy,
        )
        self.state = encode_scope(ticked.state)
        self._store(ticked.changed)
        self.alerts += ticked.alerts
        self.incidents += ticked.incidents
        return ticked

    def _store(self, changed: Mapping[str, Entry | None]) -> None:
        for name, entry in changed.items():
            if entry is None:
                self.entries.pop(name, None)
            else:
                self.entries[name] = encode_entry(entry)

    @property
    def published(self) -> list[tuple[str, str, float]]:
        """(feature, state, seconds) of what went to `alerts`."""
        return said(self.alerts)

    @property
    def told(self) -> list[tuple[str, float]]:
        """(event, seconds) of what went to `incidents`."""
        return [(str(each.event), (each.updated_at_ms - START_MS) / 1000) for each in self.incidents]


def said(alerts: Iterable[Alert]) -> list[tuple[str, str, float]]:
    """(feature, state, seconds) of each alert."""
    return [(a.feature, str(a.state), (a.updated_at_ms - START_MS) / 1000) for a in alerts]
