"""What every detector is made of: a linear-time pattern that proposes, and a check that decides.

What stands beside a candidate is looked at by its check (`linear_pattern.py` says why).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from udfs.privacy.context import Words
from udfs.privacy.folded import BARRIER, LETTER, Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") | {LETTER, BARRIER}
_DIGIT = frozenset(b"0123456789")


ALTERNATION_BYTES = 64 << 20  # of many patterns: beyond it RE2 begins its states anew, and is slower for a while


class Finding(NamedTuple):
    """Personal data in a text: characters [start, end)."""

    start: int
    end: int
    kind: Kind


Check = Callable[[Folded, int, int], Iterable[Span]]


@dataclass(frozen=True, slots=True)
class Detector:
    """`pattern` proposes spans of the folded bytes; `check` returns what of a proposal is personal data, if anything;
    without one all of it is.

    `needs`: without one of these bytes in the text there is nothing to look for, which is seen in no time. `said`:
    likewise without one of these words, by which the check decides.
    """

    kind: Kind
    pattern: LinearPattern
    check: Check | None = None
    needs: tuple[bytes, ...] = ()
    said: Words | None = None

    def may_be_in(self, text: Folded) -> bool:
        """Whether what it needs is in the text."""
        return not self.needs or any(need in text.data for need in self.needs)

    def spans(self, text: Folded) -> list[Span]:
        """Return byte spans of `text`. Linear time."""
        if self.said is not None and not self.said.are_in(text.lower):
            return []
        proposed, check = self.pattern.spans(text.data), self.check
        if check is None:
            return proposed
        return [span for start, end in proposed for span in check(text, start, end)]


@dataclass(frozen=True, slots=True)
class Family:
    """Detectors of one sort behind one pattern, their alternation: most texts have nothing for any of them, and then
    one pass over the text has shown it.
    """

    detectors: tuple[Detector, ...]
    gate: LinearPattern

    def findings(self, text: Folded) -> Iterator[tuple[Span, Kind]]:
        """Yield byte spans of `text` and what they are."""
        if len(self.detectors) > 1 and not self.gate.is_in(text.data):
            return
        for each in self.detectors:
            if each.may_be_in(text):
                for span in each.spans(text):
                    yield span, each.kind


def family(*detectors: Detector) -> Family:
    """Return the detectors as one family."""
    return Family(detectors, alternation(detectors))


def alternation(detectors: Iterable[Detector]) -> LinearPattern:
    """Return the pattern that proposes something wherever any of the detectors does."""
    forms = b"|".join(b"(?:" + each.pattern.source + b")" for each in detectors)
    return LinearPattern(forms, max_bytes=ALTERNATION_BYTES)


def is_alone(data: bytes, start: int, end: int) -> bool:
    """Whether [start, end) is no part of a longer word, number, decimal, time, date or hyphenated id.

    >>> is_alone(b"id 12-34", 3, 5), is_alone(b"call 12.", 5, 7), is_alone(b"x12", 1, 3), is_alone(b"7,1381", 2, 6)
    (False, True, False, True)
    """
    if in_word(data, start, end):
        return False
    before = start > 1 and data[start - 2] in _DIGIT and _links(data[start - 1], _run(data, start, 1))
    after = end + 1 < len(data) and data[end + 1] in _DIGIT and _links(data[end], _run(data, end - 1, -1))
    return not before and not after


# Between two digits these make one number of them: of any length, or where the run beside is as short as in thousands,
# times and dates. Otherwise they stand between two things, as in a line of CSV.
_LINKS: dict[int, tuple[int, int]] = {
    ord("."): (1, 99),
    ord("-"): (0, 99),
    ord(","): (3, 3),
    ord(":"): (1, 2),
    ord("/"): (1, 4),
}


def _links(sign: int, run: int) -> bool:
    shortest, longest = _LINKS.get(sign, (1, 0))
    return shortest <= run <= longest


def _run(data: bytes, at: int, step: int) -> int:
    """Return how many digits stand at `at` and on from there."""
    place = at
    while 0 <= place < len(data) and data[place] in _DIGIT and abs(place - at) < 99:
        place += step
    return abs(place - at)


def in_word(data: bytes, start: int, end: int) -> bool:
    """Whether a letter, digit or underscore stands directly at either side of [start, end)."""
    return (start > 0 and data[start - 1] in _WORD) or (end < len(data) and data[end] in _WORD)


def digits_of(data: bytes) -> str:
    """Return the ASCII digits in `data`.

    >>> digits_of(b"+1 (415) 555")
    '1415555'
    """
    return data.translate(None, _NOT_DIGITS).decode()


_NOT_DIGITS = bytes(set(range(256)) - _DIGIT)
