"""All series of one metric of one service: how many may live, and which are forgotten. Pure; a store holds the states.

A label with a value of its own for every request would otherwise make a counter of every request. What comes beyond the
cap is not dropped: each point becomes a dead letter that says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

import orjson

from schemas.books import MetricKind
from schemas.dead_letters import Reason
from udfs.telemetry.metric_points import MetricPoint
from udfs.telemetry.metric_series import NS_PER_SECOND, Outcome, SeriesPolicy, SeriesState, step
from udfs.telemetry.metric_series_bytes import decode, encode

SWEEPS_A_LIFETIME = 4  # how often, while one series may stay silent, the silent ones are looked for

_OVERFLOW = Outcome(
    MetricKind.DEAD,
    reason=Reason.SERIES_OVERFLOW,
    detail="the metric of this service has as many series as may live; raise the cap or drop the label that makes them",
)


@dataclass(frozen=True, slots=True)
class FamilyPolicy:
    """`most_series`: design.md's cap a series group. A series is forgotten when it was silent for so long."""

    most_series: int = 10_000
    forget_seconds: float = 86_400.0
    series: SeriesPolicy = field(default_factory=SeriesPolicy)


@dataclass(frozen=True, slots=True)
class Family:
    """How many series live, the newest point's time, and when the silent ones were last looked for."""

    n_series: int = 0
    newest_ns: int = 0
    swept_ns: int = 0

    def to_json(self) -> bytes:
        """Return its text, with a version."""
        return orjson.dumps([1, self.n_series, self.newest_ns, self.swept_ns])

    @classmethod
    def from_json(cls, data: bytes) -> "Family":
        """Read it back. Raises ValueError on a later version: that must stop the job.

        >>> Family.from_json(Family(2, 30, 10).to_json())
        Family(n_series=2, newest_ns=30, swept_ns=10)
        """
        version, *parts = orjson.loads(data)
        if version != 1:
            raise ValueError(f"a metric family of version {version}; this code reads version 1")
        return cls(*parts)


class SeriesStore(Protocol):
    """Where the encoded states of a family's series are: a map in Flink's state, a dictionary in tests."""

    def get(self, key: str) -> bytes | None:
        """Return what is stored under `key`."""

    def put(self, key: str, value: bytes) -> None:
        """Store it."""

    def remove(self, key: str) -> None:
        """Forget it."""

    def items(self) -> Iterable[tuple[str, bytes]]:
        """Return all."""


def take(store: SeriesStore, family: Family, point: MetricPoint, policy: FamilyPolicy) -> tuple[Family, Outcome]:
    """Move the family by one point: read and write its series in `store`, return the family and what became of it.

    O(one series), and O(all series) now and then: SWEEPS_A_LIFETIME times while one may stay silent, and each minute of
    event time while the family is full.
    """
    if point.time_ns > family.newest_ns:
        family = Family(family.n_series, point.time_ns, family.swept_ns)
    stored = store.get(point.series_id)
    if stored is None:
        family = _swept(store, family, policy)
        if family.n_series >= policy.most_series:
            return family, _OVERFLOW
        family = replace(family, n_series=family.n_series + 1)
    before = SeriesState() if stored is None else decode(stored)
    after, outcome = step(before, point, policy.series)
    if after is not before or stored is None:
        store.put(point.series_id, encode(after))
    return family, outcome


def _swept(store: SeriesStore, family: Family, policy: FamilyPolicy) -> Family:
    """Forget the silent series if it is time to look for them. Only a new series makes it worth looking."""
    is_full = family.n_series >= policy.most_series
    pause_seconds = 60.0 if is_full else policy.forget_seconds / SWEEPS_A_LIFETIME
    if family.newest_ns - family.swept_ns < pause_seconds * NS_PER_SECOND:
        return family
    silent_since = family.newest_ns - int(policy.forget_seconds * NS_PER_SECOND)
    silent = [key for key, data in store.items() if decode(data).seen.newest_ns < silent_since]
    for key in silent:
        store.remove(key)
    return replace(family, n_series=family.n_series - len(silent), swept_ns=family.newest_ns)
