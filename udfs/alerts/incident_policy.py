"""What makes one incident of many alerts, and what keeps an alert from people: numbers and names, no logic.

`jobs/alert_rules.yaml` holds the defaults with their sources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from schemas.changes import ChangeKind
from schemas.matchers import Matcher
from udfs.alerts.dependencies import Dependencies
from udfs.alerts.root_cause import CausePolicy

SEVERITY_RANK = {"critical": 3, "page": 3, "ticket": 2, "warning": 2, "info": 1}
"""Which severity is graver; one that is not here ranks lowest."""


@dataclass(frozen=True, slots=True)
class InhibitionRule:
    """While an alert that `source` matches fires, one that `target` matches is kept back if their `equal` labels agree.

    A label that neither has agrees. An alert that matches both sides inhibits nothing, itself included.
    Source: prometheus/alertmanager inhibit/inhibit.go.
    """

    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeduplicationRule:
    """Alerts that `matchers` match and whose labels named in `fingerprint_fields` agree are one alert.

    An alert without any of these labels is no duplicate of anything.
    """

    matchers: tuple[Matcher, ...]
    fingerprint_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """What one kind of change explains, and for how long: alerts that every matcher of `explains` matches.

    It holds from the change to `window_seconds` after its end, and never longer than `max_window_seconds` in all.
    `suppress` keeps an explained alert back; `raise_bar` does so only while its last window is not beyond the limit by
    `bar_factor` (`udfs.alerts.suppression.passes_raised_bar`).
    """

    action: Literal["suppress", "raise_bar"]
    window_seconds: float
    max_window_seconds: float
    bar_factor: float = 2.0
    explains: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class IncidentPolicy:
    """Policy of the second stage.

    Alerts whose `incident_labels` agree are one incident (one without any of them: its monitor's). A transition waits
    `hold_seconds` for others that belong before or beside it. An incident's next notification comes at once where it
    became graver, else at the earliest `update_interval_seconds` after the last; it is over when nothing has been open
    for `quiet_seconds`. A notification lists `top_alerts` alerts. An incident remembers `max_open_alerts`; what comes
    on top is passed on and counted. No change keeps an alert back for longer than `max_suppressed_seconds` in all.
    """

    incident_labels: tuple[str, ...] = ("service_name",)
    hold_seconds: float = 0.5
    update_interval_seconds: float = 300.0
    quiet_seconds: float = 300.0
    top_alerts: int = 10
    max_open_alerts: int = 10_000
    max_suppressed_seconds: float = 7200.0
    inhibition: tuple[InhibitionRule, ...] = ()
    deduplication: tuple[DeduplicationRule, ...] = ()
    changes: Mapping[ChangeKind, ChangeRule] = field(default_factory=dict)
    dependencies: Dependencies = field(default_factory=Dependencies)
    causes: CausePolicy = field(default_factory=CausePolicy)
