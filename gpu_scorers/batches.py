"""Batches of one length, and what becomes of a batch when the device has no memory left for it.

Texts padded to the longest of their batch waste what is padding, so they are sorted by length first and cut where that
wastes least; a batch holds at most `max_items` and at most `max_tokens` with its padding. The longest come first, so
that memory runs out at once or not at all.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import torch

from gpu_scorers.cpu_memory import after_pass
from gpu_scorers.devices import Device

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How large a forward pass may be, and what one costs beside its tokens.

    `max_items`: sentence-transformers' own default. `max_tokens`, padding included: 32 texts of 512 tokens; ours.
    `pass_tokens`: as many tokens take as long as a pass does that has none (`gpu_scorers.devices.Device.pass_tokens`).
    """

    max_items: int = 32
    max_tokens: int = 16_384
    pass_tokens: int = 32


def batches_by_length(lengths: Sequence[int], policy: BatchPolicy) -> Iterator[list[int]]:
    """Yield the positions of each batch, longest first; an item longer than `max_tokens` is a batch of its own.

    Of all ways to cut the sorted items into batches it is one of least cost, padding and `pass_tokens` counted: a few
    long items don't make many short ones as long. O(items * max_items), a millisecond for 100 items.

    >>> list(batches_by_length([1, 9, 8, 2], BatchPolicy(max_items=3, max_tokens=20)))
    [[1, 2], [3, 0]]
    >>> list(batches_by_length([3, 90, 4, 3], BatchPolicy()))
    [[1], [2, 0, 3]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    ends, end = [len(order)], len(order)
    starts = _cheapest_starts([lengths[i] for i in order], policy)
    while end:
        end = starts[end]
        ends.append(end)
    for last, first in reversed(list(pairwise(ends))):
        yield order[first:last]


def _cheapest_starts(lengths: Sequence[int], policy: BatchPolicy) -> list[int]:
    """Return for each end where the last batch before it begins, of the cheapest way to cut the items before it."""
    costs, starts = [0], [0]
    for end in range(1, len(lengths) + 1):
        best, start = costs[end - 1] + lengths[end - 1], end - 1
        for first in range(end - 2, max(end - policy.max_items, 0) - 1, -1):
            padded = lengths[first] * (end - first)
            if padded > policy.max_tokens:
                break
            if costs[first] + padded < best:
                best, start = costs[first] + padded, first
        costs.append(best + policy.pass_tokens)
        starts.append(start)
    return starts


@dataclass(frozen=True, slots=True)
class Fallback:
    """What was done because the device's memory ran out: the batch that fitted, and where."""

    batch_items: int
    device: str

    def evidence(self) -> dict[str, str | int]:
        """What a score says about it."""
        return {"out_of_memory_batch_items": self.batch_items, "out_of_memory_device": self.device}


def run_batch(
    positions: list[int], device: Device, forward: Callable[[list[int], str], Sequence[T]], *, halved: bool = False
) -> list[tuple[int, T, Fallback | None]]:
    """Return for each position its result, and what was done where memory ran out.

    `forward(positions, device_name)` gives one result a position. Where it raises torch's OutOfMemoryError on CUDA the
    batch is halved, and a single item goes to the CPU; so one long text slows itself down and nothing else. Any other
    error is the caller's. `halved` says that this batch is part of one that did not fit.
    """
    try:
        results = forward(positions, device.name)
    except torch.OutOfMemoryError:
        if not device.is_cuda:
            raise
    else:
        after_pass()
        fallback = Fallback(len(positions), device.name) if halved else None
        return [(position, result, fallback) for position, result in zip(positions, results, strict=True)]
    if torch.cuda.is_available():  # outside the handler: the error holds the tensors of the failed pass
        torch.cuda.empty_cache()
    if len(positions) == 1:
        log.warning("%s has no memory left for one text; it is scored on the CPU", device.name)
        return [(positions[0], forward(positions, "cpu")[0], Fallback(1, "cpu"))]
    middle = len(positions) // 2
    return [
        found
        for part in (positions[:middle], positions[middle:])
        for found in run_batch(part, device, forward, halved=True)
    ]
