"""The wall clock as a backstop: ends a wait when event time stands still, because every source idles.

While spans wait, someone looks at the watermark from time to time, never twice within one wait. What goes out depends
on the wall clock only where a look finds the watermark where it was at the look before.
"""

from typing import NamedTuple

MAX_LOOKS = 10  # then all goes out: a watermark that creeps, or that a wrong clock set, holds nothing for ever
LOOKS_TO_SETTLE = 3  # the first may come right after a span did, and two waits are to pass before a release
NOTHING_YET = -1


class Look(NamedTuple):
    """One look: when (ms since 1970), at which watermark, and the how manieth since something waits."""

    at_ms: int
    watermark: int
    number: int


class Cutoff(NamedTuple):
    """What goes out now: what came (Kafka's timestamp) by `arrived_by_ms`, and its time is over.

    Of a trace whose first span came after look number `settled_look` nothing goes out (None: that is no matter), and of
    one whose first span came at look number `overdue_look` or before, all does.
    """

    arrived_by_ms: int
    settled_look: int | None = None
    overdue_look: int = NOTHING_YET


def next_look(before: Look | None, now_ms: int, watermark: int, wait_ms: int) -> Look | None:
    """Return a look at `now_ms`, or None when the look before was less than `wait_ms` ago: then it counts for nothing.

    >>> next_look(Look(1000, 70, 1), 1900, 70, wait_ms=1000), next_look(Look(1000, 70, 1), 2000, 80, wait_ms=1000)
    (None, Look(at_ms=2000, watermark=80, number=2))
    """
    if before is None:
        return Look(now_ms, watermark, 1)
    return None if now_ms < before.at_ms + wait_ms else Look(now_ms, watermark, before.number + 1)


def cutoff(before: Look | None, look: Look, wait_ms: int) -> Cutoff:
    """Return what goes out at `look`, which followed `before`.

    >>> cutoff(Look(1000, 70, 1), Look(2000, 80, 2), 1000).arrived_by_ms
    -1
    >>> cutoff(Look(2000, 70, 20), Look(3500, 70, 21), 1000)
    Cutoff(arrived_by_ms=2500, settled_look=18, overdue_look=10)
    """
    stands_still = before is not None and before.watermark == look.watermark
    return Cutoff(
        arrived_by_ms=look.at_ms - wait_ms if stands_still else NOTHING_YET,
        settled_look=look.number - LOOKS_TO_SETTLE,
        overdue_look=look.number - MAX_LOOKS - 1,
    )
