"""Phone numbers: international (`+`), China's, North America's, national ones with a trunk 0 in groups, and any number
after a word such as `tel` or 电话.

Google's phonenumbers knows every country's plan, at a cost of milliseconds a kilobyte (docs/privacy.md); a mask needs
to know only that it is a phone number. Left alone: bare runs of digits that nothing calls a phone, dates, amounts.
"""

import re
from collections.abc import Iterable

from udfs.privacy.context import follows, words
from udfs.privacy.detector import Detector, digits_of, is_alone
from udfs.privacy.digit_groups import group_ends
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

SHORTEST, LONGEST = 7, 15  # ITU-T E.164
# Most digits of a number with its country code, where a plan fixes it. Source: ITU-T, national numbering plans.
MOST_DIGITS = {
    **{"1": 11, "7": 11, "20": 12, "27": 11, "30": 12, "31": 11, "32": 11, "33": 11, "34": 11, "36": 11, "41": 11},
    **{"44": 12, "45": 10, "46": 12, "47": 10, "48": 11, "52": 13, "54": 13, "55": 13, "60": 12, "61": 11, "62": 14},
    **{"63": 12, "64": 12, "65": 10, "66": 11, "81": 12, "82": 12, "84": 12, "86": 13, "90": 12, "91": 12, "92": 12},
    **{"351": 12, "353": 12, "358": 13, "852": 11, "853": 11, "886": 12, "966": 12, "971": 12, "972": 12},
}

_SAID = words(
    *("tel", "telephone", "phone", "mobile", "cell", "call", "fax", "whatsapp", "sms", "text me at", "ph", "wechat"),
    *("telefon", "handy", "téléphone", "portable", "teléfono", "móvil", "cellulare", "telefone", "celular"),
    *("电话", "電話", "手机", "手機", "联系方式", "聯繫方式", "致电", "拨打", "微信", "传真", "携帯", "전화", "휴대폰"),
)
_DATE = re.compile(rb"(?:[0-9]{4}[./\- ][0-9]{1,2}[./\- ][0-9]{1,2}|[0-9]{1,2}[./\-][0-9]{1,2}[./\-][0-9]{4})(?![0-9])")

_GROUP_BEFORE, _GROUP_AFTER = re.compile(rb"[0-9] \Z"), re.compile(rb" [0-9]")
_OPERANDS = tuple(bytes([c]) for c in b"0123456789)]")
_ZIP = re.compile(rb"[0-9]{5}-[0-9]{4}")  # of the United States


def _international(text: Folded, start: int, end: int) -> Iterable[Span]:
    """`+`, a country code and at most the digits that country's numbers have: a number after it is none of it."""
    data = text.data
    before = data[max(start - 2, 0) : start].rstrip(b" ")[-1:]
    if before == b")" or (data[start + 1 : start + 2] == b" " and before in _OPERANDS):
        return  # a sum
    most = _most_digits(digits_of(data[start : start + 6])) + (b"(0)" in data[start:end])
    yield from _first_whole(data, start, end, 8, most)


def _first_whole(data: bytes, start: int, end: int, fewest: int, most: int) -> Iterable[Span]:
    """Yield [start, last) for the last group at which a number of `fewest` to `most` digits can end, if any."""
    for last in group_ends(data, start, end):
        count = len(digits_of(data[start:last]))
        if count < fewest:
            return
        if count <= most and is_alone(data, start, last):
            yield start, last
            return


def _most_digits(digits: str) -> int:
    return next((most for code, most in MOST_DIGITS.items() if digits.startswith(code)), LONGEST)


def _double_zero(text: Folded, start: int, end: int) -> Iterable[Span]:
    """00 for `+`: order numbers begin so too, so it takes groups or a word."""
    for first, last in _first_whole(text.data, start, end, 10, LONGEST + 2):
        if len(digits_of(text.data[first:last])) < last - first or follows(text, first, _SAID):
            yield first, last


def _alone(text: Folded, start: int, end: int) -> Iterable[Span]:
    if is_alone(text.data, start, end):
        yield start, end


def _north_american(text: Folded, start: int, end: int) -> Iterable[Span]:
    """One separator throughout, but a blank may follow the 1: `206.768 2827` is a figure."""
    written = text.data[start:end]
    signs = [sign for sign in written if sign in b" .-"]
    if written[:2] == b"1 ":
        signs = signs[1:]
    if b"(" not in written and len(set(signs)) != 1:
        return
    if signs[-1:] == [ord(" ")] and _goes_on(text.data, start, end):
        return
    if is_alone(text.data, start, end):
        yield start, end


