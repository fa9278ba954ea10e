"""The wall clock as a backstop: ends a wait when event time stands still, because every source idles.

While spans wait, someone looks at the watermark from time to time, never twice within one wait. What goes out depends
on the wall clock only where a look finds the watermark where it was at the look before.
"""

from typing import NamedTuple

MAX_LOOKS = 10  # then all goes out: a watermark that creeps, or that a wrong clock set, holds nothing for ever
NOTHING_YET = -1


class Look(NamedTuple):
    """One look: when (ms since 1970), at which watermark, and the how manieth since something waits."""

    at_ms: int
    watermark: int
    number: int


def next_look(before: Look | None, now_ms: int, watermark: int, wait_ms: int) -> Look | None:
    """Return a look at `now_ms`, or None when the look before was less than `wait_ms` ago: then it counts for nothing.

    >>> next_look(Look(1000, 70, 1), 1900, 70, wait_ms=1000), next_look(Look(1000, 70, 1), 2000, 80, wait_ms=1000)
    (None, Look(at_ms=2000, watermark=80, number=2))
    """
    if before is None:
        return Look(now_ms, watermark, 1)
    return None if now_ms < before.at_ms + wait_ms else Look(now_ms, watermark, before.number + 1)


def arrived_by(before: Look | None, look: Look, wait_ms: int) -> int | None:
    """Return by when a span must have come to go out at `look`: a time, NOTHING_YET, or None, which means all.

    >>> arrived_by(None, Look(1000, 70, 1), 1000), arrived_by(Look(1000, 70, 1), Look(2000, 80, 2), 1000)
    (-1, -1)
    >>> arrived_by(Look(1000, 70, 1), Look(2500, 70, 2), 1000)
    1500
    """
    if look.number > MAX_LOOKS:
        return None
    stands_still = before is not None and before.watermark == look.watermark
    return look.at_ms - wait_ms if stands_still else NOTHING_YET
