"""Keys, tokens and passwords: by the form their issuers give them, and by the word that stands before them.

Forms are those that the issuers document, so that scanners find them (GitHub, GitLab, Slack, OpenAI, Stripe...); the
list follows that of gitleaks and of GitHub's secret scanning.
"""

import re
from collections.abc import Iterable

from udfs.privacy.context import words
from udfs.privacy.detector import Detector, in_word
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import LinearPattern, Span

TOKEN_FORMS = (
    rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS
    rb"AIza[A-Za-z0-9_\-]{35}",  # Google API
    rb"(?:ya29\.[A-Za-z0-9_\-]{20,}|GOCSPX-[A-Za-z0-9_\-]{28})",  # Google OAuth
    rb"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
    rb"gl(?:pat|dt|rt)-[A-Za-z0-9_\-]{20,}",  # GitLab
    rb"(?:xox[abeoprs]-[A-Za-z0-9\-]{10,}|xapp-[0-9]-[A-Za-z0-9\-]{10,})",  # Slack
    rb"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_\-]{20,}",
    rb"sk-(?:ant-|proj-|svcacct-|or-)?[A-Za-z0-9_\-]{20,}",  # OpenAI, Anthropic, DeepSeek, OpenRouter
    rb"(?:hf_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|(?:gsk_|xai-|pplx-)[A-Za-z0-9]{32,})",
    rb"(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})",  # Stripe
    rb"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_\-]{50,}|dckr_pat_[A-Za-z0-9_\-]{20,})",
    rb"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}",  # SendGrid
    rb"(?:SK|AC)[0-9a-f]{32}",  # Twilio
    rb"(?:LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{32})",  # Alibaba Cloud, Tencent Cloud
    rb"(?:do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})",
    rb"(?:nvapi-[A-Za-z0-9_\-]{32,}|tvly-[A-Za-z0-9\-]{20,}|\b[0-9a-f]{32}\.[A-Za-z0-9]{16})",  # NVIDIA, Tavily, Zhipu
    rb"(?:lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{40,}|figd_[A-Za-z0-9_\-]{40,})",
    rb"(?:ATATT3[A-Za-z0-9_\-=]{20,}|NRAK-[A-Z0-9]{27}|PMAK-[a-f0-9]{24}-[a-f0-9]{34}|phx_[A-Za-z0-9]{40,})",
    rb"(?:sq0(?:atp|csp)-[A-Za-z0-9_\-]{22,}|EAACEdEose0cBA[A-Za-z0-9]{16,}|key-[0-9a-f]{32})",  # Square, Mailgun
    rb"(?:sbp_[a-f0-9]{40}|rubygems_[a-f0-9]{48}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|ops_eyJ[A-Za-z0-9+/=]{40,})",
    rb"\b[MNO][A-Za-z0-9]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}",  # Discord bot
    rb"[0-9]{8,10}:AA[A-Za-z0-9_\-]{32,33}",  # Telegram bot
    rb"(?:AccountKey|SharedAccessKey|sig)=[A-Za-z0-9+/%]{30,}={0,2}",  # Azure
    rb"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?(?:\.[A-Za-z0-9_\-]+){0,2}",  # JWT, JWE
)

