"""Which alerts fire, and when each must be posted again: a pure state, moved by transitions that were delivered.

Bounded: at most `max_alerts` alerts of about 2 kB, and none that was not heard of for `forget_after_ms`. All steps take
O(1), `due` takes O(alerts that are due): the mapping is kept in the order in which alerts become due, which is the
order in which they were last posted, since all wait alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson

from infra.delivery.transition import FIRING, PENDING, RESOLVED, SUPPRESSED, Transition, transition_of

VERSION = 1


@dataclass(frozen=True, slots=True)
class _Firing:
    alert: Transition
    due_ms: int


class FiringAlerts:
    """The alerts that fire, by fingerprint."""

    def __init__(self, *, resend_delay_ms: int, forget_after_ms: int, max_alerts: int) -> None:
        self._resend_delay_ms, self._forget_after_ms, self._max = resend_delay_ms, forget_after_ms, max_alerts
        self._alerts: dict[str, _Firing] = {}
        self.not_kept = 0

    def __len__(self) -> int:
        return len(self._alerts)

    def __iter__(self) -> Iterator[Transition]:
        return (firing.alert for firing in self._alerts.values())

    def to_send(self, transition: Transition) -> Transition | None:
        """Return what a target is to be told of `transition`; None where it is no news to it.

        A pending alert is not one yet. A suppressed one is told as resolved to those who know that it fires, and else
        not at all.
        """
        if transition.state == PENDING:
            return None
        if transition.state == SUPPRESSED:
            known = self._alerts.get(transition.fingerprint)
            if known is None:
                return None
            return replace(
                transition,
                state=RESOLVED,
                starts_at_ms=known.alert.starts_at_ms,
                ends_at_ms=max(transition.updated_at_ms, known.alert.starts_at_ms),
            )
        return transition

    def take(self, transition: Transition, now_ms: int) -> None:
        """Note that the target knows of `transition`."""
        if transition.state == PENDING:
            return
        known = self._alerts.pop(transition.fingerprint, None)
        if transition.state != FIRING:
            return
        if known is None and len(self._alerts) >= self._max:
            self.not_kept += 1
            return
        self._alerts[transition.fingerprint] = _Firing(transition, now_ms + self._resend_delay_ms)

    def due(self, now_ms: int, limit: int) -> list[Transition]:
        """Return at most `limit` alerts that must be posted again, longest due first. Forgets those long unheard of."""
        found: list[Transition] = []
        forgotten: list[str] = []
        for name, firing in self._alerts.items():
            if firing.due_ms > now_ms or len(found) == limit:
                break
            if now_ms - firing.alert.updated_at_ms > self._forget_after_ms:
                forgotten.append(name)
            else:
                found.append(firing.alert)
        for name in forgotten:
            del self._alerts[name]
        return found

    def resent(self, alerts: Sequence[Transition], now_ms: int) -> None:
        """Note that `alerts` were posted again."""
        for alert in alerts:
            if self._alerts.pop(alert.fingerprint, None):
                self._alerts[alert.fingerprint] = _Firing(alert, now_ms + self._resend_delay_ms)

    def drop(self, alert: Transition) -> None:
        """Forget an alert that the target does not take any more."""
        self._alerts.pop(alert.fingerprint, None)

    def next_due_ms(self) -> int | None:
        """When the next alert must be posted again; None when none fires."""
        return next((firing.due_ms for firing in self._alerts.values()), None)

    def all_due(self) -> None:
        """Make every alert due now: after a start nobody knows what the target still holds."""
        self._alerts = {name: replace(firing, due_ms=0) for name, firing in self._alerts.items()}

    def encode(self) -> list[dict[str, object]]:
        """Plain data that `restore` takes."""
        return [alert.to_body() for alert in self]

    def restore(self, bodies: Sequence[dict[str, object]]) -> None:
        """Take what `encode` gave. Raises UnreadableRecordError, or AttributeError for what is no mapping."""
        for body in bodies:
            self.take(transition_of(body), 0)


def encoded_state(firing: FiringAlerts, place: dict[str, object]) -> bytes:
    """Return the bytes of a state file: the alerts, and `place`, what was read up to where."""
    return orjson.dumps({"version": VERSION, **place, "firing": firing.encode()})
