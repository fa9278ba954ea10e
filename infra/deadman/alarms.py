"""From findings to alerts: which has lasted long enough, which is over, and who was told. Pure.

A finding that lasts becomes an alarm; one that is no longer found resolves it. While the part that would say so does
not answer, an alarm stays as it is. What was resolved is kept until every target was told, but not longer than
`KEEP_RESOLVED_MS` (Prometheus rules/alerting.go, `resolvedRetention`, 15 min).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from infra.deadman.findings import SUMMARIES, Finding
from infra.delivery.transition import FIRING, RESOLVED, Transition
from schemas.ids import record_id
from schemas.times import rfc3339
from udfs.alerts.fingerprint import fingerprint

KEEP_RESOLVED_MS = 900_000
GENERATOR_URL = "urn:slacktide:deadman"
SOURCE = "slacktide-deadman"
WATCHDOG = "Watchdog"


@dataclass(frozen=True, slots=True)
class Alarm:
    """One finding over time. `told` is what each target was last told: firing or resolved."""

    name: str
    part: str
    about: Mapping[str, str]
    detail: str
    since_ms: int
    fired_ms: int | None = None
    resolved_ms: int | None = None
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str | None:
        """Firing or resolved; None while it has not lasted long enough."""
        if self.fired_ms is None:
            return None
        return FIRING if self.resolved_ms is None else RESOLVED

    def to_body(self) -> dict[str, Any]:
        """Plain data; `Alarm(**body)` is the same again."""
        return asdict(self)


Alarms = dict[str, Alarm]


def advance(
    alarms: Alarms, found: Iterable[Finding], unknown: Collection[str], targets: Collection[str], at_ms: int
) -> Alarms:
    """Return the alarms after a look at `at_ms`; of `unknown` parts nothing was said. O(alarms + findings)."""
    after: Alarms = {}
    for finding in found:
        known = alarms.get(finding.key)
        if known is None or known.resolved_ms is not None:
            known = Alarm(finding.name, finding.part, finding.about, finding.detail, at_ms)
        fires = known.fired_ms is None and at_ms - known.since_ms >= finding.lasts_seconds * 1000
        after[finding.key] = replace(known, detail=finding.detail, fired_ms=at_ms if fires else known.fired_ms)
    for key, alarm in alarms.items():
        if key in after:
            continue
        if alarm.resolved_ms is not None:
            is_told = all(alarm.told.get(target) == RESOLVED for target in targets)
            if not is_told and at_ms - alarm.resolved_ms <= KEEP_RESOLVED_MS:
                after[key] = alarm
        elif alarm.part in unknown:
            after[key] = alarm
        elif alarm.fired_ms is not None:
            after[key] = replace(alarm, resolved_ms=at_ms)
    return after


def transition_of_alarm(alarm: Alarm, *, severity: str, owner: str) -> Transition:
    """Return a fired alarm as it is delivered. Raises ValueError for one that has not fired."""
    if alarm.fired_ms is None:
        raise ValueError(f"{alarm.name} has not fired")
    ours = {"alertname": alarm.name, "severity": severity, "owner": owner, "source": SOURCE}
    return _transition(
        labels={**ours, **alarm.about},
        annotations={"summary": SUMMARIES[alarm.name], "description": alarm.detail},
        starts_ms=alarm.fired_ms,
        resolved_ms=alarm.resolved_ms,
    )


def watchdog(started_ms: int) -> Transition:
    """Return the alert that always fires: where it stops coming, dead man or delivery is dead.

    As kube-prometheus has it (severity none, so that it pages nobody by itself).
    """
    summary = "Always fires. When it stops coming, Slacktide's dead man or the way to you is broken."
    return _transition(
        labels={"alertname": WATCHDOG, "severity": "none", "source": SOURCE},
        annotations={"summary": summary},
        starts_ms=started_ms,
        resolved_ms=None,
    )


def _transition(
    *, labels: Mapping[str, str], annotations: Mapping[str, str], starts_ms: int, resolved_ms: int | None
) -> Transition:
    labels = {name: value for name, value in sorted(labels.items()) if value}
    state = FIRING if resolved_ms is None else RESOLVED
    ends_ms = starts_ms if resolved_ms is None else resolved_ms
    return Transition(
        alert_id=record_id(fingerprint(labels), rfc3339(starts_ms), state),
        state=state,
        labels=labels,
        annotations=annotations,
        starts_at_ms=starts_ms,
        ends_at_ms=ends_ms,
        updated_at_ms=ends_ms,
        generator_url=GENERATOR_URL,
    )
