"""Packets: what is packed together is what is packed apart, and what is read together is what is read one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.judging.window_judge import Input, InputKind, Values
from udfs.slicing.packets import pack, pack_runs, unpack

A, B, ARM = Input("a", InputKind.NUMBER), Input("b", InputKind.NUMBER), Input("arm", InputKind.TEXT)
NUMBERS = st.floats(width=64)
RUNS = st.lists(st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from(["x", "y", None])), max_size=6), max_size=12)


def columns(rows: list[tuple[float, float, str | None]]) -> list[Values]:
    a, b, arm = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
    return [np.array(a, dtype=np.float64), np.array(b, dtype=np.float64), arm]


def rows_of(found: list[Values]) -> list[bytes]:
    """Each request's values to the bit, in no order."""
    return sorted(repr([np.float64(v).tobytes() if isinstance(v, float) else v for v in row]).encode()
                  for row in zip(*found, strict=True))  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(RUNS, st.sampled_from([[A], [A, B], [A, B, ARM]]))
def test_together_as_apart(runs: list[list[tuple[float, float, str | None]]], inputs: list[Input]) -> None:
    whole = columns([row for run in runs for row in run])[: len(inputs)]
    ends = np.cumsum([len(run) for run in runs], dtype=int).tolist()
    packets = pack_runs(inputs, whole, ends)
    assert packets == [pack(inputs, columns(run)[: len(inputs)]) for run in runs]
    apart = [row for packet in packets for row in rows_of(unpack([packet], inputs))]
    assert rows_of(unpack(packets, inputs)) == sorted(apart) == rows_of(whole)


@pytest.mark.parametrize("damage", [0, 1, 2, 14, 15, 20])
def test_a_damaged_packet_among_good_ones_is_refused(damage: int) -> None:
    good = pack([A, B], [np.ones(1), np.ones(1)])
    bad = bytearray(good)
    bad[damage] ^= 0x40
    with pytest.raises(ValueError, match="other columns"):
        unpack([good, bytes(bad)], [A, B]) if damage != 20 else unpack([good, good[:-1]], [A, B])
