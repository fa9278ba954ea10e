"""Fields of many requests as columns: what a judge's `Input` names, taken out of parsed JSON.

A value of another kind than asked for is null: one field that is wrong must not cost the request its others.
"""

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udfs.judging.window_judge import Input, InputKind, Values
from udfs.slicing.body import Body

ATTRIBUTE = "attributes."
# A text made here: the names of a request's attributes, of one request in so many; null of the others.
ATTRIBUTE_NAMES = "*attribute_names"
ATTRIBUTE_NAMES_ONE_IN = 64
_SEPARATOR = "\x1f"
_PLAIN_NUMBERS = {int, float, type(None)}
_NAMED_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

Bodies = Sequence[Body]


def field_of(name: str) -> str:
    """Return the request's field that holds `name`: itself, or the map before the first dot (`attributes.NAME`)."""
    return "attributes" if name == ATTRIBUTE_NAMES else name.partition(".")[0]


def column(bodies: Bodies, given: Input) -> Values:
    """Return one value a request, as `InputKind` says: float64 with NaN for null, or a list with None.

    >>> from udfs.slicing.body import decoder
    >>> decode = decoder(("input_tokens",)).decode
    >>> bodies = [decode(b'{"event_time_ms": 1, "input_tokens": %s}' % value) for value in (b"7", b'"seven"', b"true")]
    >>> column(bodies, Input("input_tokens", InputKind.NUMBER)).tolist()
    [7.0, nan, nan]
    >>> column(bodies, Input("input_tokens", InputKind.TEXT))
    ['7', 'seven', 'true']
    """
    values = raw_values(bodies, given.field)
    if given.kind is InputKind.NUMBER:
        return numbers(values)
    return [text(value) if given.kind is InputKind.TEXT else vector(value) for value in values]


def raw_values(bodies: Bodies, field: str) -> list[Any]:
    """Return the field's values as JSON has them; `attributes.NAME`, `labels.NAME` are looked up in their map."""
    values = list(map(attrgetter(field_of(field)), bodies))
    if field == ATTRIBUTE_NAMES:
        return [_names(body, found) for body, found in zip(bodies, values, strict=True)]
    _, is_in_map, name = field.partition(".")
    if not is_in_map:
        return values
    return [found.get(name) if isinstance(found, dict) else None for found in values]


def _names(body: Body, attributes: Any) -> str | None:
    """Chosen by the event time's milliseconds, so that a replay chooses alike."""
    if body.event_time_ms % ATTRIBUTE_NAMES_ONE_IN or not isinstance(attributes, dict):
        return None
    return _SEPARATOR.join(attributes)


def numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    """Return float64 of JSON values: numbers and the texts NaN, Infinity, -Infinity; all else is NaN."""
    if set(map(type, values)) <= _PLAIN_NUMBERS:
        try:
            return np.array(values, dtype=np.float64)  # None becomes NaN
        except OverflowError:  # an integer that float64 can't hold
            pass
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    if isinstance(value, str):
        return _NAMED_NUMBERS.get(value, math.nan)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def text(value: Any) -> str | None:
    """Return a text as it is, true and false by name, numbers as JSON has them, and None for all else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def vector(value: Any) -> NDArray[np.float64] | None:
    """Return a list of numbers as float64; None for all else."""
    if not isinstance(value, list) or not value or not {type(entry) for entry in value} <= {int, float}:
        return None
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:
        return None
