"""JSON as it is meant: no name twice in one object, no NaN, no infinity, no number beyond a double."""

import json
import math
from typing import Any


def loads_strictly(text: bytes | str) -> Any:
    """Return the document in `text`. Raises ValueError saying what is wrong.

    >>> loads_strictly(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> loads_strictly('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the name 'a' stands twice in one object
    """
    return json.loads(
        text, object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
    )


def _object_without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A name given twice would lose one of its values without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond a double")
    return number
