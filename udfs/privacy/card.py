"""Payment cards: a known issuer's first digits, that issuer's lengths, Luhn's check digit (ISO/IEC 7812-1).

Of random numbers with such a beginning and length one in ten passes Luhn's check: an order number that does is masked.
Digits may stand together or in the groups printed on cards.
"""

from collections.abc import Iterable
from functools import cache

from udfs.privacy.detector import Detector, digits_of, is_alone
from udfs.privacy.digit_groups import by_width, shaped_windows
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

# (first, last, digits compared, lengths). Source: ISO/IEC 7812 issuer ranges as the card schemes publish them.
ISSUERS: tuple[tuple[int, int, int, tuple[int, ...]], ...] = (
    (4, 4, 1, (13, 16, 19)),  # Visa
    (51, 55, 2, (16,)),  # Mastercard
    (2221, 2720, 4, (16,)),
    (34, 34, 2, (15,)),  # American Express
    (37, 37, 2, (15,)),
    (6011, 6011, 4, (16, 19)),  # Discover
    (644, 659, 3, (16, 19)),
    (62, 62, 2, (16, 17, 18, 19)),  # UnionPay
    (81, 81, 2, (16, 17, 18, 19)),
    (3528, 3589, 4, (16, 17, 18, 19)),  # JCB
    (300, 305, 3, (14, 16)),  # Diners
    (36, 36, 2, (14,)),
    (38, 39, 2, (14, 16)),
    (2200, 2204, 4, (16, 17, 18, 19)),  # Mir
    (50, 50, 2, (13, 14, 15, 16, 17, 18, 19)),  # Maestro
    (56, 58, 2, (13, 14, 15, 16, 17, 18, 19)),
    (6304, 6304, 4, (13, 14, 15, 16, 17, 18, 19)),
    (60, 60, 2, (16,)),  # RuPay
)
# As printed on cards and as people type them.
GROUPINGS = (
    *((length,) for length in range(13, 20)),
    (4, 4, 4, 4),
    (4, 4, 4, 4, 3),
    (4, 6, 5),
    (4, 6, 4),
    (6, 13),
    (4, 4, 4, 1),
    (4, 4, 4, 2),
    (4, 4, 4, 3),
    (4, 4, 4, 4, 1),
    (4, 4, 4, 4, 2),
)
_SHAPES = by_width(GROUPINGS)
# Each digit as Luhn counts every other one: doubled, and the digits of that added.
_DOUBLED = bytes.maketrans(b"0123456789", b"0246813579")


def luhn_is_valid(digits: str) -> bool:
    """Whether the last digit is Luhn's check digit of the others.

    >>> luhn_is_valid("4111111111111111"), luhn_is_valid("4111111111111112")
    (True, False)
    """
    data = digits.encode("ascii")
    counted = data[-1::-2] + data[-2::-2].translate(_DOUBLED)
    return (sum(counted) - len(data) * ord("0")) % 10 == 0


def is_card(digits: str) -> bool:
    """Whether `digits` could be a card's number."""
    return len(digits) in _lengths(digits[:4]) and luhn_is_valid(digits) and len(set(digits)) > 1


@cache
def _lengths(beginning: str) -> frozenset[int]:
    """Return how many digits a card that begins with these four may have."""
    known = (lengths for first, last, compared, lengths in ISSUERS if first <= int(beginning[:compared]) <= last)
    return frozenset(length for lengths in known for length in lengths)


def _cards(text: Folded, start: int, end: int) -> Iterable[Span]:
    for first, last in shaped_windows(text.data, start, end, _SHAPES):
        signs = text.data[first:last].translate(None, b"0123456789 -")
        if signs and (len(set(text.data[first:last]) & frozenset(b" -./_")) > 1 or len(signs) != 3):
            continue  # figures: on cards dots stand as blanks do, one kind of them throughout
        if is_card(digits_of(text.data[first:last])) and is_alone(text.data, first, last):
            yield first, last


CARD_DETECTORS = (Detector(Kind.CARD, LinearPattern(rb"\b[0-9](?:(?: {0,2}|[\-./_])[0-9]){12,}"), _cards),)
