"""Conditions on requests: a field against a value, an instant answer for a whole column.

A condition is known or not for each request: a field that is null, or of another kind, says nothing, and then neither
does the condition.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from udfs.judging.window_judge import Input, InputKind, Values
from udfs.slo.adaptive_latency import AdaptiveLatency

Flags = NDArray[np.bool_]
Columns = Mapping[Input, Values]
NUMBER_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
TEXT_OPERATORS = ("eq", "ne", "in", "not_in")


class Answer(NamedTuple):
    """Where a condition holds, and where it is known; it holds only where it is known."""

    holds: Flags
    known: Flags


class Condition(Protocol):
    """Something that holds of a request or doesn't. It must pickle."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The fields it looks at."""
        ...

    def of(self, columns: Columns) -> Answer:
        """Return the answer for every request. O(n)."""
        ...


@dataclass(frozen=True)
class NumberIs:
    """A numeric field against a number. `op` is one of `NUMBER_OPERATORS`."""

    field: str
    op: str
    value: float

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def of(self, columns: Columns) -> Answer:
        """Known where the field is a number.

        >>> wanted = Input("end_to_end_seconds", InputKind.NUMBER)
        >>> answer = NumberIs("end_to_end_seconds", "lt", 0.8).of({wanted: np.array([0.5, 0.9, np.nan])})
        >>> answer.holds.tolist(), answer.known.tolist()
        ([True, False, False], [True, True, False])
        """
        values = np.asarray(columns[self.inputs[0]], dtype=np.float64)
        known = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            return Answer(NUMBER_OPERATORS[self.op](values, self.value) & known, known)


@dataclass(frozen=True)
class TextIs:
    """A text field, or one of true and false, among `values`; with `among` False, not among them."""

    field: str
    values: tuple[str, ...]
    among: bool = True

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a text: true and false by name."""
        return (Input(self.field, InputKind.TEXT),)

    def of(self, columns: Columns) -> Answer:
        """Known where the field is there.

        >>> wanted = Input("is_error", InputKind.TEXT)
        >>> TextIs("is_error", ("false",)).of({wanted: ["false", "true", None]}).holds.tolist()
        [True, False, False]
        """
        found = list(columns[self.inputs[0]])
        known = np.array([value is not None for value in found], dtype=bool)
        wanted = frozenset(self.values)
        inside = np.array([value in wanted for value in found], dtype=bool)
        return Answer((inside if self.among else ~inside) & known, known)


@dataclass(frozen=True)
class WithinAdaptiveLatency:
    """A latency within the limit that prompt and cache allow it (`udfs.slo.adaptive_latency`)."""

    limit: AdaptiveLatency = field(default_factory=AdaptiveLatency)
    latency_seconds: str = "end_to_end_seconds"
    prompt_tokens: str = "input_tokens"
    hit_ratio: str = "kv_cache_hit_ratio"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Latency, tokens and hit ratio, as numbers."""
        names = (self.latency_seconds, self.prompt_tokens, self.hit_ratio)
        return tuple(Input(name, InputKind.NUMBER) for name in names)

    def of(self, columns: Columns) -> Answer:
        """Known where there is a latency of at least 0, and a limit."""
        latency, tokens, ratio = (np.asarray(columns[given], dtype=np.float64) for given in self.inputs)
        limits = self.limit.limits_ms(tokens, ratio)
        with np.errstate(invalid="ignore"):
            known = (latency >= 0) & ~np.isnan(limits)
            return Answer((latency * 1000.0 <= limits) & known, known)


def all_of(conditions: Sequence[Condition], columns: Columns, n: int) -> Answer:
    """Return where all of them hold; known where all are, or where one is known not to hold. O(n conditions)."""
    holds, known, fails = np.ones(n, dtype=bool), np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for condition in conditions:
        answer = condition.of(columns)
        holds &= answer.holds
        known &= answer.known
        fails |= answer.known & ~answer.holds
    return Answer(holds, known | fails)
