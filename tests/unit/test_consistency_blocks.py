"""Blocks of 1,000 inferences: cut alike whatever the slices and the order within them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.versions.consistency_blocks import step
from udfs.versions.score_sum import ScoreSum

agreements = st.lists(st.sampled_from([0.0, 1.0, None, 7.0]), max_size=60)


def cut(slices: list[list[tuple[int, str, float | None]]], every: int) -> tuple[ScoreSum, list[ScoreSum]]:
    """Run the machine over slices of (time, id, agreement), through its state's bytes."""
    state, blocks = ScoreSum(), []
    for rows in slices:
        times, ids, values = zip(*rows, strict=True) if rows else ((), (), ())
        state, closed = step(ScoreSum.from_bytes(state.to_bytes()), values, times, ids, every=every)
        blocks += closed
    return state, blocks


def plainly(values: list[float | None], every: int) -> tuple[ScoreSum, list[ScoreSum]]:
    """One inference at a time, as a person would count."""
    block, blocks = ScoreSum(), []
    for value in values:
        block = block.merge(ScoreSum.from_values([value]))
        if block.n == every:
            blocks.append(block)
            block = ScoreSum()
    return block, blocks


@settings(max_examples=150)
@given(agreements, st.integers(1, 7), st.lists(st.integers(0, 60), max_size=4), st.randoms(use_true_random=False))
def test_as_counted_one_by_one_whatever_the_slices(values, every, cuts, random) -> None:
    rows = [(number // 3, f"{number % 3}", value) for number, value in enumerate(values)]
    ends = sorted(min(at, len(rows)) for at in cuts)
    slices = [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]
    for rows_of_slice in slices:
        random.shuffle(rows_of_slice)
    assert cut(slices, every) == plainly(values, every)


def test_ties_in_time_are_ordered_by_id() -> None:
    rows = [(5, "b", 1.0), (5, "a", 0.0), (4, "z", 1.0)]
    _, blocks = cut([rows], every=2)
    assert [block.mean for block in blocks] == [0.5]
    assert cut([rows], 2) == cut([rows[::-1]], 2)


def test_a_thousand_a_block_over_many_slices() -> None:
    rng = np.random.default_rng(8)
    slices = []
    for number in range(40):
        values = (rng.random(150) < 0.9).astype(float)
        slices.append([(number, f"{i:03d}", value) for i, value in enumerate(values)])
    left, blocks = cut(slices, 1000)
    assert [block.n for block in blocks] == [1000] * 6
    assert left.n == 0
    flat = [value for rows in slices for _, _, value in rows]
    assert [block.mean for block in blocks] == [sum(flat[at : at + 1000]) / 1000 for at in range(0, 6000, 1000)]


def test_a_block_size_lowered_while_running_closes_the_open_block() -> None:
    state, _ = step(ScoreSum(), [1, 1, 1, 1, 1], [1, 2, 3, 4, 5], list("abcde"), every=10)
    state, closed = step(state, [0, 1, 1], [6, 7, 8], list("abc"), every=2)
    assert [(block.n, block.mean) for block in closed] == [(6, pytest.approx(5 / 6)), (2, 1.0)]
    assert state == ScoreSum()


@pytest.mark.parametrize(("times", "every"), [([1], 5), ([1, 2], 0)])
def test_impossible_calls_are_refused(times: list[int], every: int) -> None:
    with pytest.raises(ValueError, match=r"every must be|lengths differ"):
        step(ScoreSum(), [1, 1], times, ["a", "b"], every=every)