_PEM = (
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
    rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)"
)
_BEARER = rb"(?i)\b(?:bearer|basic|token)[ :\x97]+[A-Za-z0-9._~+/\-]{16,}={0,2}"
_IN_URL = rb"[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/@:\x90\x9F]{0,64}:[^\s/@\x90\x9F]{1,128}@"
_NAMES = (
    rb"(?:pass(?:word|wd|phrase)|pwd|passcode|secret(?:[ _\-]?(?:access[ _\-]?)?key)?|client[ _\-]?secret|"
    rb"(?:api|access|auth|private|encryption|account|signing|secret)[ _\-]?(?:key|token)|apikey|token|credentials?)"
)
_VALUE = rb"[^\s\"'<>,;\x80-\xFF]{6,128}"
_ASSIGNED = (
    rb"(?i)\b[A-Z0-9_.\-]{0,32}" + _NAMES + rb"[\"']?\s{0,3}(?::=|:|=>|=|\x97|>|\bis\b)\s{0,3}[\"'\x95]?" + _VALUE
)
_OPTION = rb"(?i)--[A-Z0-9\-]{0,32}" + _NAMES + rb" {1,3}[\"']?" + _VALUE
_SIGN = re.compile(rb"(?:[:=]>?|:=|\x97|>|\bis\b)\s{0,3}[\"'\x95]?", re.IGNORECASE)
# An ideograph's byte says nothing of which it is, so the word is looked for in the text.
_AFTER_IDEOGRAPHS = rb"\x90{2}\s?[:=\x97]?\s{0,3}[\"'\x95]?" + _VALUE
_CHINESE_WORDS = ("密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "令牌", "凭证")
_CHINESE_NAMES = re.compile(rf"(?:{'|'.join(_CHINESE_WORDS)})(?:是|为|為|设为|改成)?\s*[:：=]?\s*[\"'“”‘’「]?$")


def _token(text: Folded, start: int, end: int) -> Iterable[Span]:
    if not in_word(text.data, start, len(text.data)):
        yield start, end


def _bearer(text: Folded, start: int, end: int) -> Iterable[Span]:
    """What follows the word; a sentence about tokens has no digit in its next word."""
    data = text.data
    first = max(data.rfind(separator, start, end) for separator in (b" ", b":", b"\x97")) + 1
    value = data[first:end]
    if any(c in b"0123456789" for c in value) and any(c not in b"0123456789.-" for c in value):
        yield first, end


def _in_url(text: Folded, start: int, end: int) -> Iterable[Span]:
    """User and password, without the scheme and the `@`."""
    yield text.data.index(b"://", start) + 3, end - 1


def _assigned(text: Folded, start: int, end: int) -> Iterable[Span]:
    """The value alone, without the name and the sign between."""
    sign = _SIGN.search(text.data, start, end)
    return _secret(text.data, sign.end(), end) if sign else ()


def _option(text: Folded, start: int, end: int) -> Iterable[Span]:
    """What follows the name of a command's option."""
    first = text.data.rindex(b" ", start, end) + 1
    return _secret(text.data, first + (text.data[first] in b"\"'"), end)


def _after_ideographs(text: Folded, start: int, end: int) -> Iterable[Span]:
    value_at = next(place for place in range(start, end) if text.data[place] not in b"\x90\x95\x97 \t\r\n:=\"'")
    return _secret(text.data, value_at, end) if _CHINESE_NAMES.search(text.before(value_at, 12)) else ()


def _secret(data: bytes, start: int, end: int) -> Iterable[Span]:
    """A word of letters only, a number only, a path, a variable or a call is no secret."""
    while end > start and data[end - 1] in b".!?)]}":
        end -= 1
    value = data[start:end]
    has_digit, has_other = any(c in b"0123456789" for c in value), any(c not in b"0123456789.,%-:/" for c in value)
    if len(value) >= 6 and has_digit and has_other and b"(" not in value and not value.startswith((b"/", b"./", b"$")):
        yield start, end


SECRET_DETECTORS = (
    Detector(Kind.PRIVATE_KEY, LinearPattern(_PEM), needs=(b"PRIVATE KEY",)),
    Detector(Kind.TOKEN, LinearPattern(b"|".join(TOKEN_FORMS)), _token),
    Detector(Kind.TOKEN, LinearPattern(_BEARER), _bearer),
    Detector(Kind.SECRET, LinearPattern(_IN_URL), _in_url, needs=(b"://",)),
    Detector(Kind.SECRET, LinearPattern(_ASSIGNED), _assigned),
    Detector(Kind.SECRET, LinearPattern(_OPTION), _option, needs=(b"--",)),
    Detector(Kind.SECRET, LinearPattern(_AFTER_IDEOGRAPHS), _after_ideographs, (b"\x90",), words(*_CHINESE_WORDS)),
)
