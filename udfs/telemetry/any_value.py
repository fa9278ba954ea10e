"""OTLP's AnyValue as JSON, to Python: 64-bit integers come as texts and as numbers, lists may be absent or null."""

import base64
import binascii
import math
import re
from typing import Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
EXACT_FLOAT = 2.0**53  # beyond it a float no longer says which integer was meant
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

# As protobuf's JSON mapping writes numbers in text: no blanks, no underscores, no hex.
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_MAX_DIGITS = 400

MAX_NESTING = 64  # lists and maps nested deeper are given as None

AnyPython = None | str | bool | int | float | bytes | list[Any] | dict[str, Any]


def any_value(value: object) -> AnyPython:
    """Return what an AnyValue in OTLP/JSON holds; None where it is empty, null or of no known kind.

    A member whose content contradicts its kind (`{"intValue": "x"}`) gives None as well. Never raises on what a JSON
    parser returns. Source: opentelemetry-proto, docs/specification.md, JSON Protobuf Encoding.

    >>> any_value({"intValue": "25"}), any_value({"intValue": 5893}), any_value({"arrayValue": {}}), any_value({})
    (25, 5893, [], None)
    """
    return _any_value(value, MAX_NESTING)


def _any_value(value: object, nesting: int) -> AnyPython:
    if not isinstance(value, dict):
        return None
    for member, read in _SCALARS.items():
        if (content := value.get(member)) is not None:
            return read(content)
    if nesting == 0:
        return None
    if (content := value.get("arrayValue")) is not None:
        values = _values(content)
        return None if values is None else [_any_value(item, nesting - 1) for item in values]
    if (content := value.get("kvlistValue")) is not None and (pairs := _values(content)) is not None:
        return {str(p.get("key", "")): _any_value(p.get("value"), nesting - 1) for p in pairs if isinstance(p, dict)}
    return None


def _values(content: object) -> list[Any] | None:
    """Return the `values` of an ArrayValue or KeyValueList, absent or null ones as none; None if it is neither."""
    if not isinstance(content, dict):
        return None
    values = content.get("values")
    return [] if values is None else values if isinstance(values, list) else None


def integer(value: object) -> int | None:
    """Return a 64-bit integer written as a number or as text, else None. A whole float counts while it is exact.

    >>> integer("25"), integer(25), integer(25.0), integer(25.5), integer(2**63), integer(True)
    (25, 25, 25, None, None, None)
    """
    if type(value) is str:
        whole = len(value) <= _MAX_DIGITS and _INTEGER.fullmatch(value) is not None
    elif type(value) is float:
        whole = value.is_integer() and abs(value) <= EXACT_FLOAT
    else:
        whole = type(value) is int
    if not whole:
        return None
    number = int(value)  # type: ignore[call-overload]  # one of the three by now
    return number if INT64_MIN <= number <= INT64_MAX else None


def real(value: object) -> float | None:
    """Return a double written as a number, as text, or as `NaN`, `Infinity`, `-Infinity`; else None.

    >>> real(0), real("0.25"), real("-Infinity"), real("fast")
    (0.0, 0.25, -inf, None)
    """
    if type(value) is float:
        return value
    if type(value) is int:
        return float(value) if abs(value) <= 2**64 else None
    if type(value) is not str:
        return None
    if value in NON_FINITE:
        return NON_FINITE[value]
    return float(value) if len(value) <= _MAX_DIGITS and _NUMBER.fullmatch(value) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _bytes(value: object) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


_SCALARS = {
    "stringValue": _text,
    "intValue": integer,
    "doubleValue": real,
    "boolValue": _flag,
    "bytesValue": _bytes,
}
