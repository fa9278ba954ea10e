"""Spans ready to be encoded: a block's requests and, where asked for, their phases, with ids and absolute times."""

from dataclasses import dataclass

import numpy as np

from infra.replay.request_block import Ints, RequestBlock
from infra.replay.span_attributes import CHILD_SPANS, KIND_INTERNAL, KIND_SERVER, SPAN_NAME

TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8


@dataclass(slots=True)
class SpanColumns:
    """n spans of one name and kind. Ids are raw bytes, an empty parent is none; times are uint64 ns since 1970."""

    name: str
    kind: int
    trace_id: list[bytes]
    span_id: list[bytes]
    parent_id: list[bytes]
    start_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.trace_id)


def request_spans(block: RequestBlock, epoch_ns: int, ids: np.random.Generator) -> SpanColumns:
    """Return one root span a request; `epoch_ns` is the replay's begin, nanoseconds since 1970."""
    n = len(block)
    trace_id, span_id = _draw(ids, n, TRACE_ID_BYTES), _draw(ids, n, SPAN_ID_BYTES)
    start_ns, end_ns = block.start_ns + epoch_ns, block.end_ns + epoch_ns
    return SpanColumns(SPAN_NAME, KIND_SERVER, trace_id, span_id, [b""] * n, start_ns, end_ns)


def child_spans(requests: SpanColumns, block: RequestBlock, ids: np.random.Generator) -> list[SpanColumns]:
    """Return the phases below each request, one column set a phase, following each other up to the request's end."""
    n = len(requests)
    prefill_ns, decode_ns = (np.rint(block.fields[f"{name}_seconds"] * 1e9).astype(np.int64) for name in CHILD_SPANS)
    first_token_ns = np.maximum(requests.end_ns - decode_ns, requests.start_ns)
    times = [(np.maximum(first_token_ns - prefill_ns, requests.start_ns), first_token_ns)]
    times.append((first_token_ns, requests.end_ns))
    return [
        SpanColumns(name, KIND_INTERNAL, requests.trace_id, _draw(ids, n, SPAN_ID_BYTES), requests.span_id, *span_times)
        for name, span_times in zip(CHILD_SPANS, times, strict=True)
    ]


def _draw(ids: np.random.Generator, n: int, size: int) -> list[bytes]:
    raw = ids.bytes(n * size)
    return [raw[i : i + size] for i in range(0, n * size, size)]
