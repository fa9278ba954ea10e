"""Decoded spans as columns, before anyone asks what their attributes mean. Both encodings end here.

Attributes stay in long form, one row an attribute, so that picking a field is one numpy selection for a whole batch.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from udfs.telemetry.span_texts import TextValue

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8


def is_zero(ids: Bytes) -> Bools:
    """Return which of the ids, uint8 (n, 8 or 16), are all zero. As words: many times faster than `any` over bytes."""
    words = ids.view(np.int64)
    zero: Bools = words[:, 0] == 0
    return zero if words.shape[1] == 1 else zero & (words[:, 1] == 0)


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of many owners (spans or resources) in long form; all columns have one length.

    `owner` is ascending: wire order is kept, owner by owner. `key_code` is an index into `keys`, whose entries are
    distinct. At most one of `text`, `flag`, `integer` and `real` is not null in a row. `is_other` marks values of
    another kind (lists, maps, bytes) and values that contradict their own kind; an empty value is none of these.
    `list_rows`, ascending, are the rows that hold a list under one of schemas.semconv.LIST_KEYS, and `list_texts` each
    one's first text; `vector_rows`, ascending, those that hold a list under one of VECTOR_KEYS, and `vectors`
    (list<float64>) their numbers, null where the list is no embedding.
    """

    owner: Ints
    key_code: Ints
    keys: list[str]
    text: pa.Array
    flag: pa.Array
    integer: pa.Array
    real: pa.Array
    list_rows: Ints
    list_texts: pa.Array
    vector_rows: Ints
    vectors: pa.Array
    is_other: Bools

    def __len__(self) -> int:
        return len(self.owner)


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """Spans with usable ids and times, in wire order; n rows.

    `trace_id` is uint8 (n, 16), `span_id` and `parent_id` uint8 (n, 8), a parent of zeros meaning none. Times are
    int64 nanoseconds since 1970. `kind` and `status` are OTLP's numbers. `attributes.owner` is the row; `resource` is
    the row's owner in `resource_attributes`. `lenient` counts what only a lenient reader accepts. `texts` are the
    attributes that hold prompts and responses, of a reader that was asked for them; their owner is the row.
    """

    message_index: Ints
    span_index: Ints
    trace_id: Bytes
    span_id: Bytes
    parent_id: Bytes
    name: pa.Array
    kind: Ints
    status: Ints
    start_ns: Ints
    end_ns: Ints
    attributes: Attributes
    resource: Ints
    resource_attributes: Attributes
    resource_count: int
    lenient: dict[str, int]
    texts: list[TextValue] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.message_index)

    @property
    def has_parent(self) -> Bools:
        """Rows that name a parent."""
        return ~is_zero(self.parent_id)
