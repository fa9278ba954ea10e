"""Indicators: what one slice of requests says of a service level, as a tally that adds up.

- `Ratio`: good among all events that a condition chooses (errors, refusals, hallucinations, latency under a limit). Of
  sampled events each counts for 1 / chance of being sampled (Horvitz & Thompson 1952): so slices and series that were
  sampled at different rates add up to what all of their events would have given.
- `Quantile`: the distribution of a field (time to first token of streamed calls), as a log sketch.
- `Throughput`: events a second. A request is one record whatever its attempts, so retries count once.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.judge_report import QUALIFYING_F1
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches import both_histograms
from udfs.sketches.both_histograms import BothHistograms
from udfs.sketches.log import LogSketch
from udfs.slo.conditions import Columns, Condition, all_of

RELATIVE_ACCURACY = 0.01
# What an event that stands for itself alone counts among sampled ones: weights are whole millionths, and sums exact.
SAMPLED_UNIT = 1_000_000
LEAST_CHANCE = 1e-6  # a chance below it is none: sums of weights must stay within 64 bits


@dataclass(frozen=True, slots=True)
class Tally:
    """What a slice holds: good events, all events, those about which the indicator is unknown, and a sketch or none.

    `n_unqualified` are events judged by a judge that has not shown what it must (spec S1). Where events were sampled,
    good and total are estimates in `SAMPLED_UNIT`s, and `n_sampled` is how many events they are estimated from.
    """

    good: int = 0
    total: int = 0
    n_null: int = 0
    n_unqualified: int = 0
    sketch: bytes = b""
    n_sampled: int = 0

    @property
    def n(self) -> int:
        """How many events were really seen: what a minimum of events is about."""
        return self.n_sampled or self.total

    def plus(self, other: "Tally") -> "Tally":
        """Return both together.

        >>> Tally(1, 2).plus(Tally(3, 4, n_null=1))
        Tally(good=4, total=6, n_null=1, n_unqualified=0, sketch=b'', n_sampled=0)
        """
        sketch = self.sketch or other.sketch
        if self.sketch and other.sketch:
            sketch = _merged(self.sketch, other.sketch)
        return Tally(
            self.good + other.good,
            self.total + other.total,
            self.n_null + other.n_null,
            self.n_unqualified + other.n_unqualified,
            sketch,
            self.n_sampled + other.n_sampled,
        )

    def to_bytes(self) -> bytes:
        """Return 40 bytes and the sketch."""
        return _TALLY.pack(self.good, self.total, self.n_null, self.n_unqualified, self.n_sampled) + self.sketch

    @classmethod
    def from_bytes(cls, data: bytes, version: int = 2) -> "Tally":
        """Read it again. Version 1 knew of no sampled events. Raises struct.error on fewer bytes.

        >>> Tally.from_bytes(Tally(1, 2, 3).to_bytes()) == Tally(1, 2, 3)
        True
        """
        layout = _TALLY if version > 1 else _TALLY_1
        good, total, n_null, n_unqualified, *sampled = layout.unpack_from(data)
        return cls(good, total, n_null, n_unqualified, bytes(data[layout.size :]), *sampled)


def _merged(one: bytes, other: bytes) -> bytes:
    """Two sketches of one sort, told by their tag."""
    if one[1:4] == both_histograms.TAG:
        return BothHistograms.from_bytes(one).merge(BothHistograms.from_bytes(other)).to_bytes()
    return LogSketch.merge_all([one, other], RELATIVE_ACCURACY).to_bytes()


_TALLY, _TALLY_1 = struct.Struct("<5q"), struct.Struct("<4q")
NOTHING = Tally()


class Indicator(Protocol):
    """Takes tallies of slices. It must pickle."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The fields to collect."""
        ...

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return the tally of `n` requests. O(n)."""
        ...


@dataclass(frozen=True)
class Ratio:
    """Events that fulfil `total`, and among them those that fulfil `part`: the good ones, or the bad ones.

    An event of which `part` is unknown counts for neither: it is in `n_null`. Where `judge_f1` names the field with the
    F1 that the event's judge showed, events of a judge below `QUALIFYING_F1`, or of one that showed none, are in
    `n_unqualified` and count for neither. Where `chance` names the field with an event's chance of being sampled, each
    counts for 1 / chance, and one whose chance is not in `LEAST_CHANCE` to 1 is unknown.
    """

    total: tuple[Condition, ...]
    part: tuple[Condition, ...]
    part_is_good: bool = True
    judge_f1: str | None = None
    chance: str | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The fields of all conditions, the judge's, and the chance of being sampled."""
        found = [given for condition in (*self.total, *self.part) for given in condition.inputs]
        more = [Input(name, InputKind.NUMBER) for name in (self.judge_f1, self.chance) if name is not None]
        return _distinct([*found, *more])

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return how many were good, and how many there were."""
        chosen = all_of(self.total, columns, n).holds
        n_unqualified = 0
        if self.judge_f1 is not None:
            with np.errstate(invalid="ignore"):
                f1 = np.asarray(columns[Input(self.judge_f1, InputKind.NUMBER)], dtype=np.float64)
                qualified = f1 >= QUALIFYING_F1
            n_unqualified = int((chosen & ~qualified).sum())
            chosen &= qualified
        part = all_of(self.part, columns, n)
        counted = chosen & part.known
        if self.chance is not None:
            chance = np.asarray(columns[Input(self.chance, InputKind.NUMBER)], dtype=np.float64)
            with np.errstate(invalid="ignore"):
                counted &= (chance >= LEAST_CHANCE) & (chance <= 1.0)
        n_counted = int(counted.sum())
        if self.chance is None:
            total, in_part = n_counted, int((counted & part.holds).sum())
        else:
            total, in_part = (_estimate(chance[of]) for of in (counted, counted & part.holds))
        good = in_part if self.part_is_good else total - in_part
        n_sampled = 0 if self.chance is None else n_counted
        return Tally(good, total, int(chosen.sum()) - n_counted, n_unqualified, n_sampled=n_sampled)


@dataclass(frozen=True)
class Quantile:
    """The distribution of `field` among events that fulfil `where`."""

    field: str
    q: float
    where: tuple[Condition, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, and those of the conditions."""
        own = Input(self.field, InputKind.NUMBER)
        return _distinct([own, *(given for condition in self.where for given in condition.inputs)])

    @property
    def name(self) -> str:
        """Such as `p95`."""
        return quantile_name(self.q)

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return the sketch; `good` is 0."""
        chosen = all_of(self.where, columns, n).holds
        values = np.asarray(columns[self.inputs[0]], dtype=np.float64)[chosen]
        sketch = LogSketch.from_values(values, RELATIVE_ACCURACY)
        return Tally(0, sketch.n, sketch.n_null, sketch=sketch.to_bytes())


@dataclass(frozen=True)
class Throughput:
    """Events that fulfil `where`, to be divided by the window's seconds."""

    where: tuple[Condition, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The fields of the conditions; with none, the instant, so that there is something to count."""
        found = _distinct(given for condition in self.where for given in condition.inputs)
        return found or (Input("event_time_ms", InputKind.NUMBER),)

    def tally(self, columns: Columns, n: int) -> Tally:
        """Return how many there are."""
        answer = all_of(self.where, columns, n)
        return Tally(0, int(answer.holds.sum()), int((~answer.known).sum()))


def tallies(indicators: Sequence[Indicator], inputs: Sequence[Input], columns: Sequence[Values]) -> list[Tally]:
    """Return one tally an indicator, of `columns` collected as `inputs`. O(n) each."""
    by_input = dict(zip(inputs, columns, strict=True))
    n = len(columns[0]) if columns else 0
    return [indicator.tally(by_input, n) for indicator in indicators]


def quantile_name(q: float) -> str:
    """Return how a quantile is called.

    >>> quantile_name(0.95), quantile_name(0.999)
    ('p95', 'p99.9')
    """
    return f"p{round(100.0 * q, 9):g}"


def _estimate(chances: NDArray[np.float64]) -> int:
    """How many events those chosen with these chances stand for, in `SAMPLED_UNIT`s."""
    return int(np.rint(SAMPLED_UNIT / chances).astype(np.int64).sum())


def _distinct(inputs: Iterable[Input]) -> tuple[Input, ...]:
    return tuple(dict.fromkeys(inputs))
