"""IBAN: country, check digits mod 97 and that country's length (ISO 13616); python-stdnum knows the countries."""

import re
import string
from collections.abc import Iterable

from stdnum import iban

from udfs.privacy.detector import Detector, Span, in_word, pattern
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind

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
_ALPHANUMERIC = frozenset((string.ascii_letters + string.digits).encode())
_BEGIN = re.compile(rb"\b[A-Za-z]{2}[0-9]{2}")


def _ibans(text: Folded, start: int, end: int) -> Iterable[Span]:
    """What begins the proposal may be another word, so each place where an IBAN may begin is tried."""
    for begin in _BEGIN.finditer(text.data, start, end):
        last = _end_of_iban(text.data, begin.start())
        if last is not None:
            yield begin.start(), last
            return


def _end_of_iban(data: bytes, start: int) -> int | None:
    """Return where the IBAN that begins at `start` ends: its country says after how many characters."""
    length = LENGTHS.get(data[start : start + 2].decode("ascii").upper())
    if length is None:
        return None
    written = bytearray()
    for place in range(start, min(start + 2 * length, len(data))):
        if data[place] in _SEPARATORS:
            continue
        if data[place] not in _ALPHANUMERIC:
            return None
        written.append(data[place])
        if len(written) == length:
            is_whole = not in_word(data, start, place + 1) and _mod_97(written) == 1
            return place + 1 if is_whole and iban.is_valid(written.decode("ascii"), check_country=False) else None
    return None


def _mod_97(written: bytearray) -> int:
    """Return the number that ISO 13616 forms of an IBAN, modulo 97: 1 where it holds."""
    turned = (written[4:] + written[:4]).decode("ascii").upper()
    return int("".join(str(int(character, 36)) for character in turned)) % 97


IBAN_DETECTORS = (
    Detector(Kind.IBAN, pattern(rb"\b[A-Za-z]{2}[0-9]{2}[ \-]?[A-Za-z0-9](?:[ \-]?[A-Za-z0-9]){9,33}"), _ibans),
)
