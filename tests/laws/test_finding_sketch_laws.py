"""The laws of the sketches behind the findings: merged equals pooled in any order and grouping, bytes stay readable."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.parts import join_parts, split_parts
from udfs.sketches.name_sample import NameSample
from udfs.sketches.outside import OutsideCounts
from udfs.sketches.split_log import SplitBounds, SplitLog

GOLDEN = Path(__file__).parent.parent / "golden/sketches"
BOUNDS = SplitBounds(2, always="a")
number = st.none() | st.integers(-4, 4).map(float) | st.floats()
name = st.sampled_from("abcdefg") | st.text(max_size=2)


@dataclass(frozen=True)
class Family:
    """A kind of sketch: rows of it, how to make one, and all of many from their bytes."""

    rows: st.SearchStrategy[Any]
    make: Callable[[list[Any]], Any]
    merge_all: Callable[[list[bytes]], Any]
    golden_rows: list[Any]


def split_log(rows: list[Any]) -> SplitLog:
    return SplitLog.from_values([value for value, _ in rows], [label for _, label in rows], BOUNDS)


FAMILIES = {
    "outside": Family(
        number, lambda rows: OutsideCounts.from_values(rows, -1.0, 2.0), OutsideCounts.merge_all, [1.5, -3.0, None, 9.0]
    ),
    "name_sample": Family(
        name,
        lambda rows: NameSample.from_counts(Counter(rows), 3, n=len(rows)),
        lambda data: NameSample.merge_all(data, 3),
        ["a", "b", "a", "c", "d", "\u00e9"],
    ),
    "split_log": Family(
        st.tuples(number, st.none() | name),
        split_log,
        lambda data: SplitLog.merge_all(data, BOUNDS),
        [(1.0, "a"), (2.0, "b"), (-7.5, "c"), (None, "d"), (4.0, None)],
    ),
}
family = pytest.mark.parametrize("of", FAMILIES)


@family
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_merged_is_pooled_in_any_order_and_grouping(of: str, data: st.DataObject) -> None:
    kind = FAMILIES[of]
    parts = data.draw(st.lists(st.lists(kind.rows, max_size=8), min_size=1, max_size=5))
    sketches = [kind.make(part).to_bytes() for part in parts]
    pooled = kind.make([row for part in parts for row in part]).to_bytes()
    assert kind.merge_all(data.draw(st.permutations(sketches))).to_bytes() == pooled
    half = len(sketches) // 2
    grouped = [kind.merge_all(sketches[:half]).to_bytes(), kind.merge_all(sketches[half:]).to_bytes()]
    assert kind.merge_all(grouped).to_bytes() == pooled


@family
def test_the_empty_sketch_is_neutral(of: str) -> None:
    kind = FAMILIES[of]
    one = kind.make(kind.golden_rows).to_bytes()
    assert kind.merge_all([kind.merge_all([]).to_bytes(), one, kind.make([]).to_bytes()]).to_bytes() == one


@family
def test_bytes_of_version_one_stay_readable(of: str) -> None:
    kind = FAMILIES[of]
    golden = bytes.fromhex((GOLDEN / f"{of}_v1.hex").read_text())
    assert kind.make(kind.golden_rows).to_bytes() == golden
    assert kind.merge_all([golden]).to_bytes() == golden


@family
def test_changed_cut_and_foreign_bytes_are_refused(of: str) -> None:
    kind = FAMILIES[of]
    data = kind.make(kind.golden_rows).to_bytes()
    for wrong in (b"", data[:-1], data[:20] + b"\x00" + data[21:], join_parts([])[:-4] + b"abcd"):
        if wrong != data:
            with pytest.raises(ValueError, match=r"not ... bytes"):
                kind.merge_all([wrong])


@given(st.lists(st.binary(max_size=9), max_size=6))
def test_parts_come_back(parts: list[bytes]) -> None:
    assert split_parts(join_parts(parts)) == parts
    with pytest.raises(ValueError, match="parts"):
        split_parts(join_parts(parts), len(parts) + 1)


def test_the_number_of_names_is_estimated_within_its_error() -> None:
    for distinct in (1_000, 20_000):
        sample = NameSample.from_counts({f"n{i}": 1 for i in range(distinct)}, 400, n=distinct)
        assert sample.n_names == pytest.approx(distinct, rel=4 / math.sqrt(400))


def test_other_limits_are_refused() -> None:
    data = NameSample.from_counts({"a": 1}, 3, n=1).to_bytes()
    with pytest.raises(ValueError, match="another limit"):
        NameSample.merge_all([data], 4)
    with pytest.raises(ValueError, match="at least 1"):
        NameSample.from_counts({"a": 1}, 0, n=1)
