r"""A text as it was before it was written into JSON, a URL or HTML: `\n`, `\u0040`, `%40`, `&#64;` are the characters
that they stand for; and a label that runs into its number (`tel13812345678`, `id_1101...`) is parted from it.

Personal data is looked for without the escapes of JSON, in the text as it stands, and then in the whole form. A run of
backslashes of any length is one escape, as JSON within JSON writes them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from udfs.privacy.folded import SYMBOL, Folded, folded
from udfs.privacy.linear_pattern import LinearPattern, Span

_JSON = rb"\\+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[\"'/nrtbfv])"
_CODED = rb"%[2-7][0-9a-fA-F]|&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});"
_LABELS = (
    *("tel", "phone", "mobile", "cell", "fax", "ssn", "id", "no", "nr", "num", "number", "card", "ip", "addr", "user"),
    *("uid", "cpf", "dni", "nie", "nif", "pan", "nino", "passport", "account", "acct", "to", "from", "wechat", "wx"),
)
_LABEL = rf"(?i:(?:^|[^a-z0-9]|\\[bfnrtv])(?:{'|'.join(_LABELS)})_?[0-9])".encode()
_IBAN_LABEL = rb"(?i:(?:^|[^a-z0-9]|\\[bfnrtv])iban_?[a-z]{2}[0-9]{2})"
_BEFORE_VALUE = ((LinearPattern(_LABEL), 1), (LinearPattern(_IBAN_LABEL), 4))  # how long of a match the value is
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": "\n", "v": "\n"}


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """`seen`, and the place in the original of each character of its text and of its end (int64, length + 1)."""

    seen: Folded
    places: npt.NDArray[np.int64]

    def span(self, start: int, end: int) -> Span:
        """Return the characters of the original that characters [start, end) stand for.

        >>> form = JSON_FORM.of(folded(r"x\\u0040y"))
        >>> form.seen.text, form.span(1, 2)
        ('x@y', (1, 7))
        """
        return int(self.places[start]), int(self.places[end])


@dataclass(frozen=True, slots=True)
class Form:
    """A way to read a text: which escapes stand for characters, what tells that it is worth reading, and
    whether labels are parted from what runs into them.
    """

    escapes: LinearPattern
    gate: LinearPattern
    parts_labels: bool

    def may_differ(self, text: Folded) -> bool:
        """Whether `of` may show something of a text that other forms don't. Linear time."""
        return self.gate.is_in(text.data)

    def of(self, text: Folded) -> WrittenOut:
        """Return what `text` stands for. O(length)."""
        characters, places = text.text, np.arange(len(text.text) + 1)
        if escapes := self.escapes.spans(text.data):
            spans = [text.span(*escape) for escape in escapes]
            parts, at = [], 0
            for (start, end), (first, last) in zip(spans, escapes, strict=True):
                parts += [characters[at:start], _character(text.data[first:last].decode("ascii"))]
                at = end
            # All but the first character of each escape go.
            step = np.zeros(len(places) + 1, dtype=np.int64)
            starts, ends = np.array(spans).T
            step[starts + 1] += 1
            step[ends] -= 1
            places = places[np.cumsum(step[:-1]) == 0]
            text = folded("".join([*parts, characters[at:]]))
        return WrittenOut(_parted(text) if self.parts_labels else text, places)


JSON_FORM = Form(LinearPattern(_JSON), LinearPattern(_JSON), parts_labels=False)
WHOLE_FORM = Form(
    LinearPattern(_JSON + b"|" + _CODED), LinearPattern(b"|".join((_CODED, _LABEL, _IBAN_LABEL))), parts_labels=True
)


def _parted(text: Folded) -> Folded:
    """Return `text` with a sign for the last character of each label, so that the value behind it begins a word."""
    data = bytearray(text.data)
    for pattern, width in _BEFORE_VALUE:
        for _, end in pattern.spans(text.data):
            data[end - width - 1] = SYMBOL
    return Folded(bytes(data), text.text, text.places)


def _character(escape: str) -> str:
    """Return the character that an escape stands for; half of a pair is a sign of its own."""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "&":
        code = int(escape[3:-1], 16) if escape[2] in "xX" else int(escape[2:-1])
        return chr(code) if 0 < code < 0x110000 else "\ufffd"
    body = escape.lstrip("\\")
    return chr(int(body[1:], 16)) if len(body) > 1 else _CONTROLS.get(body, body)
