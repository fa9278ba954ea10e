"""Which spans of a message must wait for others of their trace, because what is missing may come in another message.

docs/requests.md, "What waits", gives the rule in words and says why.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.semconv import PHASE_SPANS, SERVER_SIDE_FIELDS
from udfs.telemetry.arrow_numpy import valid
from udfs.telemetry.span_batch import Bools, SpanBatch
from udfs.telemetry.span_tree import NONE, SpanTree

SERVER = 2  # SPAN_KIND_SERVER


def open_spans(batch: SpanBatch, tree: SpanTree, fields: dict[str, pa.Array]) -> Bools:
    """Return which rows wait: all of a tree (spans linked by parents in their message) in which something is open.

    `fields` are the spans' own, before anything is filled from below. Whole arrays, O(n).
    """
    is_open = batch.has_parent & (tree.root == np.arange(len(batch)))
    is_open |= _server_side_elsewhere(batch, tree)
    is_open |= tree.is_request & ~_server_side_here(batch, tree, fields)
    held = np.zeros(len(batch), dtype=np.bool_)
    held[tree.root[is_open]] = True
    waits: Bools = held[tree.root]
    return waits


def _server_side_elsewhere(batch: SpanBatch, tree: SpanTree) -> Bools:
    """GenAI spans that call and have no GenAI span beneath: the span of what they call may come yet."""
    caller: Bools = tree.is_genai & (batch.kind != SERVER)
    caller[tree.nearest[tree.is_genai & (tree.nearest != NONE)]] = False
    return caller


def _server_side_here(batch: SpanBatch, tree: SpanTree, fields: dict[str, pa.Array]) -> Bools:
    """Requests of which they or a span below them say what only the serving side knows."""
    telling = np.zeros(len(batch), dtype=np.bool_)
    for name in SERVER_SIDE_FIELDS & fields.keys():
        telling |= valid(fields[name])
    children = tree.children
    if len(children):
        names = batch.name.take(pa.array(children))
        telling[children] |= pc.is_in(names, value_set=pa.array(list(PHASE_SPANS))).to_numpy(zero_copy_only=False)
    told = np.zeros(len(batch), dtype=np.bool_)
    told[tree.request[telling & (tree.request != NONE)]] = True
    return told
