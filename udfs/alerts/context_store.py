"""Silences and changes by key, as the job keeps them for every scope: the newest of an id, bounded in number."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.changes import Change, decode_change
from schemas.record_fields import UnreadableRecordError
from schemas.silences import Silence, decode_silence
from udfs.alerts.incident_policy import IncidentPolicy

MAX_OF_A_KIND = 10_000
"""How many silences and how many changes are kept; of more, those that end first are forgotten."""
SILENCE, CHANGE = "silence", "change"


def key_of(found: Silence | Change) -> str:
    """Return the key under which it is kept; it tells by itself when the record is over.

    >>> key_of(decode_silence(b'{"id":"s1","matchers":[{"name":"a","value":"b"}],"startsAt":"1970-01-01T00:00:01Z",'
    ...     b'"endsAt":"1970-01-01T00:00:02Z","updatedAt":"1970-01-01T00:00:01Z","createdBy":"ann"}'))
    'silence/s1'
    """
    return f"{SILENCE}/{found.silence_id}" if isinstance(found, Silence) else f"{CHANGE}/{found.change_id}"


def replaces(new: bytes, known: bytes | None, key: str) -> bool:
    """Whether a record is to be kept: the first of its id, or a silence that was updated."""
    if known is None:
        return True
    if key.startswith(CHANGE):
        return False  # a change is known by its id, and never edited
    return decode_silence(new).updated_ms > decode_silence(known).updated_ms


@dataclass(frozen=True, slots=True)
class Stored:
    """Everything that is kept, decoded."""

    silences: tuple[Silence, ...] = ()
    changes: tuple[Change, ...] = ()

    @classmethod
    def of(cls, records: Iterable[tuple[str, bytes]]) -> "Stored":
        """Decode what is kept, by key; in a fixed order."""
        silences, changes = [], []
        for key, payload in sorted(records):
            if key.startswith(f"{SILENCE}/"):
                silences.append(decode_silence(payload))
            elif key.startswith(f"{CHANGE}/"):
                changes.append(decode_change(payload))
        return cls(tuple(silences), tuple(sorted(changes, key=lambda c: (c.time_ms, c.change_id))))

    def since(self, oldest_ms: int, policy: IncidentPolicy) -> "Stored":
        """Return what can still matter to alerts whose rows began at `oldest_ms` or later."""
        lookback_seconds = max(
            policy.causes.change_lookback_seconds, *(rule.max_window_seconds for rule in policy.changes.values()), 0.0
        )
        from_ms = oldest_ms - round(lookback_seconds * 1000)
        return Stored(
            tuple(silence for silence in self.silences if silence.ends_ms > oldest_ms),
            tuple(change for change in self.changes if max(change.time_ms, change.ends_ms or 0) >= from_ms),
        )


def surplus(records: Mapping[str, bytes]) -> list[str]:
    """Return the keys of those beyond `MAX_OF_A_KIND` of a kind, those first that end first. O(n log n)."""
    ends: dict[str, list[tuple[int, str]]] = {SILENCE: [], CHANGE: []}
    for key, payload in records.items():
        kind = key.partition("/")[0]
        try:
            if kind == SILENCE:
                ends[kind].append((decode_silence(payload).ends_ms, key))
            elif kind == CHANGE:
                ends[kind].append((decode_change(payload).time_ms, key))
        except UnreadableRecordError:  # of a build with other rules: the first to go
            ends[kind].append((0, key))
    return [key for found in ends.values() for _, key in sorted(found)[: max(0, len(found) - MAX_OF_A_KIND)]]
