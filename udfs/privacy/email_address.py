"""E-mail addresses: local part, `@`, domain names, a top-level name of letters; also `name [at] host [dot] org`,
`name at host dot org`. (`name%40host.org` is one of `written_out.py`.)

Letters of any alphabet may stand in the local part and the domain, ideographs in the domain. In Chinese text a word
stands before an address without a blank, so ideographs are the local part only where nothing else is, and then the last
four of them. Left alone: file names (`icon@2x.png`), package versions (`lodash@4.17`), the
service user of a repository (`git@github.com:`).
"""

from collections.abc import Iterable

from udfs.privacy.detector import Detector
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

# Endings of files, none of them a top-level domain.
FILE_ENDINGS = frozenset(
    b"png jpg jpeg gif svg webp bmp ico css scss js mjs jsx ts tsx json yaml yml xml html htm txt csv log pdf exe "
    b"dll".split()
)
SERVICE_USERS = frozenset((b"git", b"hg", b"svn"))

_LOCAL = rb"[A-Za-z0-9\xC0][A-Za-z0-9\xC0._%+'\-]{0,63}"
_QUOTED = rb'"[A-Za-z0-9][A-Za-z0-9 ._+\-]{0,62}"'
_IDEOGRAPHS = rb"\x90{1,4}"  # a name; in a Chinese sentence what is before it is a word
_TOP = rb"(?:xn--[A-Za-z0-9\-]{2,59}|[A-Za-z\xC0]{2,24})"
_DOMAIN = rb"(?:(?:[A-Za-z0-9\xC0](?:[A-Za-z0-9\xC0\-]{0,62})|\x90{1,20})\.)+" + _TOP
_AT = rb" ?(?:\[at\]|\(at\)|\{at\}|<at>|\[AT\]|\(AT\)) ?"
_DOT = rb" ?(?:\[dot\]|\(dot\)|\{dot\}|<dot>|\[DOT\]|\(DOT\)|\.) ?"
_HOST = rb"[A-Za-z0-9\-]{1,63}"
_IN_WORDS = (
    rb" (?:at|AT) "
    + _HOST
    + rb"(?: (?:dot|DOT) "
    + _HOST
    + rb"){0,3} (?:dot|DOT) (?:com|net|org|edu|gov|io|co|cn|de|uk|fr|jp)\b"
)


def _address(text: Folded, start: int, end: int) -> Iterable[Span]:
    written = text.data[start:end]
    local = written.partition(b"@")[0]
    if written.rpartition(b".")[2].lower() in FILE_ENDINGS:
        return
    if local.lower() in SERVICE_USERS and text.data[end : end + 1] in (b":", b"/"):
        return
    yield start, end


EMAIL_DETECTORS = (
    Detector(
        Kind.EMAIL,
        LinearPattern(b"(?:" + _LOCAL + b"|" + _QUOTED + b"|" + _IDEOGRAPHS + b")@" + _DOMAIN),
        _address,
        needs=(b"@",),
    ),
    Detector(
        Kind.EMAIL,
        LinearPattern(_LOCAL + _AT + _HOST + rb"(?:" + _DOT + _HOST + rb"){0,4}" + _DOT + rb"[A-Za-z]{2,24}\b"),
        needs=(b"[at]", b"(at)", b"{at}", b"<at>", b"[AT]", b"(AT)"),
    ),
    Detector(Kind.EMAIL, LinearPattern(_LOCAL + _IN_WORDS), needs=(b" dot ", b" DOT ")),
)
