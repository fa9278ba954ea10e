"""IBAN: country, check digits mod 97 and that country's length (ISO 13616); python-stdnum knows the countries."""

from collections.abc import Iterable

from stdnum import iban

from udfs.privacy.detector import Detector, Span, in_word, pattern
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind

_SHORTEST, _LONGEST = 15, 34
_SEPARATORS = b" -"


def _ibans(text: Folded, start: int, end: int) -> Iterable[Span]:
    """The shortest beginning that is a valid IBAN and ends where a group ends: words after it are none of it."""
    data = text.data
    written = bytearray()
    for place in range(start, end):
        if data[place] in _SEPARATORS:
            continue
        written.append(data[place])
        may_end = _SHORTEST <= len(written) <= _LONGEST and not in_word(data, start, place + 1)
        if may_end and _mod_97(written) == 1 and iban.is_valid(written.decode("ascii"), check_country=False):
            yield start, place + 1
            return


def _mod_97(written: bytearray) -> int:
    """Return the number that ISO 13616 forms of an IBAN, modulo 97: 1 where it holds."""
    turned = (written[4:] + written[:4]).decode("ascii").upper()
    return int("".join(str(int(character, 36)) for character in turned)) % 97


IBAN_DETECTORS = (
    Detector(Kind.IBAN, pattern(rb"\b[A-Za-z]{2}[0-9]{2}[ \-]?[A-Za-z0-9](?:[ \-]?[A-Za-z0-9]){9,33}"), _ibans),
)
