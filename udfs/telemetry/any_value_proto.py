"""Serialised OTLP lists and maps of any content to Python, as `any_value.py` gives them of JSON."""

from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import ArrayValue, KeyValueList

from udfs.telemetry.any_value import MAX_NESTING, AnyPython


def array_value(data: bytes) -> list[AnyPython] | None:
    """Return the values of a serialised ArrayValue, None where it is none (protobuf's parser stops at depth 100).

    >>> array_value(b"\\x0a\\x04\\x0a\\x02hi"), array_value(b"\\xff")
    (['hi'], None)
    """
    try:
        return [_python(value, MAX_NESTING) for value in ArrayValue.FromString(data).values]
    except DecodeError:
        return None


def key_value_list(data: bytes) -> dict[str, AnyPython] | None:
    """Return the entries of a serialised KeyValueList, None where it is none."""
    try:
        return {pair.key: _python(pair.value, MAX_NESTING) for pair in KeyValueList.FromString(data).values}
    except DecodeError:
        return None


def _python(value: Any, nesting: int) -> AnyPython:
    kind = value.WhichOneof("value")
    if kind is None or nesting == 0:
        return None
    if kind == "array_value":
        return [_python(each, nesting - 1) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _python(pair.value, nesting - 1) for pair in value.kvlist_value.values}
    content: AnyPython = getattr(value, kind)
    return content
