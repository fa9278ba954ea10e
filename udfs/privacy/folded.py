"""A text as one byte a character, so that patterns see one form of every digit, letter and separator.

A character that NFKC turns into one ASCII character becomes it: full-width digits and letters, other scripts' decimal
digits, mathematical letters. Dashes become `-`, spaces of any width a blank. What is left becomes a byte that says only
what it is: a letter, an ideograph, a symbol. What has no width of its own (combining marks, zero-width characters,
direction marks) is left out. A byte is a character, so a place found in the bytes is a place in the text.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

LETTER, IDEOGRAPH, SYMBOL, BARRIER = 0xC0, 0x90, 0x95, 0x9F
WIDE_COLON = 0x97  # of a sentence, not of a time or an address
_INVISIBLE = 0x98
# Stands for every character of a mask that is already there: a code point that Unicode gives to no character.
BARRIER_CHARACTER = "\ufdd0"


@dataclass(frozen=True)
class Folded:
    """`data` is what patterns see; `text` is the text itself; `places` (int64) has the place in `text` of each byte of
    `data`, or is None where they are the same.
    """

    data: bytes
    text: str
    places: npt.NDArray[np.int64] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of `text` that the bytes [start, end) stand for, with the marks that belong to them.

        >>> folded("cafe\\u0301 1").span(0, 4)
        (0, 5)
        """
        if self.places is None:
            return start, end
        following = self.places[end] if end < len(self.places) else len(self.text)
        return int(self.places[start]), int(following)

    @cached_property
    def lower(self) -> bytes:
        """The text in lower case, in UTF-8: words are looked for in it."""
        return self.text.lower().encode("utf-8", "surrogatepass")

    def before(self, start: int, width: int) -> str:
        """Return at most `width` characters of the text before byte `start`, in lower case, back to the last mask."""
        at = start if self.places is None else int(self.places[start])
        words = self.text[max(at - width, 0) : at]
        return words.rpartition(BARRIER_CHARACTER)[2].lower()

    def hiding(self, spans: Sequence[tuple[int, int]]) -> "Folded":
        """Return the same with BARRIER for every character of `spans`: disjoint places in `text`, ascending."""
        parts, at = [], 0
        for start, end in spans:
            parts += [self.text[at:start], BARRIER_CHARACTER * (end - start)]
            at = end
        text = "".join([*parts, self.text[at:]])
        if self.places is not None:
            return folded(text)
        data = bytearray(self.data)
        for start, end in spans:
            data[start:end] = bytes((BARRIER,)) * (end - start)
        return Folded(bytes(data), text, None)


def folded(text: str) -> Folded:
    """Return the folded form. O(length), for ASCII without a step per character.

    >>> folded("１３８－Ａ\\u200b٣好").data
    b'138-A3\\x90'
    """
    if text.isascii():
        return Folded(text.encode("ascii"), text, None)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    folded_codes = _table()[codes]
    data = folded_codes.tobytes()
    if _INVISIBLE not in data:
        return Folded(data, text, None)
    visible = folded_codes != _INVISIBLE
    return Folded(folded_codes[visible].tobytes(), text, np.flatnonzero(visible))


@cache
def _table() -> npt.NDArray[np.uint8]:
    """Return the byte of every code point, uint8 (0x110000,). Built once a process, in some 50 ms."""
    table = np.full(0x110000, SYMBOL, dtype=np.uint8)
    table[:128] = np.arange(128)
    table[0x20000:0x40000] = IDEOGRAPH
    table[0xE0000:0xE0200] = _INVISIBLE
    for code in (*range(128, 0xD800), *range(0xE000, 0x10000), *range(0x1D400, 0x1D800), *range(0x1F100, 0x1F200)):
        table[code] = _byte(chr(code))
    table[ord(BARRIER_CHARACTER)] = BARRIER
    return table


# Unicode categories that stand for themselves whatever the character: formats and marks, dashes, blanks, line breaks.
_OF_CATEGORY = {
    **dict.fromkeys(("Cf", "Mn", "Me"), _INVISIBLE),
    "Pd": ord("-"),
    "Zs": ord(" "),
    **dict.fromkeys(("Zl", "Zp"), ord("\n")),
}


# Signs of a Chinese sentence: not the `,` and `:` that stand within numbers.
_SIGNS = {"，": SYMBOL, "：": WIDE_COLON, "−": ord("-")}


def _byte(character: str) -> int:
    category = unicodedata.category(character)
    known = _SIGNS.get(character, _OF_CATEGORY.get(category))
    if known is not None:
        return known
    digit = unicodedata.decimal(character, None)
    compatible = str(digit) if digit is not None else unicodedata.normalize("NFKC", character)
    if len(compatible) == 1 and compatible.isascii():
        return ord(compatible)
    if category == "Lo":
        return IDEOGRAPH
    return LETTER if category[0] in "LM" else SYMBOL
