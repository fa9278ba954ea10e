"""Windows by count: the cut, the order, nulls, the state between slices, and verdicts that stay apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.judges import FRAME
from udfs.judging.count_windows import CountWindow, OpenWindow, cut, judge_count_window
from udfs.judging.fixed_limit import FixedLimit, Limit
from udfs.judging.reference_ks import ReferenceKs
from udfs.sketches.reference import RankReference

GOLDEN = Path(__file__).parent.parent / "golden/sketches/count_windows_v1.hex"
SLICE_MS = 100
Row = tuple[int, str, float | None]


def run(slices: list[list[Row]], count: int) -> tuple[bytes | None, list[CountWindow]]:
    state, windows = None, []
    for number, rows in enumerate(slices):
        times, ids, values = ([row[place] for row in rows] for place in range(3))
        state, filled = cut(state, (number + 1) * SLICE_MS, times, ids, values, count=count)  # type: ignore[arg-type]
        windows += filled
    return state, windows


def facts(windows: list[CountWindow]) -> list[Any]:
    return [(w.number, w.first_time_ms, w.last_time_ms, w.last_id, w.values.tolist(), w.n_null) for w in windows]


@st.composite
def streams(draw: st.DrawFn) -> list[list[Row]]:
    """Slices of requests with many equal times, and nulls among the values."""
    slices = []
    for number in range(draw(st.integers(1, 5))):
        offsets = draw(st.lists(st.integers(0, 4), max_size=12))
        value = st.none() | st.integers(0, 99).map(float) | st.just(float("nan"))
        slices.append([(number * SLICE_MS + offset, f"{number}-{i}", draw(value)) for i, offset in enumerate(offsets)])
    return slices


@settings(max_examples=100, deadline=None)
@given(streams(), st.integers(1, 7), st.randoms(use_true_random=False))
def test_the_order_within_slices_moves_no_cut(slices: list[list[Row]], count: int, random: Any) -> None:
    shuffled = [random.sample(rows, len(rows)) for rows in slices]
    assert facts(run(shuffled, count)[1]) == facts(run(slices, count)[1])
    assert run(shuffled, count)[0] == run(slices, count)[0]


@settings(max_examples=100, deadline=None)
@given(streams(), st.integers(1, 7))
def test_windows_are_the_stream_in_pieces_of_count(slices: list[list[Row]], count: int) -> None:
    ordered = [row for rows in slices for row in sorted(rows, key=lambda row: row[:2])]
    values = [row for row in ordered if row[2] is not None and row[2] == row[2]]
    state, windows = run(slices, count)
    assert [v for w in windows for v in w.values] == [row[2] for row in values[: len(values) // count * count]]
    assert {w.values.size for w in windows} <= {count}
    assert [w.number for w in windows] == list(range(len(windows)))
    for w in windows:
        piece = values[w.number * count : (w.number + 1) * count]
        assert (w.first_time_ms, w.last_time_ms, w.last_id) == (piece[0][0], piece[-1][0], piece[-1][1])
    assert state is not None
    left = OpenWindow.from_bytes(state)
    assert left.values.tolist() == [row[2] for row in values[len(values) // count * count :]]
    assert sum(w.n_null for w in windows) + left.n_null == len(ordered) - len(values)
    assert len(state) <= 40 + 8 * (count - 1)


@settings(max_examples=50, deadline=None)
@given(streams(), st.integers(1, 7))
def test_nulls_move_no_cut(slices: list[list[Row]], count: int) -> None:
    without = [[row for row in rows if row[2] is not None and row[2] == row[2]] for rows in slices]
    with_nulls, clean = run(slices, count)[1], run(without, count)[1]
    assert [fact[:-1] for fact in facts(with_nulls)] == [fact[:-1] for fact in facts(clean)]


def test_shards_of_a_slice_are_given_together() -> None:
    state, _ = cut(None, 100, [1], ["a"], [1.0], count=2)
    for end in (100, 50):
        with pytest.raises(ValueError, match="all shards of one together"):
            cut(state, end, [2], ["b"], [2.0], count=2)


@pytest.mark.parametrize("data", [b"", b"garbage-bytes", OpenWindow(0, 0, 0, 0, np.empty(0)).to_bytes()[:-1]])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not CNT bytes"):
        cut(data, 100, [1], ["a"], [1.0], count=2)


def test_what_is_no_slice_is_refused() -> None:
    with pytest.raises(ValueError, match="same requests"):
        cut(None, 100, [1], ["a", "b"], [1.0], count=2)
    with pytest.raises(ValueError, match="at least 1"):
        cut(None, 100, [1], ["a"], [1.0], count=0)


def test_a_state_of_version_one_stays_readable() -> None:
    state, _ = cut(None, 100, [7, 3, 9], ["a", "b", "c"], [1.5, None, -2.0], count=5)
    assert state.hex() == GOLDEN.read_text().strip()
    left = OpenWindow.from_bytes(bytes.fromhex(GOLDEN.read_text().strip()))
    assert (left.last_slice_end_ms, left.number, left.first_time_ms, left.n_null) == (100, 0, 7, 1)
    assert left.values.tolist() == [1.5, -2.0]


def test_windows_that_end_in_one_millisecond_have_ids_of_their_own() -> None:
    ids = [f"r{i:04}" for i in range(3000)]
    _, windows = cut(None, 100, [42] * 3000, ids, np.arange(3000.0), count=1000)
    judge = ReferenceKs(FRAME, "f", 0.01, 0.05, 10, "asymptotic", RankReference.from_values(np.arange(1000.0)))
    verdicts = [verdict for window in windows for verdict in judge_count_window(judge, ["m1"], window)]
    assert [verdict.drifted for verdict in verdicts] == [False, True, True]
    assert {(verdict.window_start_ms, verdict.window_end_ms) for verdict in verdicts} == {(42, 43)}
    assert len({verdict.verdict_id for verdict in verdicts}) == 3
    assert verdicts[1].evidence["window_number"] == 1
    assert verdicts[1].evidence["last_id"] == "r1999"


def test_prediction_consistency_every_thousand_inferences() -> None:
    """Spec D6: below 0.85, judged every 1,000; the second thousand is the bad one, whatever the slices."""
    rng = np.random.default_rng(4)
    same = np.concatenate([rng.random(1000) < 0.9, rng.random(1000) < 0.8, rng.random(500) < 0.9]).astype(float)
    judge = FixedLimit(FRAME, "is_consistent", "rate", Limit(0.85, "below"), min_samples=1000)
    state, drifted = None, []
    for start in range(0, 2500, 130):
        part = same[start : start + 130]
        times, ids = np.arange(start, start + part.size), [f"r{i}" for i in range(start, start + part.size)]
        state, windows = cut(state, start + 130, times, ids, part, count=1000)
        drifted += [verdict.drifted for window in windows for verdict in judge_count_window(judge, ["m1"], window)]
    assert drifted == [False, True]
