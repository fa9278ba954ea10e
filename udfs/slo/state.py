"""What is remembered of one SLO and series between slices, and its versioned bytes.

Layout: an envelope (`udfs.versioned_bytes`) around a head, the tallies of the window's slices, and the counts. To
change it: raise `STATE_VERSION`, keep the old reader, and commit a golden file of what the old code wrote.
"""

import struct
from dataclasses import dataclass

from udfs.slo.counts import SloCounts
from udfs.slo.indicators import Tally
from udfs.slo.slo import Slo
from udfs.versioned_bytes import refuse, seal, unseal

STATE_VERSION = 2
NEVER_MS = -1
_TAG = b"SLS"
# Version 1 knew of no samples: without `open_sampled`, and nothing behind the counts.
_HEADS = {1: struct.Struct("<7q8sI"), 2: struct.Struct("<8q8sI")}
_RECENT = struct.Struct("<qI")
_LENGTH = struct.Struct("<I")


@dataclass(slots=True, eq=False)
class SloState:
    """One SLO and series. Instants are epoch milliseconds, `NEVER_MS` where there is none yet.

    `begun_ms` is the end of the first slice, `last_end_ms` of the newest, `last_data_ms` of the newest with events,
    `last_unqualified_ms` of the newest with events of an unqualified judge. `open_*` is the time slice not yet closed.
    `recent` are the slices of the window, oldest first, by their ends. `counted_by` is the SLO's own of that name.
    `sampled` counts the events themselves where those of `counts` are estimated from a sample, else None.
    """

    counts: SloCounts
    begun_ms: int = NEVER_MS
    last_end_ms: int = NEVER_MS
    last_data_ms: int = NEVER_MS
    last_unqualified_ms: int = NEVER_MS
    open_end_ms: int = NEVER_MS
    open_good: int = 0
    open_total: int = 0
    open_sampled: int = 0
    counted_by: bytes = bytes(8)
    recent: tuple[tuple[int, Tally], ...] = ()
    sampled: SloCounts | None = None

    @classmethod
    def begin(cls, slo: Slo) -> "SloState":
        """Return the state before the first slice."""
        counts, sampled = (SloCounts.begin(slo.period.zone, *slo.start_of_day) for _ in range(2))
        return cls(counts, counted_by=slo.counted_by, sampled=sampled if slo.estimates_budget else None)


def encode(state: SloState) -> bytes:
    """Return the bytes of `state`; equal states give equal bytes. O(slots), at most 50 kB and the window's sketches."""
    head = _HEADS[STATE_VERSION].pack(
        state.begun_ms,
        state.last_end_ms,
        state.last_data_ms,
        state.last_unqualified_ms,
        state.open_end_ms,
        state.open_good,
        state.open_total,
        state.open_sampled,
        state.counted_by,
        len(state.recent),
    )
    parts = [head]
    for end_ms, tally in state.recent:
        data = tally.to_bytes()
        parts += [_RECENT.pack(end_ms, len(data)), data]
    counts = state.counts.to_bytes()
    parts += [_LENGTH.pack(len(counts)), counts]
    if state.sampled is not None:
        parts.append(state.sampled.to_bytes())
    return seal(_TAG, STATE_VERSION, b"".join(parts))


def decode(data: bytes, slo: Slo) -> SloState:
    """Read them again; of an SLO that counted something else, the state before the first slice.

    Raises ValueError on bytes that are none, or of a later version: that must stop the job.
    """
    version, body = _opened(data)
    layout = _HEADS[version]
    try:
        *head, n_recent = layout.unpack_from(body)
        at = layout.size
        recent = []
        for _ in range(n_recent):
            end_ms, length = _RECENT.unpack_from(body, at)
            at += _RECENT.size
            recent.append((end_ms, Tally.from_bytes(body[at : at + length], version)))
            at += length
        length = len(body) - at
        if version > 1:
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
    except struct.error as error:
        refuse(_TAG, f"the body can't be read, {error!r}")
    if head[-1] != slo.counted_by:
        return SloState.begin(slo)
    counts = SloCounts.from_bytes(body[at : at + length], slo.period.zone, *slo.start_of_day)
    state = SloState(counts, *(head if version > 1 else [*head[:-1], 0, head[-1]]))
    state.recent = tuple(recent)
    if slo.estimates_budget:
        state.sampled = SloCounts.from_bytes(body[at + length :], slo.period.zone, *slo.start_of_day)
    return state


def instants(data: bytes) -> tuple[int, int]:
    """Return (`last_end_ms`, `last_data_ms`) of the bytes of a state. Raises ValueError as `decode` does."""
    version, body = _opened(data)
    head = _HEADS[version].unpack_from(body)
    return head[1], head[2]


def _opened(data: bytes) -> tuple[int, bytes]:
    """The version and the body of an envelope of this or an earlier version."""
    version = 1 if data[:1] == b"\x01" else STATE_VERSION
    return version, unseal(data, _TAG, version=version)
