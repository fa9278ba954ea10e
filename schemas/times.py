"""Instants as the records write them: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(epoch_ms: int) -> str:
    """Return `epoch_ms` (milliseconds since 1970, UTC) as text, which `epoch_ms` reads again.

    Raises ValueError or OverflowError outside `FIRST_MS` to `LAST_MS`.

    >>> rfc3339(1_700_000_000_123), rfc3339(-62_135_596_800_000)
    ('2023-11-14T22:13:20.123Z', '0001-01-01T00:00:00.000Z')
    """
    seconds, millis = divmod(epoch_ms, 1000)
    return f"{_to_the_second(seconds)}.{millis:03d}Z"


@lru_cache(maxsize=1024)  # all verdicts of a window say the same two instants
def _to_the_second(epoch_seconds: int) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat()[:19]


def epoch_ms(text: str) -> int:
    """Return the milliseconds since 1970 of an RFC 3339 text with a zone. Raises ValueError on anything else.

    >>> epoch_ms('2023-11-14T22:13:20.123Z')
    1700000000123
    """
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write it as 2026-01-31T12:00:00Z")
    delta = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000


# What RFC 3339 can write: the years 1 to 9999.
FIRST_MS, LAST_MS = epoch_ms("0001-01-01T00:00:00Z"), epoch_ms("9999-12-31T23:59:59.999Z")
