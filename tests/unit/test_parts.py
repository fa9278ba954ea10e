"""Several byte strings as one: what comes back, and which bytes are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.parts import join_parts, split_parts
from udfs.versioned_bytes import seal


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_parts_come_back_in_their_order(parts: list[bytes]) -> None:
    assert split_parts(join_parts(parts), len(parts)) == parts


@pytest.mark.parametrize("body", [b"\x01", b"\x05\0\0\0ab", b"\x01\0\0\0a\x02\0", b"\xff\xff\xff\xff"])
def test_lengths_that_do_not_add_up_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="the lengths do not add up"):
        split_parts(seal(b"PTS", 1, body))


def test_another_number_of_parts_and_changed_bytes_are_refused() -> None:
    data = join_parts([b"a", b"bc"])
    with pytest.raises(ValueError, match="2 parts, 3 were expected"):
        split_parts(data, 3)
    for changed, problem in (
        (data[:-1], "checksum"),
        (b"\x02" + data[1:], "version 2 is unknown"),
        (data[:1] + b"XYZ" + data[4:], "the tag is b'XYZ'"),
        (data[:7], "7 bytes are too few"),
        (b"", "0 bytes are too few"),
    ):
        with pytest.raises(ValueError, match=problem):
            split_parts(changed)
