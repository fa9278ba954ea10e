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
from functools import cache
from typing import NamedTuple

from udfs.privacy.detector import digits_of
from udfs.privacy.find import find_all
from udfs.privacy.folded import BARRIER_CHARACTER
from udfs.privacy.kinds import Kind
from udfs.privacy.name_model import NameModel

DIGEST_BYTES = 8
SHORTEST_KEY = 16  # characters
UNKEYED = "masked"  # stands for the letters where there is no key: then a mask says only what it is
MASK = re.compile(rf"<(?:{'|'.join(Kind)}):(?:[a-p]{{{2 * DIGEST_BYTES}}}|{UNKEYED})>")
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
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
        findings = find_all(_without_masks(text), self.name_model)
        if not findings:
            return Masked(text, {})
        found: dict[Kind, int] = {}
        parts, at = [], 0
        for (start, end, kind), value in findings:
            parts += [text[at:start], self.mask_of(kind, value)]
            at = end
            found[kind] = found.get(kind, 0) + 1
        return Masked("".join([*parts, text[at:]]), found)

    def mask_of(self, kind: Kind, value: str) -> str:
        """Return the mask of one value."""
        if self.key is None:
            return f"<{kind}:{UNKEYED}>"
        hasher = _hasher(self.key, kind).copy()
        hasher.update(normalised(kind, value).encode("utf-8", "surrogatepass"))
        return f"<{kind}:{hasher.hexdigest().translate(_LETTERS)}>"


def _without_masks(text: str) -> str:
    """Return `text` with BARRIER_CHARACTER for each character of a mask, and for no other."""
    text = text.replace(BARRIER_CHARACTER, "\ufffd")
    return MASK.sub(lambda mask: BARRIER_CHARACTER * len(mask[0]), text) if "<" in text else text


@cache
def _hasher(key: bytes, kind: Kind) -> "hashlib.blake2b":
    """Return the keyed state that the values of a kind are hashed from: to key it anew takes longer than a value."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES, key=key, person=kind.encode())


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


_NEITHER = bytes(code for code in range(128) if not chr(code).isalnum())


def _as_it_is(value: str) -> str:
    return value


def _alphanumeric(value: str) -> str:
    if value.isascii():
        return value.encode().translate(None, _NEITHER).decode().upper()
    return "".join(filter(str.isalnum, value)).upper()


def _email(value: str) -> str:
    return " ".join(value.casefold().split())


def _phone(value: str) -> str:
    """Digits without trunk prefix; without the country code where a number of China or North America has one."""
    digits = (digits_of(value.encode()) if value.isascii() else "".join(filter(str.isdigit, value))).lstrip("0")
    if len(digits) == 13 and digits.startswith("861"):
        return digits[2:]
    return digits[1:] if len(digits) == 11 and _NORTH_AMERICA.match(value) else digits


def _ip(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value.replace("[.]", ".")))
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
