"""What a dynamic threshold remembers of one series, and its bytes: sealed, versioned, at most some 19 kB.

u32   length of the JSON that follows: scalars, and how many numbers each array has
...   the JSON
...   the arrays, in the order of the JSON's `sizes`: 8 bytes a number, little-endian
"""

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from udfs.signals.p90_gate import DynamicThreshold
from udfs.signals.seasonal_band import BandState
from udfs.signals.versioned_state import UnknownStateVersionError
from udfs.versioned_bytes import seal, unseal

TAG, VERSION = b"SEA", 1
_LENGTH = struct.Struct("<I")
_ARRAYS = {
    "slot_numbers": "<i8",
    "slot_medians": "<f8",
    "residual_ms": "<i8",
    "residuals": "<f8",
    "aside_ms": "<i8",
    "aside": "<f8",
    "open_figures": "<f8",
}


@dataclass(frozen=True, eq=False)
class SeasonalState:
    """One series after the window that ended at `last_window_end_ms`: its band and gate, and since when it breaches."""

    last_window_end_ms: int
    breach_since_ms: int | None = None
    band: BandState = field(default_factory=BandState)
    gate: DynamicThreshold = field(default_factory=DynamicThreshold)


def encode(state: SeasonalState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly. O(state)."""
    arrays = {name: getattr(state.band, name).astype(kind) for name, kind in _ARRAYS.items()}
    scalars = orjson.dumps(
        {
            "last_window_end_ms": state.last_window_end_ms,
            "breach_since_ms": state.breach_since_ms,
            "slope": state.band.slope,
            "open_slot": state.band.open_slot,
            "gate": state.gate,
            "sizes": [array.size for array in arrays.values()],
        }
    )
    return seal(TAG, VERSION, b"".join([_LENGTH.pack(len(scalars)), scalars, *(a.tobytes() for a in arrays.values())]))


def decode(data: bytes) -> SeasonalState:
    """Read a state back. Raises UnknownStateVersionError on bytes that this code can't read."""
    try:
        body = unseal(data, TAG, version=VERSION)
    except ValueError as error:
        raise UnknownStateVersionError(str(error)) from error
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    scalars: dict[str, Any] = orjson.loads(body[_LENGTH.size : at])
    arrays = {}
    for (name, kind), size in zip(_ARRAYS.items(), scalars["sizes"], strict=True):
        arrays[name] = np.frombuffer(body, kind, size, at)
        at += 8 * size
    gate = scalars["gate"]
    figures = tuple((hour, figure) for hour, figure in gate.pop("figures"))
    return SeasonalState(
        last_window_end_ms=scalars["last_window_end_ms"],
        breach_since_ms=scalars["breach_since_ms"],
        band=BandState(**arrays, slope=scalars["slope"], open_slot=scalars["open_slot"]),
        gate=DynamicThreshold(figures=figures, **gate),
    )
