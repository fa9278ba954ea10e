"""The rank sketch's bytes (committed, versioned, robust) and what it refuses."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, kstwo

from udfs.sketches.rank import RankSketch
from udfs.sketches.rank_windows import FEWEST_TOGETHER, merge_windows
from udfs.sketches.reference import RankReference

TIED = RankReference.from_values([1.0, 2.0, 2.0, 5.0, float("inf"), None])
DISTINCT = RankReference.from_values(np.arange(200.0))
VALUES = [2.0, 3.0, -1.0, float("nan"), float("inf"), 2.0]

# Written by version 1. They must be read for as long as a savepoint may hold them: never change, only add.
GOLDEN_BIN_NUMBERS = (
    "01000101103c4c52247731cc040000000000000001000000000000000102010101000000000000000100000000000000000303040749e64cef"
)
GOLDEN_COUNTS = (
    "01010201103c4c52247731cc040000000000000001000000000000000102010100000000000000000000000000000000"
    "0000000000002c0100000000000000000000c81a72c8"
)


def test_golden_bytes_are_read_and_written() -> None:
    sketch = RankSketch.from_values(VALUES, TIED)
    assert sketch.to_bytes().hex() == GOLDEN_BIN_NUMBERS
    read = RankSketch.from_bytes(bytes.fromhex(GOLDEN_BIN_NUMBERS))
    assert read == sketch
    assert (read.counts.tolist(), read.n_null, read.n_infinite) == ([1, 0, 0, 2, 1, 0, 0, 1, 0], 1, 1)
    assert read.reference.n_null == 1
    many = RankSketch.from_values([2.0] * 300, TIED)
    assert many.to_bytes().hex() == GOLDEN_COUNTS
    assert RankSketch.from_bytes(bytes.fromhex(GOLDEN_COUNTS)).counts.tolist() == [0, 0, 0, 300, 0, 0, 0, 0, 0]


def test_few_values_take_few_bytes_and_many_take_no_more_than_the_bins() -> None:
    reference = RankReference.from_values(np.random.default_rng(1).random(1000))
    sizes = {
        n: len(RankSketch.from_values(np.random.default_rng(2).random(n), reference).to_bytes())
        for n in (0, 1, 100, 100_000)
    }
    overhead = sizes[0]
    assert overhead < 64
    assert sizes[1] == overhead + 2
    assert sizes[100] == overhead + 200
    assert sizes[100_000] <= overhead + 2 * 2001
    constant = RankSketch.from_values(np.zeros(100_000), reference)
    assert len(constant.to_bytes()) <= overhead + 4 * 2001


def test_bytes_alone_tell_d_of_a_tied_reference() -> None:
    reference = np.repeat([1.0, 2.0, 3.0], [400, 5, 300])
    window = np.repeat([0.0, 2.0, 3.0], [3, 100, 7])
    read = RankSketch.from_bytes(RankSketch.from_values(window, reference).to_bytes())
    theirs = ks_2samp(reference, window, method="asymp")
    assert read.statistic() == theirs.statistic
    assert read.result().p_value == pytest.approx(theirs.pvalue, rel=1e-10, abs=0)


@given(st.data())
def test_changed_or_cut_bytes_are_refused(data: st.DataObject) -> None:
    whole = RankSketch.from_values(VALUES, TIED).to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= data.draw(st.integers(1, 255))
    for wrong in (bytes(flipped), whole[:place], whole + b"\0"):
        with pytest.raises(ValueError, match="not a rank sketch"):
            RankSketch.from_bytes(wrong)
        with pytest.raises(ValueError, match="not a rank sketch"):
            RankSketch.merge_all([wrong], TIED)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused(data: bytes) -> None:
    for wrong in (data, _signed(data)):
        with pytest.raises(ValueError, match="not a rank sketch"):
            RankSketch.from_bytes(wrong)


def _signed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize(
    ("offset", "byte", "message"),
    [
        (0, 2, "version 2 is unknown, 1 was expected"),
        (1, 7, "layout 7"),
        (2, 3, "width 3"),
        (2, 8, "lengths do not add up"),
        (1, 1, "lengths do not add up"),
        (3, 5, "multiplicity of 5 bytes"),
        (12, 250, "lengths do not add up"),
        (19, 1, "distinct points are too many"),
        (-1, 250, "beyond the last bin"),
    ],
)
def test_well_signed_nonsense_is_refused(offset: int, byte: int, message: str) -> None:
    body = bytearray(RankSketch.from_values(VALUES, TIED).to_bytes()[:-4])
    body[offset] = byte
    with pytest.raises(ValueError, match=message):
        RankSketch.from_bytes(_signed(bytes(body)))


def test_another_reference_is_refused() -> None:
    one, two = RankSketch.from_values(VALUES, TIED), RankSketch.from_values(VALUES, DISTINCT)
    with pytest.raises(ValueError, match="different references can't be merged"):
        one.merge(two)
    with pytest.raises(ValueError, match="another reference can't be taken out"):
        one.without(two)
    with pytest.raises(ValueError, match="not one against this reference"):
        RankSketch.merge_all([one.to_bytes(), two.to_bytes()], TIED)
    with pytest.raises(ValueError, match="not one against this reference"):
        RankSketch.from_bytes(one.to_bytes(), DISTINCT)


def test_references_differ_by_points_ties_and_nulls_only() -> None:
    reference = RankReference.from_values([0.0, 1.0, 1.0])
    assert reference == RankReference.from_values([1.0, -0.0, 1.0])
    assert reference != RankReference.from_values([0.0, 1.0])
    assert reference != RankReference.from_values([0.0, 0.0, 1.0])
    assert reference != RankReference.from_values([0.0, 1.0, 1.0, None])


def test_a_reference_read_from_bytes_takes_no_new_values() -> None:
    read = RankSketch.from_bytes(RankSketch.from_values(VALUES, TIED).to_bytes())
    with pytest.raises(ValueError, match="has no points"):
        RankSketch.from_values([1.0], read.reference)
    assert read.merge(RankSketch.from_values([1.0], TIED)).reference.points is not None


def test_more_nulls_or_infinities_than_were_added_are_not_taken_out() -> None:
    sketch = RankSketch.from_values([1.0, 7.0], TIED)
    for other in ([None], [float("inf")], [1.0, 1.0]):
        with pytest.raises(ValueError, match="never added"):
            sketch.without(RankSketch.from_values(other, TIED))


def test_a_reference_without_values_tells_nothing() -> None:
    sketch = RankSketch.from_values([1.0], [None, float("nan")])
    assert sketch.statistic() is None
    assert (sketch.result().status, sketch.result().n_reference_null) == ("insufficient_data", 2)
    assert RankSketch.from_bytes(sketch.to_bytes()) == sketch


def test_layouts_and_widths_add_up() -> None:
    rng = np.random.default_rng(3)
    parts = [rng.integers(0, 210, n).astype(float) for n in (5, 90, 400, 3000)] + [np.full(70_000, 3.0)]
    encoded = [RankSketch.from_values(part, DISTINCT).to_bytes() for part in parts]
    assert {(data[1], data[2]) for data in encoded} == {(0, 2), (1, 1), (1, 4)}
    merged = RankSketch.merge_all(encoded, DISTINCT)
    assert merged == RankSketch.from_values(np.concatenate(parts), DISTINCT)
    assert merged.statistic() == ks_2samp(np.arange(200.0), np.concatenate(parts)).statistic


def test_the_window_slides_with_d_of_scipy() -> None:
    rng = np.random.default_rng(4)
    points = np.round(rng.lognormal(5, 1, 300))
    reference = RankReference.from_values(points)
    slices = [np.round(rng.lognormal(5.1, 1, 50)) for _ in range(30)]
    window = RankSketch.merge_all([], reference)
    for end, arriving in enumerate(slices):
        window = window.merge(RankSketch.from_values(arriving, reference))
        if end >= 5:
            window = window.without(RankSketch.from_values(slices[end - 5], reference))
        current = np.concatenate(slices[max(0, end - 4) : end + 1])
        assert window.n == current.size
        assert window.statistic() == ks_2samp(points, current, method="asymp").statistic


def test_ten_million_rows_against_fifty_thousand_points() -> None:
    """D is scipy's: ten slices of the same million have its D, as each of them has."""
    rng = np.random.default_rng(5)
    points, million = rng.lognormal(size=50_000), rng.lognormal(0.01, size=1_000_000)
    reference = RankReference.from_values(points)
    slices = [RankSketch.from_values(np.append(million, [np.nan]), reference).to_bytes()] * 10
    expected = ks_2samp(points, million, method="asymp").statistic
    for merged in (RankSketch.merge_all(slices, reference), *merge_windows([slices] * FEWEST_TOGETHER, reference)):
        assert merged.statistic() == expected
        assert (merged.n, merged.n_null) == (10_000_000, 10)
        assert merged.result().p_value == pytest.approx(kstwo.sf(expected, 49_751), rel=1e-10)
