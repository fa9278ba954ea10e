"""Batches by length: every item once, within bounds; and what happens when a device has no memory left."""

from collections.abc import Callable
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_scorers.batches import BatchPolicy, Fallback, batches_by_length, run_batch
from gpu_scorers.devices import CPU, Device

CUDA = Device("cuda:0")


@settings(max_examples=200)
@given(st.lists(st.integers(1, 60)), st.integers(1, 8), st.integers(1, 100))
def test_every_item_once_within_bounds_longest_first(lengths: list[int], max_items: int, max_tokens: int) -> None:
    batches = list(batches_by_length(lengths, BatchPolicy(max_items, max_tokens)))
    flat = [i for batch in batches for i in batch]
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[i] for i in flat] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) <= max_items
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= max_tokens


@settings(max_examples=100)
@given(st.lists(st.integers(1, 30), max_size=9), st.integers(1, 4), st.integers(1, 90), st.integers(0, 40))
def test_no_other_cut_is_cheaper(lengths: list[int], max_items: int, max_tokens: int, pass_tokens: int) -> None:
    policy = BatchPolicy(max_items, max_tokens, pass_tokens)
    ours = [[lengths[i] for i in batch] for batch in batches_by_length(lengths, policy)]
    ordered = sorted(lengths, reverse=True)
    costs = []
    for cuts in product((False, True), repeat=max(len(ordered) - 1, 0)):
        ends = [place + 1 for place, cut in enumerate(cuts) if cut] + [len(ordered)]
        parts = [ordered[first:last] for first, last in pairwise([0, *ends])]
        if all(len(part) <= max_items and (len(part) < 2 or part[0] * len(part) <= max_tokens) for part in parts):
            costs.append(cost(parts, pass_tokens))
    assert cost(ours, pass_tokens) == min(costs)


def cost(batches: list[list[int]], pass_tokens: int) -> int:
    return sum(max(batch) * len(batch) + pass_tokens for batch in batches if batch)


def device_with_room_for(items: int) -> tuple[Callable[[list[int], str], list[int]], list[tuple[int, str]]]:
    """A forward pass that raises what torch raises on a device without memory, and the passes it was asked for."""
    asked: list[tuple[int, str]] = []

    def forward(positions: list[int], device: str) -> list[int]:
        asked.append((len(positions), device))
        if device != "cpu" and len(positions) > items:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [10 * position for position in positions]

    return forward, asked


def test_a_batch_that_fits_says_nothing() -> None:
    forward, asked = device_with_room_for(8)
    assert run_batch([3, 1], CUDA, forward) == [(3, 30, None), (1, 10, None)]
    assert asked == [(2, "cuda:0")]


def test_a_batch_too_large_is_halved_and_says_so() -> None:
    forward, asked = device_with_room_for(2)
    found = run_batch([4, 3, 2, 1, 0], CUDA, forward)
    assert [(i, result) for i, result, _ in found] == [(i, 10 * i) for i in (4, 3, 2, 1, 0)]
    assert {fallback for *_, fallback in found} == {Fallback(2, "cuda:0"), Fallback(1, "cuda:0")}
    assert {device for _, device in asked} == {"cuda:0"}


def test_a_single_item_too_large_goes_to_the_cpu() -> None:
    forward, _ = device_with_room_for(0)
    found = run_batch([0, 1], CUDA, forward)
    assert found == [(0, 0, Fallback(1, "cpu")), (1, 10, Fallback(1, "cpu"))]
    assert found[0][2] is not None
    assert found[0][2].evidence() == {"out_of_memory_batch_items": 1, "out_of_memory_device": "cpu"}


def test_other_errors_are_the_callers() -> None:
    def forward(positions: list[int], device: str) -> list[int]:
        raise torch.OutOfMemoryError("no memory") if device == "cpu" else ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_batch([0], CUDA, forward)
    with pytest.raises(torch.OutOfMemoryError):
        run_batch([0], CPU, forward)
