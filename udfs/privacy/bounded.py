"""A text masked and cut to a length, so that neither mask nor value is cut in two."""

from typing import NamedTuple

from udfs.privacy.kinds import Kind
from udfs.privacy.mask import MASK, Masker

# How much beyond the limit is looked at, so that a value that lies across the limit is seen whole. Longer than any
# value but a PEM block, of which the beginning is enough.
LOOK_AHEAD_CHARACTERS = 2_048
_LONGEST_MASK = 40


class Bounded(NamedTuple):
    """A masked text of bounded length, what was masked in it, and whether it was cut."""

    text: str
    found: dict[Kind, int]
    is_cut: bool


def masked_and_cut(masker: Masker, text: str, max_characters: int) -> Bounded:
    """Mask `text` and return at most `max_characters` of the result. Raises what the masker's name model does.

    What is beyond the limit and LOOK_AHEAD_CHARACTERS isn't even looked at, so time is bounded too. A mask that would
    be cut is left out whole.

    >>> bounded = masked_and_cut(Masker(None), "mail jane@example.com now", 15)
    >>> bounded.text, bounded.is_cut
    ('mail ', True)
    """
    masked = masker.mask(text[: max_characters + LOOK_AHEAD_CHARACTERS])
    if len(masked.text) <= max_characters and len(text) <= max_characters + LOOK_AHEAD_CHARACTERS:
        return Bounded(masked.text, masked.found, False)
    end = max_characters
    for mask in MASK.finditer(masked.text, max(end - _LONGEST_MASK, 0)):
        if mask.start() < end < mask.end():
            end = mask.start()
    return Bounded(masked.text[:end], masked.found, True)
