"""Category counts: what is one category, what is null, and a bound that no order of merging can move."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from udfs.sketches.category import CategoryCounts
from udfs.statistics.categorical import chi_square_homogeneity
from udfs.statistics.categories import OTHER, Category
from udfs.versioned_bytes import seal

GOLDEN = Path(__file__).parent.parent / "golden/sketches/category_v1.hex"
GOLDEN_VALUES = ["stop", "stop", "länge", "", "\ud800", 1, 2.5, True, False, 10**20, math.inf, None, "z", "y"]


def _golden() -> CategoryCounts:
    return CategoryCounts.from_values(GOLDEN_VALUES).folded(GOLDEN_VALUES[:-2])


def test_kinds_are_kept_apart() -> None:
    sketch = CategoryCounts.from_values(["1", 1, True, "True", 1.0, np.int64(1), np.bool_(True), 2.5, np.str_("1")])
    assert [sketch.count(value) for value in ("1", 1, True, "True", 2.5)] == [2, 3, 2, 1, 1]
    assert (sketch.n, sketch.n_null, len(sketch.counts)) == (9, 0, 5)


def test_nulls_stay_apart() -> None:
    nulls = [None, math.nan, np.float32("nan"), pd.NA, pd.NaT]
    sketch = CategoryCounts.from_values(["a", *nulls, "a"])
    assert (sketch.n, sketch.n_null, sketch.count("a"), sketch.count(None)) == (2, 5, 2, 5)


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "a"],
        ("a", "b", "a"),
        np.array(["a", "b", "a"]),
        np.array(["a", "b", "a"], dtype=object),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype="string"),
        pd.Series(["a", "b", "a"], dtype="category"),
    ],
)
def test_any_sequence_of_text(values) -> None:
    assert CategoryCounts.from_values(values) == CategoryCounts.from_values(["a", "b", "a"])


def test_a_null_does_not_turn_integers_into_other_categories() -> None:
    whole = CategoryCounts.from_values(np.array([1, 2, 2]))
    for holes in ([1, 2, 2, None], pd.Series([1, 2, 2, None]), pd.Series([1, 2, 2, None], dtype="Int64")):
        sketch = CategoryCounts.from_values(holes)
        assert (sketch.counts, sketch.n_null) == (whole.counts, 1)
    masked = CategoryCounts.from_values(np.ma.masked_equal([1, 2, 2, 9], 9))
    assert (masked.counts, masked.n_null) == (whole.counts, 1)


@pytest.mark.parametrize("values", ["text", b"bytes", {"a": 1}, [["a"]], [("a", 1)], np.zeros((2, 2)), [b"a"], [1j]])
def test_what_is_no_category_is_refused(values) -> None:
    with pytest.raises(ValueError, match="must be"):
        CategoryCounts.from_values(values)


def test_no_values() -> None:
    assert CategoryCounts.from_values([]) == CategoryCounts.empty()
    assert (CategoryCounts.empty().n, CategoryCounts.empty().top(3)) == (0, ())


def test_the_top_is_the_same_in_whatever_order_values_come() -> None:
    values = ["b", "a", "c", "c", 2, 10, True]
    expected = (Category("text", "c"), Category("number", 2), Category("number", 10), Category("text", "a"))
    for order in (values, values[::-1]):
        assert CategoryCounts.from_values(order).top(4) == expected


def test_folding_moves_the_rest_and_loses_no_value() -> None:
    sketch = CategoryCounts.from_values(["a", "a", "b", "c", None])
    folded = sketch.folded(["a", "never seen"])
    assert folded.as_histogram() == {Category("text", "a"): 2, OTHER: 2, None: 1}
    assert folded.n == sketch.n
    assert folded.folded([]).n_other == 4


def test_the_bucket_is_itself_watched() -> None:
    # 100,000 new categories, each seen once, against a reference of two: bounded, and found.
    reference = CategoryCounts.from_values(["stop"] * 900 + ["length"] * 100)
    keep = reference.top(10)
    window = CategoryCounts.from_values([f"new {i}" for i in range(100_000)] + ["stop"] * 900_000).folded(keep)
    assert len(window.counts) <= 10
    assert window.n_other == 100_000
    result = chi_square_homogeneity(reference.folded(keep).as_histogram(), window.as_histogram())
    assert (result.degrees_of_freedom, result.n_window) == (2, 1_000_000)
    assert result.p_value < 1e-20


def test_bytes_of_version_1_stay_readable() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())
    assert CategoryCounts.from_bytes(golden) == _golden()
    assert _golden().to_bytes() == golden


def test_equal_sketches_have_equal_bytes() -> None:
    values = ["b", "a", 3, 2.5, True, "a"]
    assert CategoryCounts.from_values(values).to_bytes() == CategoryCounts.from_values(values[::-1]).to_bytes()


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"null":0,"other":0,"text":[["a"]],"number":[],"truth":[]}', b"\xff"])
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not CAT bytes"):
        CategoryCounts.from_bytes(seal(b"CAT", 1, body))
    with pytest.raises(ValueError, match="not CAT bytes"):
        CategoryCounts.from_bytes(seal(b"LOG", 1, body))
