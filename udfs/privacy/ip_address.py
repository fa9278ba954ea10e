"""IP addresses. Left alone: version numbers of four parts, addresses of no one (loopback, unspecified, broadcast)."""

import ipaddress
import re
from collections.abc import Iterable

from udfs.privacy.detector import Detector, in_word, is_alone
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

# What stands before a version number, in lower case.
_VERSION = re.compile(
    r"(?:\bv|version|ver\.?|release|build|revision|firmware|driver|section|sec\.|chapter|clause|§|版本号?|版|發行)"
    r"(?: is)?[ \t:：=\"'是为]*\Z"
)
_NAME_VERSION = re.compile(r"[a-z][-/]\Z|[=<>~^]=[ \t]*\Z")  # chrome/1.2.3.4, pkg==1.2.3.4
_CONTEXT_CHARACTERS = 24
_GROUPS_SKIPPED = 3


def _ipv4(text: Folded, start: int, end: int) -> Iterable[Span]:
    octets = text.data[start:end].replace(b"[.]", b".").split(b".")
    if any(int(octet) > 255 or (octet[:1] == b"0" and len(octet) > 1) for octet in octets):
        return
    if octets[0] in (b"0", b"127", b"255") or not _stands_alone(text.data, start, end):
        return
    before = text.before(start, _CONTEXT_CHARACTERS)
    if not _VERSION.search(before) and not _NAME_VERSION.search(before):
        yield start, end


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """As `is_alone`, but a port or a prefix length may follow."""
    if end < len(data) and data[end : end + 1] in (b":", b"/"):
        return not in_word(data, start, end) and data[max(start - 1, 0) : start] != b"."
    return is_alone(data, start, end)


def _ipv6(text: Folded, start: int, end: int) -> Iterable[Span]:
    """The address that begins at the first group that no word runs into: `node:2001:db8::1` has one more before."""
    data = text.data
    if data.count(b":", start, end) < 7 and b"::" not in data[start:end]:
        return  # times, MAC addresses
    for _ in range(_GROUPS_SKIPPED):
        written = _address(data, start, end)
        if written is not None:
            yield start, start + len(written)
            return
        start = data.find(b":", start, end) + 1
        if start == 0:
            return


def _address(data: bytes, start: int, end: int) -> str | None:
    """Return what of [start, end) is an address of someone, from its start on."""
    written = data[start:end].decode("ascii")
    while written.endswith(":") and not written.endswith("::"):
        written = written[:-1]  # of the sentence
    if in_word(data, start, start + len(written)):
        return None
    try:
        address = ipaddress.IPv6Address(written)
    except ValueError:
        return None
    groups = [group for group in written.split(":") if group]
    if address.is_loopback or address.is_unspecified or len(groups) < 2:
        return None
    # `ab::cd` is a name in a program; an address has digits and more than that.
    is_someones = any(character.isdigit() for character in written) and (len(groups) > 2 or len(groups[0]) == 4)
    return written if is_someones else None


IP_DETECTORS = (
    Detector(
        Kind.IP_ADDRESS,
        LinearPattern(rb"\b[0-9]{1,3}(?:(?:\.[0-9]{1,3}){3}|(?:\[\.\][0-9]{1,3}){3})\b"),
        _ipv4,
        needs=(b".",),
    ),
    Detector(
        Kind.IP_ADDRESS,
        LinearPattern(
            rb"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:(?:[0-9A-Fa-f]{0,4}:){0,8}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{1,4})?"
        ),
        _ipv6,
        needs=(b"::", b":"),
    ),
)
