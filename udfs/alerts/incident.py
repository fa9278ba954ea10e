"""Many alerts, one incident: what is published, what is kept back, and when people are told (spec A4, A5, A6).

A pure state machine over the transitions of one scope (`udfs.alerts.scope`), driven by event time alone:

    transition --> suppressed? (silence, change, inhibition, duplicate) --> `alerts`
                                                                       \\--> incident --> `incidents`

`tick` takes the transitions that came since the last one, in whatever order, and an instant; it works through both in
order of event time. At each instant it decides for *all* open alerts at once whether they are kept back, so neither
the order of arrival nor how the transitions were cut into ticks makes a difference, as long as none comes after its
time. What it guarantees:

- An alert is published as firing or suppressed once it fired, and again only when that changes; as resolved once.
- A change never takes back an alert that was published as firing; a silence or a graver alert may. What was taken back
  and is free again is published as firing again, under the next episode's id.
- An incident has one id from its first alert to `quiet_seconds` after its last; its first notification goes out with
  its first firing alert, the next when it becomes graver or, at the earliest, `update_interval_seconds` later.
- Two notifications of an incident never have the same number, and none says that nothing changed.

A tick costs O(open alerts + instants to work through * open alerts): under a second for 10,000 at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas.alerts import Alert, AlertState, Suppression, SuppressionReason
from schemas.changes import Change
from schemas.ids import record_id
from schemas.incidents import Incident, IncidentEvent
from schemas.silences import Silence
from schemas.times import rfc3339
from udfs.alerts.annotations import cause_line
from udfs.alerts.cause_signals import Observation
from udfs.alerts.incident_policy import SEVERITY_RANK, IncidentPolicy
from udfs.alerts.incident_state import Entry, OpenIncident, ScopeState
from udfs.alerts.notification import notification
from udfs.alerts.related import duplicates, inhibited
from udfs.alerts.root_cause import CandidateChange, RootCause, rank_causes
from udfs.alerts.scope import scope_labels
from udfs.alerts.suppression import change_of, silence_of

_SERVICE_LABEL = "service_name"


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the alerts: silences, changes, and what verdicts say of root-cause signals."""

    silences: Sequence[Silence] = ()
    changes: Sequence[Change] = ()
    observations: Sequence[Observation] = ()


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a tick made: the state, the entries that changed (None: gone), and what to publish, in order.

    `due_ms` is the next instant at which something happens though nothing comes; None where there is none.
    """

    state: ScopeState
    changed: Mapping[str, Entry | None]
    alerts: tuple[Alert, ...]
    incidents: tuple[Incident, ...]
    due_ms: int | None


def tick(
    state: ScopeState,
    entries: Mapping[str, Entry],
    transitions: Iterable[Alert],
    *,
    until_ms: int,
    context: Context,
    policy: IncidentPolicy,
) -> Ticked:
    """Work through `transitions` and everything that is due up to `until_ms` (event time).

    `entries` are the scope's, by fingerprint. What comes after its time, older than the scope's clock, is decided on at
    the clock and published with its own time.
    """
    run = _Run(state, dict(entries), context, policy)
    run.at(run.clock_ms, ())  # silences and changes may be others than in the last tick
    by_time: dict[int, list[Alert]] = {}
    for alert in sorted(transitions, key=_order):
        by_time.setdefault(alert.updated_at_ms, []).append(alert)
    for at_ms, alerts in by_time.items():
        run.up_to(at_ms - 1)
        run.at(at_ms, alerts)
    run.up_to(until_ms)
    return run.result()


def _order(alert: Alert) -> tuple[int, int, bool, str]:
    return alert.updated_at_ms, alert.starts_at_ms, alert.state is AlertState.RESOLVED, alert.fingerprint


@dataclass(slots=True)
class _Run:
    """The scope while a tick works on it."""

    state: ScopeState
    entries: dict[str, Entry]
    context: Context
    policy: IncidentPolicy
    incident: OpenIncident | None = field(init=False)
    clock_ms: int = field(init=False)
    beyond: int = field(init=False)
    changed: dict[str, Entry | None] = field(default_factory=dict)
    alerts: list[Alert] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    ranked: dict[tuple[str, int, int], RootCause] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.incident, self.clock_ms, self.beyond = self.state.incident, self.state.clock_ms, self.state.beyond

    def result(self) -> Ticked:
        state = ScopeState(self.clock_ms, self.incident, self.beyond)
        return Ticked(state, self.changed, tuple(self.alerts), tuple(self.incidents), self._due_ms())

    def up_to(self, until_ms: int) -> None:
        """Do what is due, instant by instant."""
        while (due_ms := self._due_ms()) is not None and due_ms <= until_ms:
            self.at(due_ms, ())

    def at(self, at_ms: int, transitions: Sequence[Alert]) -> None:
        """Everything of one instant, which is never before the clock."""
        at_ms = self.clock_ms = max(self.clock_ms, at_ms)
        fresh: list[Alert] = []
        for alert in transitions:
            if self._take(alert, at_ms, room=self.policy.max_open_alerts - len(self.entries) - len(fresh)):
                fresh.append(alert)
        self._decide(fresh, at_ms)
        self._tell(at_ms)

    # What comes in

    def _take(self, alert: Alert, at_ms: int, room: int) -> bool:
        """Take one transition in; whether it is a newly firing alert that is to be decided on."""
        known = self.entries.get(alert.fingerprint)
        if alert.state is AlertState.FIRING:
            if known is not None and known.is_open and known.alert.starts_at_ms >= alert.starts_at_ms:
                return False  # a repetition
            if known is None and room <= 0:
                self._pass_on(alert, at_ms)
                return False
            return True
        if alert.state is AlertState.RESOLVED:
            self._resolve(alert, known, at_ms)
        else:
            self.alerts.append(replace(alert, incident_id=self.incident.incident_id if self.incident else ""))
        return False

    def _pass_on(self, alert: Alert, at_ms: int) -> None:
        """Beyond what an incident remembers: published as it is, unless silenced, and counted."""
        self.beyond += 1
        muting = silence_of(alert, at_ms, self.context.silences)
        state = AlertState.FIRING if muting is None else AlertState.SUPPRESSED
        self.alerts.append(replace(alert, state=state, suppression=muting, incident_id=self._incident_id(alert)))
        self._mark_changed()

    def _resolve(self, alert: Alert, known: Entry | None, at_ms: int) -> None:
        if known is not None and known.is_open and known.alert.starts_at_ms == alert.starts_at_ms:
            muting = known.suppression
            resolved = replace(alert, incident_id=known.alert.incident_id, suppression=muting)
            self._put(Entry(resolved, known.fired, known.suppressed) if known.fired else None, alert.fingerprint)
            if known.is_firing:
                self._mark_changed()
        else:
            resolved = replace(alert, incident_id=self._incident_id(alert))
            self.beyond = max(0, self.beyond - 1)
        self.alerts.append(resolved)

    # What is kept back

    def _decide(self, fresh: Sequence[Alert], at_ms: int) -> None:
        """Decide on all open alerts at once, and publish those for which something changed."""
        new = {alert.fingerprint: alert for alert in fresh}
        kept = {name: entry for name, entry in self.entries.items() if entry.is_open and name not in new}
        considered = sorted(
            [*(entry.alert for entry in kept.values()), *new.values()], key=lambda a: (a.starts_at_ms, a.fingerprint)
        )
        if considered and self.incident is None:
            first_ms = considered[0].starts_at_ms
            self.incident = OpenIncident(self._id_of(considered[0], first_ms), first_ms)
        muting = self._muting(considered, at_ms)
        for alert in considered:
            entry = kept.get(alert.fingerprint)
            reason = muting.get(alert.fingerprint)
            if entry is None or _differs(entry, reason):
                self._publish(alert, entry or Entry(alert), reason, at_ms)
            elif entry.suppression != reason:  # the same, for longer or shorter
                self._put(replace(entry, alert=replace(alert, suppression=reason)), alert.fingerprint)

    def _muting(self, considered: Sequence[Alert], at_ms: int) -> dict[str, Suppression]:
        """What keeps each alert back at `at_ms`, by fingerprint: a silence first, a duplicate last."""
        muting: dict[str, Suppression] = {}
        for alert in considered:
            found = silence_of(alert, at_ms, self.context.silences)
            if found is None and not self._has_fired(alert):
                found = change_of(alert, at_ms, self.context.changes, self.policy)
            if found is not None:
                muting[alert.fingerprint] = found
        # As in Alertmanager, an alert that is silenced still inhibits: somebody knows of it.
        graver = [a for a in considered if not _is_explained(muting.get(a.fingerprint))]
        for name, found in inhibited(graver, self.policy.inhibition).items():
            muting.setdefault(name, found)
        rest = [alert for alert in considered if alert.fingerprint not in muting]
        firing = frozenset(name for name, entry in self.entries.items() if entry.is_firing)
        return muting | duplicates(rest, firing, self.policy.deduplication)

    def _has_fired(self, alert: Alert) -> bool:
        entry = self.entries.get(alert.fingerprint)
        return entry is not None and entry.alert.starts_at_ms == alert.starts_at_ms and entry.fired > 0

    def _publish(self, alert: Alert, entry: Entry, muting: Suppression | None, at_ms: int) -> None:
        life_ms = max(0, alert.ends_at_ms - alert.updated_at_ms)
        is_new = not entry.fired and not entry.suppressed
        updated_ms = alert.updated_at_ms if is_new else max(alert.updated_at_ms, at_ms)
        state = AlertState.FIRING if muting is None else AlertState.SUPPRESSED
        published = replace(
            alert if alert.incident_id else self._explained(alert),
            state=state,
            updated_at_ms=updated_ms,
            ends_at_ms=updated_ms + life_ms,
            suppression=muting,
            episode=entry.fired if muting is None else entry.suppressed,
        )
        fired, suppressed = entry.fired + (muting is None), entry.suppressed + (muting is not None)
        self._put(Entry(published, fired, suppressed), alert.fingerprint)
        self.alerts.append(published)
        if muting is None or (entry.is_firing and not is_new):
            self._mark_changed()

    def _explained(self, alert: Alert) -> Alert:
        """The alert with its incident and its likeliest causes: once, when it is first published."""
        found = self._causes(alert)
        root_cause, annotations = None, alert.annotations
        if found.causes:
            root_cause = found.to_dict()
            line = cause_line(found, self.policy.causes.named_from)
            annotations = {**annotations, "root_cause": line} if line else annotations
        return replace(alert, incident_id=self._incident_id(alert), root_cause=root_cause, annotations=annotations)

    def _causes(self, alert: Alert) -> RootCause:
        service = alert.labels.get(_SERVICE_LABEL, "")
        place = service, alert.active_at_ms, alert.updated_at_ms
        if place not in self.ranked:
            self.ranked[place] = rank_causes(
                self.context.observations,
                [_candidate(change) for change in self.context.changes],
                service=service,
                onset_ms=alert.active_at_ms,
                at_ms=alert.updated_at_ms,
                dependencies=self.policy.dependencies,
                policy=self.policy.causes,
            )
        return self.ranked[place]

    # What people are told

    def _tell(self, at_ms: int) -> None:
        incident = self.incident
        if incident is None:
            return
        firing = [entry.alert for entry in self.entries.values() if entry.is_firing]
        is_open = bool(firing) or any(entry.is_open for entry in self.entries.values())
        if is_open:
            incident = self.incident = replace(incident, quiet_since_ms=None)
        elif incident.quiet_since_ms is None:
            incident = self.incident = replace(incident, quiet_since_ms=at_ms)
        if firing:
            self._tell_of_firing(incident, firing, at_ms)
        elif incident.quiet_since_ms is not None and at_ms >= incident.quiet_since_ms + self._quiet_ms:
            if incident.number:
                self._notify(IncidentEvent.RESOLVED, incident, at_ms)
            self._forget_resolved()
            self.incident, self.beyond = None, 0

    def _tell_of_firing(self, incident: OpenIncident, firing: Sequence[Alert], at_ms: int) -> None:
        rank, severity = max((_rank(alert), alert.labels.get("severity", "")) for alert in firing)
        if not incident.number:
            event = IncidentEvent.OPENED
        elif rank > incident.notified_rank:
            event = IncidentEvent.ESCALATED
        elif incident.is_changed and at_ms >= incident.notified_ms + self._update_ms:
            event = IncidentEvent.UPDATED
        else:
            return
        if rank > incident.notified_rank:
            incident = replace(incident, notified_rank=rank, severity=severity)
        self._notify(event, incident, at_ms)
        self._forget_resolved()

    def _notify(self, event: IncidentEvent, incident: OpenIncident, at_ms: int) -> None:
        number = incident.number + 1
        told = notification(
            event,
            incident,
            number,
            entries=self.entries.values(),
            beyond=self.beyond,
            at_ms=at_ms,
            policy=self.policy,
        )
        self.incidents.append(told)
        self.incident = replace(incident, number=number, notified_ms=at_ms, is_changed=False)

    def _forget_resolved(self) -> None:
        for name in [name for name, entry in self.entries.items() if not entry.is_open]:
            self._put(None, name)

    # What is due

    @property
    def _quiet_ms(self) -> int:
        return round(self.policy.quiet_seconds * 1000)

    @property
    def _update_ms(self) -> int:
        return round(self.policy.update_interval_seconds * 1000)

    def _due_ms(self) -> int | None:
        """The next instant after the clock at which something happens though nothing comes."""
        due: list[int] = []
        if self.entries:
            muting = (entry.suppression for entry in self.entries.values() if entry.is_open)
            due += [found.until_ms for found in muting if found is not None and found.until_ms is not None]
            due += [silence.starts_ms for silence in self.context.silences]
        if self.incident is not None:
            if self.incident.quiet_since_ms is not None:
                due.append(self.incident.quiet_since_ms + self._quiet_ms)
            elif self.incident.is_changed and self.incident.number:
                due.append(self.incident.notified_ms + self._update_ms)
        return min((each for each in due if each > self.clock_ms), default=None)

    # Small things

    def _put(self, entry: Entry | None, name: str) -> None:
        self.changed[name] = entry
        if entry is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = entry

    def _mark_changed(self) -> None:
        if self.incident is not None:
            self.incident = replace(self.incident, is_changed=True)

    def _incident_id(self, alert: Alert) -> str:
        return self._id_of(alert, alert.starts_at_ms) if self.incident is None else self.incident.incident_id

    def _id_of(self, alert: Alert, started_ms: int) -> str:
        labels = scope_labels(alert.labels, self.policy.incident_labels)
        names = [part for pair in labels.items() for part in pair]
        return record_id("incident", rfc3339(started_ms), *names)


def _differs(entry: Entry, muting: Suppression | None) -> bool:
    """Whether what keeps the alert back is something else than was published."""
    known = entry.suppression
    if known is None or muting is None:
        return (known is None) is not (muting is None)
    return (known.reason, known.by) != (muting.reason, muting.by)


def _is_explained(muting: Suppression | None) -> bool:
    return muting is not None and muting.reason is SuppressionReason.CHANGE


def _rank(alert: Alert) -> int:
    return SEVERITY_RANK.get(alert.labels.get("severity", ""), 0)


def _candidate(change: Change) -> CandidateChange:
    return CandidateChange(
        change.change_id, change.kind, change.service, change.time_ms, change.ends_ms, change.summary
    )
