"""IBAN: country, check digits mod 97 and that country's length (ISO 13616); python-stdnum knows the countries."""

import re
import string
from collections.abc import Iterable
from functools import cache

from stdnum import numdb

from udfs.privacy.detector import Detector, in_word
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

# Characters of an IBAN by country. Source: SWIFT, IBAN Registry (ISO 13616).
LENGTHS = {
    **{"NO": 15, "BE": 16, "DK": 18, "FI": 18, "FK": 18, "FO": 18, "GL": 18, "NL": 18, "SD": 18, "MK": 19, "SI": 19},
    **{"AT": 20, "BA": 20, "EE": 20, "KZ": 20, "LT": 20, "LU": 20, "MN": 20, "XK": 20, "CH": 21, "HR": 21, "LI": 21},
    **{"LV": 21, "BG": 22, "BH": 22, "CR": 22, "DE": 22, "GB": 22, "GE": 22, "IE": 22, "ME": 22, "RS": 22, "VA": 22},
    **{"AE": 23, "GI": 23, "IL": 23, "IQ": 23, "OM": 23, "SO": 23, "TL": 23, "AD": 24, "CZ": 24, "ES": 24, "MD": 24},
    **{"PK": 24, "RO": 24, "SA": 24, "SE": 24, "SK": 24, "TN": 24, "VG": 24, "LY": 25, "PT": 25, "ST": 25, "IS": 26},
    **{"TR": 26, "BI": 27, "DJ": 27, "FR": 27, "GR": 27, "IT": 27, "MC": 27, "MR": 27, "SM": 27, "AL": 28, "AZ": 28},
    **{"BY": 28, "CY": 28, "DO": 28, "GT": 28, "HN": 28, "HU": 28, "LB": 28, "NI": 28, "PL": 28, "SV": 28, "BR": 29},
    **{"EG": 29, "PS": 29, "QA": 29, "UA": 29, "JO": 30, "KW": 30, "MU": 30, "YE": 30, "MT": 31, "SC": 31, "LC": 32},
    **{"RU": 33},
}
_SEPARATORS = b" -"
_BEGIN = re.compile(rb"\b[A-Za-z]{2}[0-9]{2}")
# ISO 7064: a letter counts as the number that it is to base 36.
_NUMBERS = str.maketrans({letter: str(int(letter, 36)) for letter in string.ascii_uppercase})
_COUNTRIES = numdb.get("iban")
_PART = re.compile(r"([1-9][0-9]*)!([nac])")
_CHARACTERS = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}


def _ibans(text: Folded, start: int, end: int) -> Iterable[Span]:
    """What begins the proposal may be another word, so each place where an IBAN may begin is tried."""
    for begin in _BEGIN.finditer(text.data, start, end):
        last = _end_of_iban(text.data, begin.start())
        if last is not None:
            yield begin.start(), last
            return


def _end_of_iban(data: bytes, start: int) -> int | None:
    """Return where the IBAN that begins at `start` ends: its country says after how many characters."""
    country = data[start : start + 2].decode("ascii").upper()
    if country not in LENGTHS:
        return None
    whole = _characters(LENGTHS[country]).match(data, start, start + 2 * LENGTHS[country])
    if whole is None or in_word(data, start, whole.end()):
        return None
    written = whole[0].translate(None, _SEPARATORS).decode("ascii").upper()
    holds = _mod_97(written) == 1 and _structure(country).fullmatch(written, 4)
    return whole.end() if holds else None


@cache
def _characters(count: int) -> re.Pattern[bytes]:
    """Return the pattern of so many letters and digits with separators between; it has one way to match a text."""
    return re.compile(rb"[A-Za-z0-9](?:[ \-]*[A-Za-z0-9]){%d}" % (count - 1))


@cache
def _structure(country: str) -> re.Pattern[str]:
    """Return the form of what follows a country's check digits, as python-stdnum has it from SWIFT's registry.

    >>> _structure("DE").pattern
    '[0-9]{8}[0-9]{10}'
    """
    known = _COUNTRIES.info(country + "00")[0][1].get("bban")
    if known is None:
        return re.compile(r"(?!)")
    return re.compile(_PART.sub(lambda part: f"{_CHARACTERS[part[2]]}{{{part[1]}}}", known))


def _mod_97(written: str) -> int:
    """Return the number that ISO 13616 forms of an IBAN, modulo 97: 1 where it holds."""
    return int((written[4:] + written[:4]).translate(_NUMBERS)) % 97


IBAN_DETECTORS = (
    Detector(
        Kind.IBAN, LinearPattern(rb"\b[A-Za-z]{2}[0-9]{2}[ \-]{0,2}[A-Za-z0-9](?:[ \-]{0,2}[A-Za-z0-9]){9,33}"), _ibans
    ),
)
