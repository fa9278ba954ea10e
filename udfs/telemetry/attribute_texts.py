"""Attributes as labels: every value as a text, the same from both encodings."""

import base64
from collections.abc import Iterable
from typing import Any

import orjson

from udfs.telemetry.any_value import AnyPython, any_value
from udfs.telemetry.otlp_json_shapes import reject


def texts_from_json(pairs: list[Any]) -> dict[str, str]:
    """Return the labels of a list of KeyValue in OTLP/JSON; raises UnusableError on one that is no object.

    >>> texts_from_json([{"key": "n", "value": {"intValue": "25"}}, {"key": "on", "value": {"boolValue": False}}])
    {'n': '25', 'on': 'false'}
    """
    found = {}
    for pair in pairs:
        if pair is None:
            continue
        if type(pair) is not dict:
            reject("an attribute is no object")
        key = pair.get("key")
        if key is not None and type(key) is not str:
            reject("an attribute's key is no text")
        found[key or ""] = label_text(any_value(pair.get("value")))
    return found


def texts_from_proto(pairs: Iterable[Any]) -> dict[str, str]:
    """Return the labels of protobuf KeyValues."""
    return {pair.key: label_text(value_from_proto(pair.value)) for pair in pairs}


def value_from_proto(value: Any) -> AnyPython:
    """Return what a protobuf AnyValue holds, as `any_value` does. The parser bounds how deep it nests."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_from_proto(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: value_from_proto(pair.value) for pair in value.kvlist_value.values}
    found: AnyPython = getattr(value, kind)
    return found


def label_text(value: AnyPython) -> str:
    """Return a value as one text: texts as they are, lists and maps as JSON, bytes as base64, nothing as "".

    >>> label_text("a"), label_text(True), label_text(7), label_text(0.5), label_text([1, "b"]), label_text(None)
    ('a', 'true', '7', '0.5', '[1,"b"]', '')
    """
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value, default=_base64).decode()


def _base64(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError
