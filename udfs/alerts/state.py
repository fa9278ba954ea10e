"""What the alert lifecycle remembers of one series, and its versioned encoding.

The encoding is JSON, so that a savepoint can be read by eye and by any later code. `decode` reads every version ever
written: it brings an older body up one version at a time through `MIGRATIONS`.

To change the state: raise `STATE_VERSION`, add the step from the version before to `MIGRATIONS`, commit a golden file
of what the old code wrote, and never edit an older step.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import orjson

from schemas.alerts import EvidenceWindow

STATE_VERSION = 4


def _alpha_apart_from_threshold(body: dict[str, Any]) -> dict[str, Any]:
    """Version 1 called a verdict's alpha its threshold, and knew of no other."""
    streak = [window | {"alpha": window["threshold"], "threshold": None} for window in body["streak"]]
    return body | {"streak": streak}


def _no_windows_by_count(body: dict[str, Any]) -> dict[str, Any]:
    """Version 2 knew only windows by time, which have no number."""
    return body | {"last_window_number": None}


def _no_keep_firing_and_no_flapping(body: dict[str, Any]) -> dict[str, Any]:
    """Version 3 resolved at once, so it had no use for when it last drifted or how often it fired."""
    opened = body["open_alert"]
    if opened is None:
        return body | {"last_drifted_end_ms": None, "recent_starts_ms": []}
    added = {"last_drifted_end_ms": opened["starts_at_ms"], "recent_starts_ms": []}
    return body | added | {"open_alert": opened | {"never_suppress": False}}


# From version n to n + 1: takes the decoded body without its version, returns the next one's.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _alpha_apart_from_threshold,
    2: _no_windows_by_count,
    3: _no_keep_firing_and_no_flapping,
}


class UnknownStateVersionError(ValueError):
    """A state that this code can't read. It must stop the job: going on would forget open alerts."""


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """What the resolution of a firing alert must repeat unchanged, however its rule was edited meanwhile."""

    fingerprint: str
    labels: dict[str, str]
    active_at_ms: int
    starts_at_ms: int
    generator_url: str
    never_suppress: bool = False


@dataclass(frozen=True, slots=True)
class LifecycleState:
    """The lifecycle of one series.

    `streak` holds the windows in a row that argue for the next transition, oldest first: drifted ones while no alert
    is open, ones without drift while one is. It is never longer than the rule's count, so a state is a few hundred
    bytes a window (encoded) and bounded. `last_drifted_end_ms` is the end of the newest drifted window since an alert
    is open, `recent_starts_ms` when the last few alerts began, oldest first: as many as the rule's `flap_firings`.
    """

    last_window_end_ms: int | None = None
    last_window_number: int | None = None
    config_digest: str = ""
    reference_digest: str = ""
    streak: tuple[EvidenceWindow, ...] = ()
    open_alert: OpenAlert | None = None
    last_drifted_end_ms: int | None = None
    recent_starts_ms: tuple[int, ...] = ()


_FIELDS = tuple(one.name for one in fields(LifecycleState))


def encode(state: LifecycleState) -> bytes:
    """Return the bytes of `state`; `decode` gives it back exactly. orjson reads dataclasses itself, and faster."""
    return orjson.dumps({"version": STATE_VERSION} | {name: getattr(state, name) for name in _FIELDS})


def decode(data: bytes) -> LifecycleState:
    """Read what this or any earlier version of the code encoded.

    Raises UnknownStateVersionError for a newer version: after a downgrade, restore the savepoint taken before the
    upgrade.

    >>> decode(encode(LifecycleState(last_window_end_ms=1))).last_window_end_ms
    1
    """
    body = orjson.loads(data)
    version = body.pop("version")
    while version != STATE_VERSION:
        if version not in MIGRATIONS:
            raise UnknownStateVersionError(
                f"lifecycle state of version {version}; this code reads up to {STATE_VERSION}"
            )
        body, version = MIGRATIONS[version](body), version + 1
    open_alert = body["open_alert"]
    return LifecycleState(
        last_window_end_ms=body["last_window_end_ms"],
        last_window_number=body["last_window_number"],
        config_digest=body["config_digest"],
        reference_digest=body["reference_digest"],
        streak=tuple(EvidenceWindow(**window) for window in body["streak"]),
        open_alert=None if open_alert is None else OpenAlert(**open_alert),
        last_drifted_end_ms=body["last_drifted_end_ms"],
        recent_starts_ms=tuple(body["recent_starts_ms"]),
    )
