"""Personal data in a text: every detector's findings, overlaps resolved.

The rule for overlaps: findings that overlap become one, over all that any of them covers. It has the kind of the
longest of them, secrets before all else; of equally long ones, of the kind that ranks first (kinds.py). So nothing that
was found is left, and no mask cuts another.
"""

from collections.abc import Iterable

from udfs.privacy.card import CARD_DETECTORS
from udfs.privacy.detector import Finding, family
from udfs.privacy.email_address import EMAIL_DETECTORS
from udfs.privacy.folded import BARRIER, BARRIER_CHARACTER, Folded, folded
from udfs.privacy.iban import IBAN_DETECTORS
from udfs.privacy.ip_address import IP_DETECTORS
from udfs.privacy.kinds import RANK, SECRETS, Kind
from udfs.privacy.name_model import NameModel
from udfs.privacy.national_id import LETTERED_ID_DETECTORS, NUMBERED_ID_DETECTORS
from udfs.privacy.national_id_china import CHINA_DETECTORS
from udfs.privacy.phone import PHONE_DETECTORS
from udfs.privacy.screen import Screen
from udfs.privacy.secrets import SECRET_DETECTORS
from udfs.privacy.written_out import JSON_FORM, WHOLE_FORM, Form

FAMILIES = (
    *map(family, SECRET_DETECTORS),
    family(*IBAN_DETECTORS, *LETTERED_ID_DETECTORS),
    family(*CHINA_DETECTORS, *NUMBERED_ID_DETECTORS, *CARD_DETECTORS, *PHONE_DETECTORS),
    *map(family, (*EMAIL_DETECTORS, *IP_DETECTORS)),
)


_SCREEN = Screen(FAMILIES)
_MAX_PASSES = 8


def find(text: str, name_model: NameModel | None = None) -> list[Finding]:
    """Return the personal data in `text`: disjoint findings, ascending; places are characters of `text`.

    Linear time, some 20 ns a byte where there is little to find (tests/bench/bench_privacy.py). Raises what
    `name_model` does, and nothing else.

    >>> find("Mail an jane@example.com, Tel. +49 30 901820")
    [Finding(start=8, end=24, kind=<Kind.EMAIL: 'EMAIL'>), Finding(start=31, end=44, kind=<Kind.PHONE: 'PHONE'>)]
    """
    return [finding for finding, _ in find_all(text, name_model)]


def find_all(text: str, name_model: NameModel | None = None) -> list[tuple[Finding, str]]:
    """Return what `find` does, each with its value: what it stands for where it is written with escapes.

    A finding may have hidden another behind it, so what is found is hidden, and looked again, until there is nothing
    more. Findings hold no BARRIER_CHARACTER.
    """
    if not text:
        return []
    seen = folded(text)
    values: list[tuple[Finding, str]] = []
    for _ in range(_MAX_PASSES):
        # As it stands, `\\njane@example.com` is an address that begins with n; but `id_7@example.com` begins with id_,
        # and `%65` may be part of a password.
        first, seen = _found_in_form(seen, JSON_FORM, name_model)
        found, seen = _settled(seen, name_model)
        last, seen = _found_in_form(seen, WHOLE_FORM, name_model)
        values += [*first, *((each, text[each.start : each.end]) for each in found), *last]
        if not first and not last:
            break
    return sorted(values)


def _found_in_form(text: Folded, form: Form, name_model: NameModel | None) -> tuple[list[tuple[Finding, str]], Folded]:
    """Return what is found in what the text stands for, with its values, and the text with it hidden; places are of
    `text`.
    """
    if not form.may_differ(text):
        return [], text
    written = form.of(text)
    found = _settled(written.seen, name_model)[0]
    values = [(Finding(*written.span(start, end), kind), written.seen.text[start:end]) for start, end, kind in found]
    return values, text.hiding([(start, end) for (start, end, _), _ in values]) if values else text


def _settled(text: Folded, name_model: NameModel | None) -> tuple[list[Finding], Folded]:
    """Return all that is found in this form of a text, ascending, and the text with it hidden."""
    found: list[Finding] = []
    for _ in range(_MAX_PASSES):
        more = _found_once(text, name_model)
        if found or BARRIER in text.data:
            more = [each for each in more if BARRIER_CHARACTER not in text.text[each.start : each.end]]
        if not more:
            break
        found += more
        text = text.hiding([(start, end) for start, end, _ in more])
    return sorted(found), text


def _found_once(text: Folded, name_model: NameModel | None) -> list[Finding]:
    """Return what one look finds."""
    places = text.places
    found = [Finding(*(span if places is None else text.span(*span)), kind) for span, kind in _SCREEN.findings(text)]
    if name_model is not None:
        found += _names(name_model(text.text), len(text.text))
    return _merged(found) if len(found) > 1 else found


def _names(spans: Iterable[tuple[int, int]], length: int) -> list[Finding]:
    """Return the model's spans as findings; what lies outside the text or is empty is none."""
    return [Finding(start, end, Kind.NAME) for start, end in spans if 0 <= start < end <= length]


def _merged(found: list[Finding]) -> list[Finding]:
    found.sort()
    merged: list[Finding] = []
    strongest = (False, 0, 0)
    for finding in found:
        strength = (finding.kind in SECRETS, finding.end - finding.start, -RANK[finding.kind])
        if not merged or finding.start >= merged[-1].end:
            merged.append(finding)
            strongest = strength
            continue
        last = merged[-1]
        kind = finding.kind if strength > strongest else last.kind
        merged[-1] = Finding(last.start, max(last.end, finding.end), kind)
        strongest = max(strongest, strength)
    return merged
