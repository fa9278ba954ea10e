"""A regular expression over bytes that takes time linear in the text whatever it holds: RE2 (google-re2).

RE2 has no back-tracking and so no look-around: what stands beside a match is for the caller to look at. Bytes are
characters of Latin-1.
"""

from typing import Any

import re2

Span = tuple[int, int]
PATTERN_BYTES = 8 << 20
_ANYWHERE = re2._re2.RE2.Anchor.UNANCHORED


class LinearPattern:
    """A compiled pattern, whose automaton grows to `max_bytes` as it meets texts. Raises re2.error on what is none.

    It asks google-re2's compiled part itself: the public `finditer` is the same loop in Python around the same call,
    and its match objects cost three times the search in a short text (`tests/unit/test_linear_pattern.py` compares).

    >>> LinearPattern(rb"[0-9]+").spans(b"a1 b22")
    [(1, 2), (4, 6)]
    """

    __slots__ = ("_search", "source")

    def __init__(self, source: bytes, *, max_bytes: int = PATTERN_BYTES) -> None:
        self.source = source
        self._search = re2.compile(source, options(max_bytes))._regexp.Match

    def spans(self, data: bytes) -> list[Span]:
        """Return where it matches, leftmost first, none overlapping. An empty match is passed over."""
        search, end, at, found = self._search, len(data), 0, []
        while at < end:
            first, last = search(_ANYWHERE, data, at, end)[0]
            if first < 0:
                break
            if first == last:
                at = last + 1
                continue
            found.append((first, last))
            at = last
        return found

    def is_in(self, data: bytes) -> bool:
        """Whether it matches anywhere."""
        return bool(self._search(_ANYWHERE, data, 0, len(data))[0][0] >= 0)


def options(max_bytes: int) -> Any:
    """Return how RE2 reads bytes here."""
    chosen = re2.Options()
    chosen.max_mem = max_bytes
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.never_capture = True
    chosen.log_errors = False
    return chosen
