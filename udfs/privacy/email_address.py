"""E-mail addresses: local part, `@`, domain names, a top-level name of letters; also `name [at] host [dot] org`.

Letters of any alphabet may stand in the local part and the domain, ideographs may not: in Chinese text a word stands
before an address without a blank. Left alone: file names (`icon@2x.png`), package versions (`lodash@4.17`), the
service user of a repository (`git@github.com:`).
"""

from collections.abc import Iterable

from udfs.privacy.detector import Detector, Span, pattern
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind

# Endings of files, none of them a top-level domain.
FILE_ENDINGS = frozenset(
    b"png jpg jpeg gif svg webp bmp ico css scss js mjs jsx ts tsx json yaml yml xml html htm txt csv log pdf exe dll".split()
)
SERVICE_USERS = frozenset((b"git", b"hg", b"svn"))

_LOCAL = rb"[A-Za-z0-9\xC0][A-Za-z0-9\xC0._%+'\-]{0,63}"
_DOMAIN = rb"(?:[A-Za-z0-9\xC0](?:[A-Za-z0-9\xC0\-]{0,62})\.)+(?:xn--[A-Za-z0-9\-]{2,59}|[A-Za-z\xC0]{2,24})"
_AT = rb" ?(?:\[at\]|\(at\)|\{at\}|<at>|\[AT\]|\(AT\)) ?"
_DOT = rb" ?(?:\[dot\]|\(dot\)|\{dot\}|<dot>|\[DOT\]|\(DOT\)|\.) ?"


def _address(text: Folded, start: int, end: int) -> Iterable[Span]:
    data = text.data
    local, _, domain = data[start:end].partition(b"@")
    if domain.rpartition(b".")[2].lower() in FILE_ENDINGS:
        return
    if local.lower() in SERVICE_USERS and data[end : end + 1] in (b":", b"/"):
        return
    yield start, end


def _spelled(text: Folded, start: int, end: int) -> Iterable[Span]:
    yield start, end


EMAIL_DETECTORS = (
    Detector(Kind.EMAIL, pattern(_LOCAL + b"@" + _DOMAIN), _address, needs=(b"@",)),
    Detector(
        Kind.EMAIL,
        pattern(_LOCAL + _AT + rb"[A-Za-z0-9\-]{1,63}(?:" + _DOT + rb"[A-Za-z0-9\-]{1,63}){0,4}" + _DOT + rb"[A-Za-z]{2,24}\b"),
        _spelled,
        needs=(b"[at]", b"(at)", b"{at}", b"<at>", b"[AT]", b"(AT)"),
    ),
)
