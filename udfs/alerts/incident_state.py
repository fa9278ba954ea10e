"""What the second stage remembers of one incident scope, and its versioned encodings.

Two parts, so that a storm costs no more a record than a quiet day: the scope's own few numbers, and one entry an open
alert under its fingerprint. Both are JSON with a version; to change one, raise its version, bring older bodies up in
`decode_scope` or `decode_entry`, and commit a golden file of what the old code wrote.
"""

from dataclasses import asdict, dataclass
from typing import Any

import orjson

from schemas.alerts import Alert, AlertState, Suppression, alert_of

SCOPE_VERSION = 1
ENTRY_VERSION = 1


class UnknownIncidentVersionError(ValueError):
    """A state that this code can't read. It must stop the job: going on would forget open incidents."""


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """The incident that is open in a scope.

    `number` counts its notifications, `notified_ms` is when the last went out (event time), `notified_rank` and
    `severity` the gravest told of. `is_changed` says that there is something new to tell. `quiet_since_ms` is since
    when nothing is open.
    """

    incident_id: str
    started_ms: int
    number: int = 0
    notified_ms: int = 0
    notified_rank: int = -1
    severity: str = ""
    is_changed: bool = False
    quiet_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ScopeState:
    """`clock_ms` is the newest instant at which something happened; `beyond` counts alerts that are not remembered."""

    clock_ms: int = 0
    incident: OpenIncident | None = None
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One alert of the incident, as it was last published.

    `alert.state` is firing, suppressed or resolved. `fired` and `suppressed` count how often it came into that state.
    """

    alert: Alert
    fired: int = 0
    suppressed: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it is not resolved."""
        return self.alert.state is not AlertState.RESOLVED

    @property
    def is_firing(self) -> bool:
        """Whether people are told of it."""
        return self.alert.state is AlertState.FIRING

    @property
    def suppression(self) -> Suppression | None:
        """Why it is kept back; None where it is not."""
        return self.alert.suppression


def encode_scope(state: ScopeState) -> bytes:
    """Return the bytes of `state`; `decode_scope` gives it back exactly."""
    return orjson.dumps({"version": SCOPE_VERSION, **asdict(state)})


def decode_scope(data: bytes) -> ScopeState:
    """Read what this or an earlier version encoded. Raises UnknownIncidentVersionError for a newer one.

    >>> decode_scope(encode_scope(ScopeState(clock_ms=7))).clock_ms
    7
    """
    body = _body(data, SCOPE_VERSION)
    incident = body.pop("incident")
    return ScopeState(incident=None if incident is None else OpenIncident(**incident), **body)


def encode_entry(entry: Entry, alert_json: bytes | None = None) -> bytes:
    """Return the bytes of `entry`, 1 to 2 kB; `decode_entry` gives it back exactly.

    `alert_json` is `entry.alert.to_json()` where somebody has it already.
    """
    alert = orjson.Fragment(entry.alert.to_json() if alert_json is None else alert_json)
    body: dict[str, Any] = {"version": ENTRY_VERSION, "fired": entry.fired, "suppressed": entry.suppressed}
    return orjson.dumps(body | {"alert": alert})


def decode_entry(data: bytes) -> Entry:
    """Read what this or an earlier version encoded. Raises UnknownIncidentVersionError for a newer one."""
    body = _body(data, ENTRY_VERSION)
    return Entry(alert_of(body["alert"]), body["fired"], body["suppressed"])


def _body(data: bytes, version: int) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(data)
    found = body.pop("version")
    if found != version:
        raise UnknownIncidentVersionError(f"incident state of version {found}; this code reads up to {version}")
    return body
