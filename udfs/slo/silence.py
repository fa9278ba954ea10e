"""What a timer does with a series from which no slice came: speak on, be silent, or forget it."""

from typing import NamedTuple

from udfs.slo.slo import Slo

# Of a calendar the longest period is 4 % longer than the mean: a day of 25 hours, a month of 31 days.
PERIODS_KEPT = 1.05


class Silence(NamedTuple):
    """`speaks`: the slice that ends now is to be stepped over as empty. `again_ms`: when to look again, if ever."""

    speaks: bool = False
    forgets: bool = False
    again_ms: int | None = None


def silence_at(slo: Slo, now_ms: int, *, last_end_ms: int, last_data_ms: int, slice_ms: int) -> Silence:
    """Return what to do at `now_ms`, a slice's end, with a series whose newest slice and events are given.

    Where a slice for now has come, or a later one, nothing: its own timer follows. For `quiet_ms` after the last event
    the series speaks; a period (or so long, if that is more) after it nothing of it counts any more. Instants are epoch
    milliseconds.
    """
    if last_end_ms >= now_ms:
        return Silence()
    forget_ms = last_data_ms + max(round(PERIODS_KEPT * slo.period.length_ms), slo.quiet_ms) + slice_ms
    if now_ms >= forget_ms:
        return Silence(forgets=True)
    if now_ms <= last_data_ms + slo.quiet_ms:
        return Silence(speaks=True, again_ms=now_ms + slice_ms)
    return Silence(again_ms=forget_ms)
