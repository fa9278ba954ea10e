"""One POST of JSON, and what its answer means for what was posted: taken, refused for good, or to be tried again.

The standard library is enough: a few requests a minute, and no other code here needs an HTTP client. A redirect is not
followed: `urllib` would turn the POST into a GET, and a login page's 200 would pass for a delivery.
"""

import ipaddress
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

_SHOWN_BYTES = 300


class Outcome(Enum):
    """What became of a POST."""

    TAKEN = "taken"
    REFUSED = "refused"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome, in words too. `retry_after_seconds` is what the server asked for, None where it did not."""

    outcome: Outcome
    detail: str
    status: int | None = None
    retry_after_seconds: float | None = None


# Not the alert's fault, but the address's, the credentials' or the moment's: it may be taken once that is mended.
NOT_THE_BODYS_FAULT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 429})


def outcome_of(status: int) -> Outcome:
    """Return what an HTTP status says of the body.

    >>> [outcome_of(status).value for status in (200, 302, 400, 401, 413, 422, 429, 503)]
    ['taken', 'retry', 'refused', 'retry', 'refused', 'refused', 'retry', 'retry']
    """
    if 200 <= status < 300:
        return Outcome.TAKEN
    if 400 <= status < 500 and status not in NOT_THE_BODYS_FAULT:
        return Outcome.REFUSED
    return Outcome.RETRY


def post_json(
    url: str, body: bytes, *, headers: Mapping[str, str], timeout_seconds: float, ca_file: str | None = None
) -> Answer:
    """POST `body` to `url` and say what became of it. Never raises: an unreachable server is to be tried again.

    The detail holds neither headers nor the body. Takes at most about twice `timeout_seconds` (connect, then answer).
    """
    sent = {"Content-Type": "application/json", "User-Agent": "slacktide", **headers}
    request = urllib.request.Request(url, data=body, method="POST", headers=sent)
    try:
        with _opener(url, ca_file).open(request, timeout=timeout_seconds) as answer:
            return Answer(Outcome.TAKEN, f"HTTP {answer.status}", answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return _of_error(error)
    except (OSError, HTTPException, ValueError) as error:
        return Answer(Outcome.RETRY, _reason(error))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Take the redirect as the answer."""


def _opener(url: str, ca_file: str | None) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if _is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))  # never through the environment's proxy
    if ca_file:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
    return urllib.request.build_opener(*handlers)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _of_error(error: urllib.error.HTTPError) -> Answer:
    try:
        said = error.read(_SHOWN_BYTES).decode(errors="replace")
    except (OSError, HTTPException):
        said = ""
    shown = "".join(character if character.isprintable() else " " for character in said).strip()
    detail = f"HTTP {error.code}{f': {shown}' if shown else ''}"
    return Answer(outcome_of(error.code), detail, error.code, _retry_after(error.headers.get("Retry-After")))


def _retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After; its other form, a date, is left to our own back-off.

    >>> _retry_after("7"), _retry_after("Fri, 31 Dec 1999 23:59:59 GMT"), _retry_after(None)
    (7.0, None, None)
    """
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def _reason(error: Exception) -> str:
    """The cause in words, without addresses of Python objects."""
    inner = getattr(error, "reason", None)
    cause = inner if isinstance(inner, Exception) else error
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
