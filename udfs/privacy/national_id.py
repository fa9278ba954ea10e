"""National ids of other countries: one row each, with its form, its check and where it needs a word before it.

Check digits are python-stdnum's, which is kept up with the countries' own rules. A number whose form is only a run of
digits is taken without a word before it only where groups or a strong check show what it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stdnum.br import cpf
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.in_ import aadhaar
from stdnum.it import codicefiscale
from stdnum.kr import rrn
from stdnum.us import itin, ssn

from udfs.privacy.context import Words, follows, words
from udfs.privacy.detector import Detector, is_alone
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span


@dataclass(frozen=True, slots=True)
class NationalId:
    """`form` is an RE2 pattern, `is_valid` judges what it found without separators, in capitals. `said`: if not None,
    one of these words must stand before it.
    """

    country: str
    form: bytes
    is_valid: Callable[[str], bool]
    said: Words | None = None


def _is_us(number: str) -> bool:
    return bool(ssn.is_valid(number) or itin.is_valid(number))


def _is_nino(number: str) -> bool:
    """HMRC, NIM39110: prefixes that were never given. There is no check digit."""
    return number[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


def _is_taiwan(number: str) -> bool:
    """Taiwan: a letter for the place as two digits, weights 1 9 8 ... 1 1, sum divisible by 10."""
    place = 10 + "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0])
    digits = [place // 10, place % 10, *map(int, number[1:])]
    return sum(d * w for d, w in zip(digits, (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), strict=True)) % 10 == 0


def _is_hong_kong(number: str) -> bool:
    """Hong Kong: letters count 10 to 35, a missing first one 36; weights 9 to 2; check digit mod 11, A for 10."""
    letters, check = number[:-1].rjust(8), number[-1]
    values = [36 if c == " " else int(c, 36) for c in letters]
    total = sum(v * w for v, w in zip(values, range(9, 1, -1), strict=True))
    return (total + int(check, 16)) % 11 == 0


def _is_rrn(number: str) -> bool:
    """Korea: since October 2020 the last digits are drawn, so only the date is checked."""
    try:
        rrn.get_birth_date(number)
    except Exception:  # stdnum's own errors, all of them "not valid"
        return False
    return True


def _always(_: str) -> bool:
    return True


_US = words("ssn", "social security", "social", "itin", "tax id", "taxpayer", "社会安全号", "社安号")
_GERMANY = words(
    "steuer-id",
    "steuer-idnr",
    "steueridentifikationsnummer",
    "steuernummer",
    "steuer-nr",
    "steuer",
    "idnr",
    "tin",
    "tax id",
    "identifikationsnummer",
)
_PASSPORT = words("passport", "护照", "護照")
_BRAZIL = words("cpf")
_INDIA = words("aadhaar", "aadhar", "uid", "uidai")

NUMBERED_IDS = (
    NationalId("US", rb"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", _is_us),
    NationalId("US", rb"\b[0-9]{3}[ .]?[0-9]{2}[ .]?[0-9]{4}\b", _is_us, _US),
    NationalId("US", rb"\b[0-9]{9}\b", _always, _PASSPORT),
    NationalId("DE", rb"\b[1-9][0-9] [0-9]{3} [0-9]{3} [0-9]{3}\b", idnr.is_valid),
    NationalId("DE", rb"\b[1-9][0-9][ /]?[0-9]{3}[ /]?[0-9]{3}[ /]?[0-9]{3}\b", idnr.is_valid, _GERMANY),
    NationalId(
        "FR",
        rb"\b[1-478] ?[0-9]{2} ?(?:0[1-9]|1[0-2]|[2-9][0-9]) ?(?:[0-9]{2}|2[ABab]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b",
        nir.is_valid,
    ),
    NationalId("KR", rb"\b[0-9]{6}-[1-8][0-9]{6}\b", _is_rrn),
    NationalId("BR", rb"\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b", cpf.is_valid),
    NationalId("BR", rb"\b[0-9]{11}\b", cpf.is_valid, _BRAZIL),
    NationalId("IN", rb"\b[2-9][0-9]{3}[ \-][0-9]{4}[ \-][0-9]{4}\b", aadhaar.is_valid),
    NationalId("IN", rb"\b[2-9][0-9]{11}\b", aadhaar.is_valid, _INDIA),
)
LETTERED_IDS = (
    NationalId(
        "GB",
        rb"\b(?i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]|QQ) ?[0-9]{2}[ \-]?[0-9]{2}[ \-]?[0-9]{2}[ \-]?(?i:[A-D])\b",
        _is_nino,
    ),
    NationalId("ES", rb"\b[0-9]{8}[ \-]?[A-HJ-NP-TV-Za-hj-np-tv-z]\b", dni.is_valid),
    NationalId("ES", rb"\b[XYZxyz][ \-]?[0-9]{7}[ \-]?[A-HJ-NP-TV-Za-hj-np-tv-z]\b", nie.is_valid),
    NationalId(
        "IT",
        rb"\b(?i:[A-Z]{3} ?[A-Z]{3} ?[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2} ?"
        rb"[A-Z][0-9LMNPQRSTUV]{3}[A-Z])\b",
        codicefiscale.is_valid,
    ),
    NationalId("IN", rb"\b[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]\b", _always),  # PAN
    NationalId("TW", rb"\b[A-Z][1289][0-9]{8}\b", _is_taiwan),
    NationalId("HK", rb"\b[A-Z]{1,2}[0-9]{6}\([0-9A]\)", _is_hong_kong),
    NationalId("CN", rb"\b(?:[EeGg][0-9]{8}|[EeDdSsPp][A-Za-z][0-9]{7})\b", _always, _PASSPORT),
)
_SEPARATORS = b" -/.()"


def _check(row: NationalId) -> Callable[[Folded, int, int], Iterable[Span]]:
    def check(text: Folded, start: int, end: int) -> Iterable[Span]:
        if not is_alone(text.data, start, end):
            return ()
        number = text.data[start:end].translate(None, _SEPARATORS).decode("ascii").upper()
        is_one = row.is_valid(number) and (row.said is None or follows(text, start, row.said))
        return ((start, end),) if is_one else ()

    return check


def _detectors(rows: Iterable[NationalId]) -> tuple[Detector, ...]:
    return tuple(Detector(Kind.NATIONAL_ID, LinearPattern(row.form), _check(row), said=row.said) for row in rows)


NUMBERED_ID_DETECTORS = _detectors(NUMBERED_IDS)
LETTERED_ID_DETECTORS = _detectors(LETTERED_IDS)
