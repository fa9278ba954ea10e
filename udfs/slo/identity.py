"""What a configuration is, as JSON that stays the same when a later version adds fields with defaults."""

from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

import orjson


def identity(value: Any) -> bytes:
    """Return canonical JSON of nested dataclasses, tuples and plain values: kinds, and fields that aren't the default.

    >>> from udfs.slo.conditions import TextIs
    >>> identity((TextIs("is_error", ("true",)), None, 1))
    b'[["TextIs",{"field":"is_error","values":["true"]}],null,1]'
    """
    return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        given = {one.name: getattr(value, one.name) for one in fields(value)}
        return [
            type(value).__name__,
            {one.name: _plain(given[one.name]) for one in fields(value) if given[one.name] != _default(one)},
        ]
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _default(one: "Field[Any]") -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return one.default
