"""Lists of numbers in OTLP, as embeddings: finite numbers, at least one and at most MAX_EMBEDDING_LENGTH of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import ArrayValue

from schemas.field_types import MAX_EMBEDDING_LENGTH, FieldType
from udfs.telemetry.any_value import integer, real

Vector = npt.NDArray[np.float64]

# An ArrayValue of doubles alone repeats: field 1, 9 bytes long; in it field 4 as 8 bytes, little-endian.
_DOUBLE_ENTRY = np.frombuffer(b"\x0a\x09\x21", dtype=np.uint8)
_ENTRY_BYTES = len(_DOUBLE_ENTRY) + 8


def embeddings(vectors: Sequence[Vector | None]) -> pa.ListArray:
    """Return the vectors as list<float64>, null where there is none or it is no embedding. O(numbers).

    >>> embeddings([np.array([0.0, 1.0]), np.array([np.nan]), np.array([]), None]).to_pylist()
    [[0.0, 1.0], None, None, None]
    """
    usable = [
        v if v is not None and 0 < len(v) <= MAX_EMBEDDING_LENGTH and np.isfinite(v).all() else None for v in vectors
    ]
    lengths = [0 if vector is None else len(vector) for vector in usable]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    flat = [vector for vector in usable if vector is not None]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32(), mask=np.array([*(vector is None for vector in usable), False])),
        pa.array(np.concatenate(flat) if flat else [], FieldType.DOUBLE_ARRAY.value.arrow.value_type),
    )


def vector_from_proto(array_value: bytes) -> Vector | None:
    """Return the numbers of a serialised ArrayValue; None if it holds anything else. Doubles alone are read at once.

    >>> from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    >>> vector_from_proto(ArrayValue(values=[AnyValue(double_value=0.5), AnyValue(int_value=2)]).SerializeToString())
    array([0.5, 2. ])
    """
    data = np.frombuffer(array_value, dtype=np.uint8)
    if len(data) % _ENTRY_BYTES == 0:
        entries = data.reshape(-1, _ENTRY_BYTES)
        if (entries[:, : len(_DOUBLE_ENTRY)] == _DOUBLE_ENTRY).all():
            return entries[:, len(_DOUBLE_ENTRY) :].copy().view("<f8").ravel()
    try:
        values: Any = ArrayValue.FromString(array_value).values
    except DecodeError:
        return None
    if len(values) > MAX_EMBEDDING_LENGTH:
        return None
    kinds = [value.WhichOneof("value") for value in values]
    if not set(kinds) <= {"double_value", "int_value"}:
        return None
    return np.array([getattr(value, kind) for value, kind in zip(values, kinds, strict=True)], dtype=np.float64)


def vector_from_json(array_value: object) -> Vector | None:
    """Return the numbers of an `arrayValue` in OTLP/JSON; None if it holds anything else.

    >>> vector_from_json({"values": [{"doubleValue": 0.5}, {"intValue": "2"}]})
    array([0.5, 2. ])
    """
    values = array_value.get("values") if isinstance(array_value, dict) else None
    if not isinstance(values, list) or len(values) > MAX_EMBEDDING_LENGTH:
        return None
    read = [_number(value) for value in values]
    return None if None in read else np.array(read, dtype=np.float64)


def _number(value: object) -> float | None:
    if not isinstance(value, dict):
        return None
    if (content := value.get("doubleValue")) is not None:
        return real(content)
    if (content := value.get("intValue")) is not None:
        whole = integer(content)
        return None if whole is None else float(whole)
    return None
