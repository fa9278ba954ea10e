"""When requests come: as the trace recorded them, again and again if need be, or at a steady rate."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from infra.replay.request_block import Arrivals
from infra.replay.trace import Trace

# Small, so that making a block (about 30 ms) delays no live request noticeably; large enough for numpy.
BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class ArrivalSource:
    """`count` requests of `trace`, repeated from its begin where they are more.

    With `rate_per_second` the trace gives only the tokens, and request i comes at i / rate.
    """

    trace: Trace
    count: int
    rate_per_second: float | None = None

    @property
    def last_ns(self) -> int:
        """When the last request comes, nanoseconds after the first."""
        return int(self._block(self.count - 1, self.count).arrival_ns[0])

    def blocks(self) -> Iterator[Arrivals]:
        """Yield the requests in order of arrival, `BLOCK_ROWS` at a time: memory stays O(block)."""
        for low in range(0, self.count, BLOCK_ROWS):
            yield self._block(low, min(low + BLOCK_ROWS, self.count))

    def _block(self, low: int, high: int) -> Arrivals:
        index = np.arange(low, high, dtype=np.int64)
        lap, row = np.divmod(index, len(self.trace))
        if self.rate_per_second is None:
            arrival_ns = self.trace.arrival_ns[row] + lap * _lap_ns(self.trace)
        else:
            arrival_ns = np.rint(index * (1e9 / self.rate_per_second)).astype(np.int64)
        return Arrivals(arrival_ns, self.trace.input_tokens[row], self.trace.output_tokens[row])


def arrival_source(
    trace: Trace, limit: int | None = None, duration_ns: int | None = None, rate_per_second: float | None = None
) -> ArrivalSource:
    """Return the source that ends after `limit` requests or `duration_ns`, whichever is first; else after one lap.

    >>> trace = Trace(np.array([0, 1_000_000_000]), np.array([1, 2]), np.array([1, 2]))
    >>> arrival_source(trace, limit=5).count, arrival_source(trace, duration_ns=500_000_000).count
    (5, 1)
    """
    bounds = [] if limit is None else [limit]
    if duration_ns is not None and rate_per_second is not None:
        bounds.append(int(np.ceil(duration_ns * rate_per_second / 1e9)))
    elif duration_ns is not None:
        laps, rest_ns = divmod(duration_ns, _lap_ns(trace))
        bounds.append(laps * len(trace) + int(np.searchsorted(trace.arrival_ns, rest_ns)))
    return ArrivalSource(trace, min(bounds, default=len(trace)), rate_per_second)


def _lap_ns(trace: Trace) -> int:
    """From the first arrival of a lap to the first of the next: the trace and one mean gap (1 s for one request)."""
    return trace.duration_ns + (trace.duration_ns // (len(trace) - 1) if len(trace) > 1 else 1_000_000_000)
