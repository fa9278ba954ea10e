"""Payment cards: a known issuer's first digits, that issuer's lengths, Luhn's check digit (ISO/IEC 7812-1).

Of random numbers with such a beginning and length one in ten passes Luhn's check: an order number that does is masked.
Digits may stand together or in the groups printed on cards.
"""

from collections.abc import Iterable

from udfs.privacy.detector import Detector, Span, digits_of, is_alone, pattern
from udfs.privacy.digit_groups import shaped_windows
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind

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
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def luhn_is_valid(digits: str) -> bool:
    """Whether the last digit is Luhn's check digit of the others.

    >>> luhn_is_valid("4111111111111111"), luhn_is_valid("4111111111111112")
    (True, False)
    """
    numbers = list(map(int, digits))
    return (sum(numbers[-1::-2]) + sum(_DOUBLED[number] for number in numbers[-2::-2])) % 10 == 0


def is_card(digits: str) -> bool:
    """Whether `digits` could be a card's number."""
    known = any(
        len(digits) in lengths and first <= int(digits[:compared]) <= last for first, last, compared, lengths in ISSUERS
    )
    return known and luhn_is_valid(digits) and len(set(digits)) > 1


def _cards(text: Folded, start: int, end: int) -> Iterable[Span]:
    for first, last in shaped_windows(text.data, start, end, GROUPINGS):
        if is_card(digits_of(text.data[first:last])) and is_alone(text.data, first, last):
            yield first, last


CARD_DETECTORS = (Detector(Kind.CARD, pattern(rb"\b[0-9](?:[ \-]?[0-9]){12,}"), _cards),)
