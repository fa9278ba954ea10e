"""Cuts a series of label agreements into blocks of so many inferences: state that outlives a slice.

A pure machine: `step(open_block, slice) -> (open_block, closed_blocks)`. Within a closed slice inferences are put in
order of event time and then id, so a replay cuts alike whatever order it delivers (spec D1, D6). The state is a
`ScoreSum` with its own versioned bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from udfs.versions.score_sum import ScoreSum, in_range


def step(
    open_block: ScoreSum,
    agreement: NDArray[Any] | Sequence[Any],
    event_time_ms: NDArray[np.int64] | Sequence[int],
    ids: Sequence[str],
    *,
    every: int,
) -> tuple[ScoreSum, list[ScoreSum]]:
    """Return the block left open after a slice, and the blocks that the slice completed, oldest first.

    A block is complete with its `every`-th usable agreement; invalid and missing ones are counted in the block in whose
    course they come. Slices must come in order of time. Raises ValueError where the three differ in length, or
    `every` is below 1, or a value is no number. O(n log n).

    >>> left, closed = step(ScoreSum(), [1, 0, None, 1, 1], [5, 4, 3, 2, 1], ["a", "b", "c", "d", "e"], every=3)
    >>> [(block.n, block.mean, block.n_null) for block in closed], left.n, left.mean
    ([(3, 0.6666666666666666, 1)], 1, 1.0)
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, not {every}")
    if not len(agreement) == len(event_time_ms) == len(ids):
        raise ValueError(f"lengths differ: {len(agreement)} agreements, {len(event_time_ms)} times, {len(ids)} ids")
    order = np.lexsort((np.asarray(ids, dtype=np.str_), np.asarray(event_time_ms, dtype=np.int64)))
    ordered = np.asarray(agreement, dtype=np.float64)[order]  # None becomes NaN
    ends = np.flatnonzero(in_range(ordered))[max(every - open_block.n, 1) - 1 :: every] + 1
    closed, start = [], 0
    for end in ends.tolist():
        closed.append(open_block.merge(ScoreSum.from_values(ordered[start:end])))
        open_block, start = ScoreSum(), end
    return open_block.merge(ScoreSum.from_values(ordered[start:])), closed
