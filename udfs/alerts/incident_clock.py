"""Event time of a scope while nothing comes: the newest event time seen, carried on by the wall clock.

Nothing in an alert or an incident is computed from the wall clock. It only decides *when* what is due in event time is
worked through; the next transition works through it just the same, with the same result, if it comes first. So a
replay, which runs through the same event times faster, writes the same records.
"""

from dataclasses import asdict, dataclass, replace

import orjson

VERSION = 1
MAX_LATE_MS = 5_000
"""A timer that fires later than this says that the job was down."""


@dataclass(frozen=True, slots=True)
class Clock:
    """`event_ms` was it at `processing_ms` of the wall clock, by which the scope wakes at `wake_ms`, if at all.

    `due_ms` is the next event time at which something happens though nothing comes. `context_version` counts the
    silences and changes that the scope has seen, `is_open` says whether it has an open alert.
    """

    event_ms: int = 0
    processing_ms: int = 0
    wake_ms: int | None = None
    due_ms: int | None = None
    context_version: int = 0
    is_open: bool = False

    def event_at(self, processing_ms: int) -> int:
        """Return the event time at `processing_ms`.

        >>> Clock(event_ms=5_000, processing_ms=100).event_at(160)
        5060
        """
        return self.event_ms + max(0, processing_ms - self.processing_ms) if self.event_ms else 0

    def seen(self, event_ms: int, processing_ms: int) -> "Clock":
        """Return the clock after a record of `event_ms`: it never goes back."""
        if event_ms < self.event_at(processing_ms):
            return self
        return replace(self, event_ms=event_ms, processing_ms=processing_ms)

    def woken(self, at_ms: int, now_ms: int) -> "Clock":
        """Return the clock when the timer of `at_ms` fires at `now_ms`.

        While the job was down event time stood still: what came meanwhile has yet to be read. A timer that is merely
        late does not hold it up.

        >>> Clock(event_ms=5_000, processing_ms=100).woken(at_ms=200, now_ms=90_000).event_at(90_000)
        5100
        """
        was_up_at_ms = now_ms if now_ms - at_ms <= MAX_LATE_MS else at_ms
        return replace(self, event_ms=self.event_at(was_up_at_ms), processing_ms=now_ms, wake_ms=None)

    def waking(self, processing_ms: int) -> "Clock":
        """Return the clock that wakes at `processing_ms` at the latest."""
        if self.wake_ms is not None and self.wake_ms <= processing_ms:
            return self
        return replace(self, wake_ms=processing_ms)


def encode_clock(clock: Clock) -> bytes:
    """Return the bytes of `clock`; `decode_clock` gives it back exactly."""
    return orjson.dumps({"version": VERSION, **asdict(clock)})


def decode_clock(data: bytes) -> Clock:
    """Read what this version encoded. Raises ValueError for another one.

    >>> decode_clock(encode_clock(Clock(event_ms=7))).event_ms
    7
    """
    body = orjson.loads(data)
    if (version := body.pop("version")) != VERSION:
        raise ValueError(f"clock state of version {version}; this code reads version {VERSION}")
    return Clock(**body)
