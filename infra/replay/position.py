"""A place on the replay's own clock, as a user writes it: `50%`, `30m`, or an instant."""

import re
from dataclasses import dataclass

from schemas.times import epoch_ms

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class Position:
    """A share of the whole, seconds after its begin, or milliseconds since 1970: exactly one of them is set."""

    share: float | None = None
    seconds: float | None = None
    instant_ms: int | None = None

    def offset_ns(self, duration_ns: int, start_ms: int | None = None) -> int:
        """Return nanoseconds after the begin, of a whole that lasts `duration_ns` and begins at `start_ms`.

        Raises ValueError for an instant where no start is known.

        >>> parse_position("25%").offset_ns(8_000_000_000)
        2000000000
        """
        if self.share is not None:
            return round(duration_ns * self.share)
        if self.seconds is not None:
            return round(self.seconds * 1e9)
        if start_ms is None or self.instant_ms is None:
            raise ValueError("an instant can only be placed where the start is known")
        return (self.instant_ms - start_ms) * 1_000_000


def parse_position(text: str) -> Position:
    """Read `50%`, a duration (see `parse_seconds`) or an RFC 3339 instant. Raises ValueError saying what is allowed.

    >>> parse_position("1h30m").seconds, parse_position("2026-01-31T12:00:00Z").instant_ms
    (5400.0, 1769860800000)
    """
    if text.endswith("%"):
        return Position(share=parse_share(text))
    if "T" in text:
        return Position(instant_ms=epoch_ms(text))
    return Position(seconds=parse_seconds(text))


def parse_seconds(text: str) -> float:
    """Read a duration as seconds: parts like `1h30m`, `45s`, `250ms`, or a bare number of seconds.

    >>> parse_seconds("1m30s"), parse_seconds("2.5")
    (90.0, 2.5)
    """
    try:
        seconds = float(text)
    except ValueError:
        parts = _PART.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            raise ValueError(f"{text!r} is no duration; write it as 90s, 30m or 1h30m") from None
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{text!r} is no duration; it must be 0 or more")
    return seconds


def parse_share(text: str) -> float:
    """Read a share: `1%` or `0.01`. Raises ValueError outside 0..1.

    >>> parse_share("1%"), parse_share("0.01")
    (0.01, 0.01)
    """
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no share; write it as 1% or 0.01") from None
    if not 0 <= share <= 1:
        raise ValueError(f"{text!r} is no share; it must lie between 0% and 100%")
    return share
