"""What turns the verdicts of a monitor into alerts: numbers and names, no logic."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from udfs.alerts.incident_policy import IncidentPolicy


@dataclass(frozen=True, slots=True)
class AlertRule:
    """The alert policy of one monitor, as `jobs/alert_rules.yaml` writes it.

    `firing_after_windows` consecutive drifted windows open an alert, `resolved_after_windows` consecutive windows
    without drift close it. `resend_delay_seconds` is how long whoever forwards alerts to Alertmanager may wait before
    it posts a firing one again. `generator_url` may name `{monitor}`, `{feature}` and `{verdict_id}`.

    `keep_firing_seconds` after its last drifted window an alert can be resolved at the earliest (Prometheus'
    `keep_firing_for`). An alert that fired `flap_firings` times within `flap_within_seconds` flaps: it then stays
    firing until `flap_quiet_seconds` after its last drifted window, instead of paging once more; 0 is never.
    `publish_pending` writes a record when a row of drifted windows begins. `never_suppress` keeps changes from
    suppressing the alert.
    """

    alertname: str
    severity: str
    owner: str
    runbook_url: str
    firing_after_windows: int
    resolved_after_windows: int
    resend_delay_seconds: float
    generator_url: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    keep_firing_seconds: float = 0.0
    flap_firings: int = 0
    flap_within_seconds: float = 3600.0
    flap_quiet_seconds: float = 1800.0
    publish_pending: bool = False
    never_suppress: bool = False


@dataclass(frozen=True, slots=True)
class AlertRules:
    """Every monitor's rule, and what holds for the whole job.

    A monitor that `monitors` does not name has the `default` rule. A verdict whose window ends more than
    `max_clock_skew_seconds` after its Kafka timestamp is refused. State of a series without a verdict for
    `forget_series_after_days` is dropped. `incidents` is the policy of the second stage.
    """

    default: AlertRule
    max_clock_skew_seconds: float
    forget_series_after_days: float
    monitors: Mapping[str, AlertRule] = field(default_factory=dict)
    incidents: IncidentPolicy = field(default_factory=IncidentPolicy)

    def for_monitor(self, monitor: str) -> AlertRule:
        """The rule of `monitor`."""
        return self.monitors.get(monitor, self.default)
