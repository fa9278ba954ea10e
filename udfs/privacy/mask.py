"""Personal data in a text, replaced by keyed masks: `<EMAIL:kind>` with 16 letters that say nothing of the value.

The letters are BLAKE2b (RFC 7693) of kind and value under a secret key, cut to 64 bits, in letters a to p so that no
detector takes them for a number. The same value under the same key has the same mask, whichever way it was written;
without the key nobody can tell a value from a mask, nor try values out.
"""

import hashlib
import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from udfs.privacy.find import find
from udfs.privacy.folded import BARRIER_CHARACTER
from udfs.privacy.kinds import Kind
from udfs.privacy.name_model import NameModel

DIGEST_BYTES = 8
SHORTEST_KEY = 16  # characters
UNKEYED = "masked"  # stands for the letters where there is no key: then a mask says only what it is
MASK = re.compile(rf"<(?:{'|'.join(Kind)}):(?:[a-p]{{{2 * DIGEST_BYTES}}}|{UNKEYED})>")
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"abcdefghijklmnop")
_MAX_PASSES = 8
_NORTH_AMERICA = re.compile(r"\+ ?1|1[ .\-(]")


class Masked(NamedTuple):
    """A masked text, and how many findings of each kind were masked in it."""

    text: str
    found: dict[Kind, int]


@dataclass(frozen=True, slots=True)
class Masker:
    """Masks texts under one key, or without: then all values of a kind have one mask. `repr` doesn't show the key."""

    key: bytes | None
    name_model: NameModel | None = None

    def __repr__(self) -> str:
        return "Masker(key hidden)"

    def mask(self, text: str) -> Masked:
        """Return `text` with every finding of `find` replaced by its mask; the same text where there is none.

        Masks already there stay as they are, and masking again changes nothing. Raises what the name model does.

        >>> masker = Masker(derived_key("a key of 16 or more"))
        >>> first = masker.mask("Write to Jane@Example.com")
        >>> first.text == masker.mask("Write to jane@example.com").text, masker.mask(first.text).text == first.text
        (True, True)
        >>> len(first.text), first.found
        (33, {<Kind.EMAIL: 'EMAIL'>: 1})
        """
        found: dict[Kind, int] = {}
        for _ in range(_MAX_PASSES):
            # What was masked may have hidden something behind it: again, until there is nothing more.
            masked = self._pass(text, found)
            if masked is text:
                break
            text = masked
        return Masked(text, found)

    def mask_of(self, kind: Kind, value: str) -> str:
        """Return the mask of one value."""
        if self.key is None:
            return f"<{kind}:{UNKEYED}>"
        digest = hashlib.blake2b(
            normalised(kind, value).encode("utf-8", "surrogatepass"),
            digest_size=DIGEST_BYTES,
            key=self.key,
            person=kind.encode(),
        )
        return f"<{kind}:{digest.hexdigest().encode().translate(_LETTERS).decode()}>"

    def _pass(self, text: str, found: dict[Kind, int]) -> str:
        """Mask what one look finds; returns `text` itself where it finds nothing."""
        seen = MASK.sub(lambda mask: BARRIER_CHARACTER * len(mask[0]), text) if "<" in text else text
        findings = find(seen, self.name_model)
        if not findings:
            return text
        parts, at = [], 0
        for start, end, kind in findings:
            if BARRIER_CHARACTER in seen[start:end]:
                continue
            parts += [text[at:start], self.mask_of(kind, text[start:end])]
            at = end
            found[kind] = found.get(kind, 0) + 1
        return "".join([*parts, text[at:]]) if parts else text


def derived_key(secret: str) -> bytes:
    """Return the 32 bytes that masks are keyed with. They, and not the secret, travel to the workers.

    Raises ValueError, without showing it, on a secret of fewer than SHORTEST_KEY characters.

    >>> len(derived_key("a key of 16 or more"))
    32
    """
    if len(secret) < SHORTEST_KEY:
        raise ValueError(f"the key has fewer than {SHORTEST_KEY} characters")
    return hashlib.blake2b(secret.encode(), digest_size=32, person=b"slacktide-mask").digest()


def normalised(kind: Kind, value: str) -> str:
    """Return the one form of `value` that its mask is made of: case, separators, width and country code evened out.

    >>> normalised(Kind.PHONE, "+86 １３８-1234-5678") == normalised(Kind.PHONE, "13812345678")
    True
    """
    if not value.isascii():
        visible = (c for c in unicodedata.normalize("NFKC", value) if unicodedata.category(c) != "Cf")
        value = "".join(visible)
    return _NORMALISERS.get(kind, _as_it_is)(value)


def _as_it_is(value: str) -> str:
    return value


def _alphanumeric(value: str) -> str:
    return "".join(filter(str.isalnum, value)).upper()


def _email(value: str) -> str:
    return " ".join(value.casefold().split())


def _phone(value: str) -> str:
    """Digits without trunk prefix; without the country code where a number of China or North America has one."""
    digits = "".join(filter(str.isdigit, value)).lstrip("0")
    if len(digits) == 13 and digits.startswith("861"):
        return digits[2:]
    return digits[1:] if len(digits) == 11 and _NORTH_AMERICA.match(value) else digits


def _ip(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return value


_NORMALISERS = {
    Kind.EMAIL: _email,
    Kind.NAME: _email,
    Kind.PHONE: _phone,
    Kind.CARD: _alphanumeric,
    Kind.IBAN: _alphanumeric,
    Kind.NATIONAL_ID: _alphanumeric,
    Kind.IP_ADDRESS: _ip,
}
