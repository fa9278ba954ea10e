"""The headers of requests as parts of their lines: `numbers_v1` in hex, of one length, and `labels_v1` as it is.

A line is a text, and the JVM makes bytes of hex (`UNHEX`); schemas.request_headers has the format.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.request_headers import LABELS, NUMBERS, NUMBERS_BYTES
from schemas.requests import request_fields
from udfs.telemetry.request_lines import ENCODERS

NUMBERS_LENGTH = 2 * NUMBERS_BYTES


def number_texts(requests: pa.Table) -> pa.StringArray:
    """Return for each request its numbers in hex, `NUMBERS_LENGTH` digits. O(requests)."""
    columns = [requests.column(name).to_numpy().astype("<f8", copy=False) for name in NUMBERS]  # null becomes NaN
    digits = np.column_stack(columns).tobytes().hex()
    ends = np.arange(requests.num_rows + 1, dtype=np.int64) * NUMBERS_LENGTH
    texts = pa.LargeStringArray.from_buffers(requests.num_rows, pa.py_buffer(ends), pa.py_buffer(digits.encode()))
    return texts.cast(pa.string())


def label_texts(requests: pa.Table) -> pa.StringArray:
    """Return for each request its labels, a JSON array. O(total length)."""
    parts: list[pa.Array | str] = []
    for field in request_fields(LABELS):
        values = requests.column(field.name).combine_chunks()
        parts.append(pc.fill_null(ENCODERS[field.type](values), "null"))
    return pc.binary_join_element_wise("[", pc.binary_join_element_wise(*parts, ","), "]", "")