def _goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether groups of digits with blanks between go on before or after: then it is a longer figure."""
    return _GROUP_BEFORE.search(data, max(start - 2, 0), start) is not None or _GROUP_AFTER.match(data, end) is not None


def _trunk_zero(text: Folded, start: int, end: int) -> Iterable[Span]:
    """0 and 9 to 12 digits in groups with one kind of separator after the first; no date, no time."""
    data = text.data
    while start >= 0:
        if not _DATE.match(data, start, end):
            for first, last in _first_whole(data, start, end, 9, 12):
                if len(set(data[first:last]) & frozenset(b" .-/")) <= 2 and not _ZIP.fullmatch(data, first, last):
                    yield first, last
                    return
        # What is before it may be a date: the number then begins at a later group.
        start = data.find(b" 0", start, end) + 1 or -1


def _said(text: Folded, start: int, end: int) -> Iterable[Span]:
    if follows(text, start, _SAID) and not _DATE.match(text.data, start, end):
        yield from _first_whole(text.data, start, end, SHORTEST, LONGEST)


# Seven digits or more; no date that begins with its year, which are many.
_ANY_NUMBER = (
    rb"\(?\b(?:[0-9]{7,15}|[0-9]{1,3}\)?(?:[ .\-]?[0-9]){6,14}|[0-9]{5}\)?(?:[ .\-]?[0-9]){2,10}"
    rb"|[0-9]{4}\)?[ .\-]?[0-9]{3}(?:[ .\-]?[0-9]){0,11})\b"
)

PHONE_DETECTORS = (
    Detector(
        Kind.PHONE,
        LinearPattern(rb"\+ ?[1-9][0-9]{0,3}(?:[ .\-]{0,2}(?:\([0-9]{1,4}\)|[0-9]{1,13})){1,7}"),
        _international,
        needs=(b"+",),
    ),
    Detector(
        Kind.PHONE,
        LinearPattern(rb"\b00[ \-]?[1-9][0-9]{0,2}(?:[ .\-]?[0-9]{2,13}){1,6}"),
        _double_zero,
        needs=(b"00",),
    ),
    # China: mobile, then fixed lines with their area code.
    Detector(
        Kind.PHONE,
        LinearPattern(rb"\b(?:(?:00)?86[ \-]?)?1[3-9][0-9](?:(?:[ \-]?[0-9]{4}){2}|(?:\.[0-9]{4}){2})\b"),
        _alone,
    ),
    Detector(
        Kind.PHONE,
        LinearPattern(
            rb"(?:\(0(?:10|2[0-9]|[3-9][0-9]{2})\) ?|\b0(?:10|2[0-9]|[3-9][0-9]{2})[ \-])"
            rb"[2-8][0-9]{2,3}[ \-]?[0-9]{4}\b"
        ),
        _alone,
        needs=(b"0",),
    ),
    # North America (NANP): area code and exchange begin with 2 to 9.
    Detector(
        Kind.PHONE,
        LinearPattern(rb"(?:\b1[ .\-])?(?:\([2-9][0-9]{2}\) ?|\b[2-9][0-9]{2}[ .\-])[2-9][0-9]{2}[ .\-][0-9]{4}\b"),
        _north_american,
    ),
    # Brazil and others with an area code in brackets.
    Detector(Kind.PHONE, LinearPattern(rb"\(0?[1-9][0-9]{1,3}\) ?[0-9]{3,5}[ \-]?[0-9]{4}\b"), _alone, needs=(b"(",)),
    Detector(
        Kind.PHONE, LinearPattern(rb"\b8 ?\(?[3-9][0-9]{2}\)?[ \-][0-9]{3}-[0-9]{2}-[0-9]{2}\b"), _alone
    ),  # Russia
    Detector(Kind.PHONE, LinearPattern(rb"\b07[1-9][0-9]{8}\b"), _alone, needs=(b"07",)),  # United Kingdom, mobile
    Detector(Kind.PHONE, LinearPattern(rb"\b0[1-9][0-9]{0,4}(?:[ .\-/][0-9]{2,8}){1,4}\b"), _trunk_zero, needs=(b"0",)),
    Detector(Kind.PHONE, LinearPattern(_ANY_NUMBER), _said, said=_SAID),
)
