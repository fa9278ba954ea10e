"""Faults to inject: drifted features, slow episodes, and requests that are sent twice, late, skewed or malformed.

No two faults fall on one request, and each is counted, so that the books of a run can be checked to the last span.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from infra.replay.position import Position, parse_position, parse_seconds
from infra.replay.request_block import Ints, RequestBlock
from infra.replay.span_attributes import ATTRIBUTE_KEYS
from schemas.dead_letters import Reason
from schemas.requests import numeric_field_names

DRIFT_FEATURES = tuple(name for name in ATTRIBUTE_KEYS if name in numeric_field_names())
SKEW_NS = 86_400_000_000_000  # a clock a day ahead
_DRIFT = re.compile(
    r"(?P<feature>\w+)@(?P<at>.+?)(?::(?:kind=)?(?P<kind>shift|scale),(?:amount=)?(?P<amount>[-+]?\d*\.?\d+(?:e[-+]?\d+)?))?"
)
_SLOWDOWN = re.compile(r"(?P<factor>\d*\.?\d+)@(?P<at>.+?)(?:\+(?P<duration>\d[\w.]*))?")


class Sent(StrEnum):
    """What a message carries: usable requests, or one fault."""

    CLEAN = "clean"
    DUPLICATE = "duplicate"  # the second copy; the first is clean
    LATE = "late"
    SKEWED = "skewed"
    GARBAGE = "garbage"
    TRUNCATED = "truncated"
    BAD_ID = "bad_id"
    END_BEFORE_START = "end_before_start"
    FLUSH = "flush"  # usable requests after the last one, which close its windows

    @property
    def is_fault(self) -> bool:
        """Whether this was sent to be caught."""
        return self not in (Sent.CLEAN, Sent.FLUSH)


UNREADABLE = (Sent.GARBAGE, Sent.TRUNCATED)
MALFORMED = (*UNREADABLE, Sent.BAD_ID, Sent.END_BEFORE_START)


def reason_of(sent: Sent, encoding: str) -> Reason | None:
    """Return the reason under which ingest puts such a span (or message) into `dead_letters`, None where it doesn't.

    >>> reason_of(Sent.TRUNCATED, "otlp_json").value
    'malformed_json'
    """
    unreadable = Reason.MALFORMED_JSON if encoding == "otlp_json" else Reason.MALFORMED_PROTO
    return {
        Sent.GARBAGE: unreadable,
        Sent.TRUNCATED: unreadable,
        Sent.BAD_ID: Reason.BAD_ID,
        Sent.END_BEFORE_START: Reason.BAD_TIME,
        Sent.SKEWED: Reason.CLOCK_SKEW,
        Sent.LATE: Reason.LATE,
    }.get(sent)


@dataclass(frozen=True, slots=True)
class Drift:
    """From `at` on, `feature` is scaled by `amount`, or shifted by it. Only that field changes, as if misreported."""

    feature: str
    at: Position
    kind: str = "scale"
    amount: float = 1.5

    def apply(self, block: RequestBlock, at_ns: int) -> int:
        """Change the requests of `block` that end at `at_ns` or later, and return how many they are."""
        hit = block.end_ns >= at_ns
        values = block.fields[self.feature]
        moved = values * self.amount if self.kind == "scale" else values + self.amount
        if values.dtype.kind == "i":
            moved = np.maximum(np.rint(moved), 0).astype(np.int64)
        block.fields[self.feature] = np.where(hit, moved, values)
        return int(hit.sum())


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Requests that arrive from `at` on (for `duration_seconds`, else to the end) take `factor` times as long."""

    factor: float
    at: Position
    duration_seconds: float | None = None

    def factors(self, arrival_ns: Ints, at_ns: int) -> NDArray[np.float64]:
        """Return what to multiply each request's time in prefill and decode by."""
        end_ns = np.inf if self.duration_seconds is None else at_ns + self.duration_seconds * 1e9
        return np.where((arrival_ns >= at_ns) & (arrival_ns < end_ns), self.factor, 1.0)


@dataclass(frozen=True, slots=True)
class FaultShares:
    """Shares of all requests, 0..1. `malformed` is divided evenly among its four kinds."""

    duplicates: float = 0.0
    malformed: float = 0.0
    late: float = 0.0
    skew: float = 0.0

    @property
    def total(self) -> float:
        """What the faults add up to; above 1 there would be no such replay."""
        return float(sum(getattr(self, field.name) for field in fields(self)))

    def draw(self, rng: np.random.Generator, may_be_late: NDArray[np.bool_], late_share: float) -> list[Sent]:
        """Return what to do with each request: its one fault, or `CLEAN`.

        `late_share` is the share among those that may be late. `DUPLICATE` says: send it, and once more.
        """
        kinds = (Sent.DUPLICATE, Sent.SKEWED, *MALFORMED, Sent.LATE, Sent.CLEAN)
        shares = (self.duplicates, self.skew, *(self.malformed / len(MALFORMED) for _ in MALFORMED), late_share)
        code = np.searchsorted(np.cumsum(shares), rng.random(len(may_be_late)), side="right")
        late, clean = kinds.index(Sent.LATE), kinds.index(Sent.CLEAN)
        code = np.where((code == late) & ~may_be_late, clean, code)
        return [kinds[c] for c in code.tolist()]


def unreadable_message(sent: Sent, good: bytes, rng: np.random.Generator) -> bytes:
    """Return a message that no reader of either encoding can take for OTLP.

    Garbage begins with 0xff, a byte no UTF-8 text has, in a protobuf tag of wire type 7, which does not exist. A
    truncated message is `good` cut short: its outermost length, or brace, promises more.
    """
    if sent is Sent.GARBAGE:
        return b"\xff\x07" + rng.bytes(int(rng.integers(20, 400)))
    return good[: int(rng.integers(3, len(good)))]


def parse_drift(text: str) -> Drift:
    """Read `FEATURE@TIME[:scale|shift,AMOUNT]`; TIME is `50%`, `30m` or an instant. Raises ValueError.

    >>> parse_drift("input_tokens@30m:shift,200").amount, parse_drift("prompt_entropy@50%").kind
    (200.0, 'scale')
    """
    match = _DRIFT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no drift; write FEATURE@TIME or FEATURE@TIME:scale,1.5 or FEATURE@TIME:shift,20")
    if match["feature"] not in DRIFT_FEATURES:
        raise ValueError(f"{match['feature']!r} can't drift; the features are {', '.join(DRIFT_FEATURES)}")
    at = parse_position(match["at"])
    if match["kind"] is None:
        return Drift(match["feature"], at)
    return Drift(match["feature"], at, match["kind"], float(match["amount"]))


def parse_slowdown(text: str) -> Slowdown:
    """Read `FACTOR@TIME[+DURATION]`. Raises ValueError.

    >>> parse_slowdown("3@50%+5m").duration_seconds
    300.0
    """
    match = _SLOWDOWN.fullmatch(text)
    if match is None or float(match["factor"]) <= 0:
        raise ValueError(f"{text!r} is no slow episode; write FACTOR@TIME or FACTOR@TIME+DURATION, as 3@50%+5m")
    duration = None if match["duration"] is None else parse_seconds(match["duration"])
    return Slowdown(float(match["factor"]), parse_position(match["at"]), duration)


def slowdown_factors(slowdowns: Sequence[tuple[Slowdown, int]], arrival_ns: Ints) -> NDArray[np.float64]:
    """Return the product of all `slowdowns`, each given with its place in nanoseconds."""
    product = np.ones(len(arrival_ns))
    for slowdown, at_ns in slowdowns:
        product *= slowdown.factors(arrival_ns, at_ns)
    return product
