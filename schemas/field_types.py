"""The types a field of a record may have, each with its name in every engine."""

from enum import Enum
from typing import Any, NamedTuple

import pyarrow as pa

MAX_ATTRIBUTES = 64
MAX_EMBEDDING_LENGTH = 4096  # above the widest text embedding in common use, of 3,072 numbers


class _Engines(NamedTuple):
    arrow: pa.DataType
    flink: str
    spark: str
    json: dict[str, Any]


_JSON_DOUBLE = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_JSON_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}


class FieldType(Enum):
    """The types a field may have, each with its name in every engine."""

    STRING = _Engines(pa.string(), "STRING", "STRING", {"type": "string"})
    INT64 = _Engines(pa.int64(), "BIGINT", "BIGINT", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1})
    FLOAT64 = _Engines(pa.float64(), "DOUBLE", "DOUBLE", _JSON_DOUBLE)
    BOOL = _Engines(pa.bool_(), "BOOLEAN", "BOOLEAN", {"type": "boolean"})
    DOUBLE_MAP = _Engines(
        pa.map_(pa.string(), pa.float64()),
        "MAP<STRING, DOUBLE>",
        "MAP<STRING, DOUBLE>",
        {"type": "object", "additionalProperties": _JSON_DOUBLE, "maxProperties": MAX_ATTRIBUTES},
    )
    DOUBLE_ARRAY = _Engines(
        pa.list_(pa.float64()),
        "ARRAY<DOUBLE>",
        "ARRAY<DOUBLE>",
        {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": MAX_EMBEDDING_LENGTH},
    )
    FINITE_ARRAY = _Engines(
        pa.list_(pa.float64()), "ARRAY<DOUBLE>", "ARRAY<DOUBLE>", {"type": "array", "items": {"type": "number"}}
    )
    COUNT_ARRAY = _Engines(
        pa.list_(pa.int64()), "ARRAY<BIGINT>", "ARRAY<BIGINT>", {"type": "array", "items": _JSON_COUNT}
    )
    STRING_ARRAY = _Engines(
        pa.list_(pa.string()), "ARRAY<STRING>", "ARRAY<STRING>", {"type": "array", "items": {"type": "string"}}
    )
    STRING_MAP = _Engines(
        pa.map_(pa.string(), pa.string()),
        "MAP<STRING, STRING>",
        "MAP<STRING, STRING>",
        {"type": "object", "additionalProperties": {"type": "string"}},
    )
    FINITE = _Engines(pa.float64(), "DOUBLE", "DOUBLE", {"type": "number"})
