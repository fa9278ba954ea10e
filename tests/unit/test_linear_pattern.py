"""The pattern over google-re2's compiled part finds what its own `finditer` does, and what Python's `re` does."""

import re

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.privacy.find import FAMILIES
from udfs.privacy.linear_pattern import LinearPattern, options

BYTES = st.lists(st.sampled_from([b"1", b"12", b"a", b"@", b".", b"-", b" ", b"+", b"\x90", b"DE00"]), max_size=30)


@settings(max_examples=40)
@given(BYTES.map(b"".join))
def test_spans_are_those_of_finditer(data: bytes) -> None:
    for family in FAMILIES:
        for detector in family.detectors:
            public = re2.compile(detector.pattern.source, options(8 << 20))
            spans = [match.span() for match in public.finditer(data)]
            assert detector.pattern.spans(data) == spans
            assert detector.pattern.is_in(data) is bool(spans)


@pytest.mark.parametrize("source", [rb"a*", rb"\b", rb"a|b", rb"(?:ab)+$"])
def test_spans_are_those_of_re_but_for_empty_ones(source: bytes) -> None:
    for data in (b"", b"aab", b"xaabab", b"ba"):
        spans = [match.span() for match in re.finditer(source, data) if match.end() > match.start()]
        assert LinearPattern(source).spans(data) == spans


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(re2.error):
        LinearPattern(b"(")
