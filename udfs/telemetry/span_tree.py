"""Which span of a message is a request, and which spans lie below it. All by whole arrays, O(n log n).

Only parents within the same message count; what may belong to spans of another message is for `open_spans.py` to say.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.telemetry.span_batch import Bools, Bytes, Ints, SpanBatch

NONE = -1


@dataclass(frozen=True, slots=True)
class SpanTree:
    """Per row: whether it `is_genai`; `request`, the row of the request it is or lies below (NONE without one);
    `nearest`, the row of the closest GenAI span above it (NONE without one); `root`, the row of the topmost span above
    it, itself without one."""

    is_genai: Bools
    request: Ints
    nearest: Ints
    root: Ints

    @property
    def is_request(self) -> Bools:
        """Rows that are requests: GenAI spans with no GenAI span above them."""
        own: Bools = self.request == np.arange(len(self.request))
        return own

    @property
    def children(self) -> Ints:
        """Rows that lie below a request, ascending."""
        rows: Ints = np.flatnonzero((self.request != NONE) & ~self.is_request)
        return rows

    def without(self, rows: Bools) -> "SpanTree":
        """Return the tree in which these rows, whole trees of them, are no requests and lie below none."""
        return replace(self, request=np.where(rows, NONE, self.request), nearest=np.where(rows, NONE, self.nearest))


def span_tree(batch: SpanBatch, is_genai: Bools) -> SpanTree:
    """Return the tree of every message of `batch`. Spans whose parents form a circle count as having no parent."""
    rows = np.arange(len(batch))
    own = np.where(is_genai, rows, NONE)
    parent = parent_rows(batch)
    if (parent == NONE).all():
        return SpanTree(is_genai, own, np.full(len(batch), NONE), rows)
    return SpanTree(is_genai, _topmost(parent, own), _nearest(parent, is_genai), _topmost(parent, rows))


def parent_rows(batch: SpanBatch) -> Ints:
    """Return the row of each span's parent in the same message and trace, or NONE; circles are cut."""
    parent = np.full(len(batch), NONE, dtype=np.int64)
    has_parent = np.flatnonzero(batch.has_parent)
    if len(has_parent) == 0:
        return parent
    as_numbers = batch.parent_id[has_parent].copy().view(np.int64).ravel()
    has_parent = has_parent[np.isin(as_numbers, batch.span_id.copy().view(np.int64).ravel())]
    if len(has_parent) == 0:
        return parent
    found = pc.index_in(_keys(batch, batch.parent_id, has_parent), value_set=_keys(batch, batch.span_id, None))
    parent[has_parent] = pc.fill_null(found, NONE).to_numpy(zero_copy_only=False)
    return _without_circles(parent)


def _keys(batch: SpanBatch, ids: Bytes, rows: Ints | None) -> pa.FixedSizeBinaryArray:
    """Return (message, trace, span) of each row as one binary value."""
    message = batch.message_index.reshape(-1, 1).view(np.uint8).reshape(len(batch), -1)
    joined = np.concatenate([message, batch.trace_id, ids], axis=1)
    if rows is not None:
        joined = joined[rows]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(joined.shape[1]), len(joined), [None, pa.py_buffer(joined)])


def _without_circles(parent: Ints) -> Ints:
    """Return `parent` with NONE for every row that never reaches a root."""
    jump = parent
    for _ in range(_doublings(len(parent))):
        jump = _follow(jump, jump)
        if (jump == NONE).all():
            return parent
    return np.where(jump == NONE, parent, NONE)


def _topmost(parent: Ints, own: Ints) -> Ints:
    """Return the highest wanted span at or above each row. `own` is the row itself if it is one, else NONE."""
    top, jump = own, parent
    for _ in range(_doublings(len(parent))):
        if (jump == NONE).all():
            break
        above = _follow(top, jump)
        top = np.where(above != NONE, above, top)
        jump = _follow(jump, jump)
    return top


def _nearest(parent: Ints, is_genai: Bools) -> Ints:
    """Return the closest GenAI span strictly above each row, or NONE."""
    hop = parent
    for _ in range(_doublings(len(parent))):
        passing = (hop != NONE) & ~is_genai[hop]
        if not passing.any():
            break
        hop = np.where(passing, _follow(hop, hop), hop)
    return np.where((hop != NONE) & is_genai[hop], hop, NONE)


def _follow(values: Ints, at: Ints) -> Ints:
    """Return `values[at]`, NONE where `at` is NONE."""
    return np.where(at == NONE, NONE, values[at])


def _doublings(rows: int) -> int:
    return max(rows, 1).bit_length() + 1
