"""China's resident identity number (GB 11643-1999): province, date of birth, check digit by ISO 7064 mod 11-2."""

import calendar
from collections.abc import Iterable

from udfs.privacy.context import follows, words
from udfs.privacy.detector import Detector, in_word, is_alone
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

# First two digits, GB/T 2260: provinces, and 81 to 83 for residents of Hong Kong, Macau and Taiwan.
PROVINCES = frozenset(
    (
        *(11, 12, 13, 14, 15, 21, 22, 23, 31, 32, 33, 34, 35, 36, 37, 41, 42, 43, 44, 45, 46),
        *(50, 51, 52, 53, 54, 61, 62, 63, 64, 65, 71, 81, 82, 83),
    )
)
_WEIGHTS = tuple(2 ** (17 - place) % 11 for place in range(17))  # ISO 7064
_SAID = words("身份证", "身份證", "证件号", "證件號", "id card", "resident id", "identity number", "id number")


def check_character(body: str) -> str:
    """Return the check character of the first 17 digits.

    >>> check_character("11010519491231002")
    'X'
    """
    total = sum(int(digit) * weight for digit, weight in zip(body, _WEIGHTS, strict=True))
    return "10X98765432"[total % 11]


def is_resident_id(written: str) -> bool:
    """Whether 18 characters are a resident identity number.

    >>> is_resident_id("11010519491231002X"), is_resident_id("110105194913310022")
    (True, False)
    """
    return _is_place_and_date(written[:2], written[6:14]) and check_character(written[:17]) == written[17].upper()


def _is_place_and_date(province: str, date: str) -> bool:
    year, month, day = int(date[:4]), int(date[4:6]), int(date[6:])
    known = int(province) in PROVINCES and 1880 <= year <= 2099 and 1 <= month <= 12
    return known and 1 <= day <= calendar.monthrange(year, month)[1]


def _resident_ids(text: Folded, start: int, end: int) -> Iterable[Span]:
    data = text.data
    if not in_word(data, start, end) and is_resident_id(data[start:end].translate(None, b" -").decode()):
        yield start, end


def _first_generation(text: Folded, start: int, end: int) -> Iterable[Span]:
    """15 digits, no check digit: only after a word that says so. Two digits of the year, all of the 20th century."""
    written = text.data[start:end].decode()
    may_be = _is_place_and_date(written[:2], "19" + written[6:12]) and is_alone(text.data, start, end)
    if may_be and follows(text, start, _SAID):
        yield start, end


CHINA_DETECTORS = (
    Detector(
        Kind.NATIONAL_ID,
        LinearPattern(rb"\b[1-8][0-9]{5}[ \-]?(?:18|19|20)[0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{3}[0-9Xx]\b"),
        _resident_ids,
    ),
    Detector(Kind.NATIONAL_ID, LinearPattern(rb"\b[1-8][0-9]{14}\b"), _first_generation, said=_SAID),
)
