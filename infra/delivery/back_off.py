"""How long to wait before the next try: doubled each time, bounded, and never in step with others.

Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, there "equal jitter".
"""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackOff:
    """Waits between `first_seconds / 2` and `longest_seconds`."""

    first_seconds: float
    longest_seconds: float

    def delay_seconds(self, failures: int, draw: random.Random) -> float:
        """Return the wait after `failures` (1 or more) failed tries: half of it fixed, half drawn.

        >>> BackOff(0.5, 30.0).delay_seconds(1000, random.Random(0)) <= 30.0
        True
        """
        # 2^62 is far above any bound, and a float has no trouble with it.
        whole = min(self.longest_seconds, self.first_seconds * 2.0 ** min(failures - 1, 62))
        return whole / 2 + draw.uniform(0.0, whole / 2)
