"""Histograms of either sort, merged: what one window holds of a metric whose servers may report in different ways.

Explicit and exponential histograms are each merged exactly, and never with each other: no bound of one need be an edge
of the other. A histogram of observations that are all 0 is a clock that nobody started: it is counted apart.

Memory: 16 bytes a bucket. Commutative, associative, empty is neutral, total counts are kept.
"""

from dataclasses import astuple, dataclass
from typing import Any

import orjson

from schemas.status import Status
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.sketches.exponential_histogram import ExponentialHistogram
from udfs.sketches.histogram_answers import Quantile
from udfs.versioned_bytes import refuse, seal, unseal

TAG = b"HIS"
CENSORED, MIXED, NO_COMMON_BOUNDS, ALL_ZERO = "censored", "mixed_histograms", "no_common_bounds", "all_zero"


@dataclass(frozen=True, slots=True)
class BothHistograms:
    """Explicit and exponential observations, None where there are none, and how many came of stopped clocks."""

    explicit: ExplicitHistogram | None = None
    exponential: ExponentialHistogram | None = None
    n_all_zero: int = 0

    @property
    def count(self) -> int:
        """How many observations there are, without those of stopped clocks."""
        return sum(one.count for one in (self.explicit, self.exponential) if one is not None)

    def merge(self, other: "BothHistograms") -> "BothHistograms":
        """Return all observations of both. O(buckets).

        >>> one = BothHistograms(ExplicitHistogram.of([1.0], [3, 1]))
        >>> one.merge(BothHistograms(n_all_zero=2)).merge(one).explicit.counts
        (6, 2)
        """
        explicit, exponential = self.explicit or other.explicit, self.exponential or other.exponential
        if self.explicit is not None and other.explicit is not None:
            explicit = self.explicit.merge(other.explicit)
        if self.exponential is not None and other.exponential is not None:
            exponential = self.exponential.merge(other.exponential)
        return BothHistograms(explicit, exponential, self.n_all_zero + other.n_all_zero)

    def quantile(self, q: float) -> tuple[Quantile, tuple[str, ...]]:
        """Return the q-quantile and the flags of what is wrong with it. Raises ValueError unless 0 <= q <= 1.

        `no_data` without observations; `invalid` where all are of stopped clocks; `inconclusive` where both sorts came,
        or layouts without a bound in common. `censored`: it lies in a bucket without an end, and the value is its edge.

        >>> BothHistograms(ExplicitHistogram.of([1.0], [3, 1])).quantile(0.9)
        (Quantile(value=1.0, status=<Status.OK: 'ok'>, censored=True), ('censored',))
        """
        filled = [one for one in (self.explicit, self.exponential) if one is not None and one.count]
        if len(filled) > 1:
            return Quantile(None, Status.INCONCLUSIVE), (MIXED,)
        if not filled:
            stopped = self.n_all_zero > 0
            return Quantile(None, Status.INVALID if stopped else Status.NO_DATA), (ALL_ZERO,) if stopped else ()
        found = filled[0].quantile(q)
        if found.status is Status.INCONCLUSIVE:
            return found, (NO_COMMON_BOUNDS,)
        return found, (CENSORED,) if found.censored else ()

    def share_at_most(self, value: float) -> float:
        """Return the share of explicit observations that are surely at or below `value`; 0 without one."""
        ratio = None if self.explicit is None else self.explicit.good_ratio(value)
        return 0.0 if ratio is None or ratio.low is None else ratio.low

    def to_bytes(self) -> bytes:
        """Return the bytes of it; `from_bytes` gives it back exactly."""
        parts = [None if one is None else astuple(one) for one in (self.explicit, self.exponential)]
        return seal(TAG, 1, orjson.dumps([*parts, self.n_all_zero]))

    @classmethod
    def from_bytes(cls, data: bytes) -> "BothHistograms":
        """Read it again. Raises ValueError on other bytes.

        >>> one = BothHistograms(ExplicitHistogram.of([1.0], [3, 1]), ExponentialHistogram.of(0, 1, (0, [1])), 7)
        >>> BothHistograms.from_bytes(one.to_bytes()) == one
        True
        """
        body = unseal(data, TAG)
        try:
            explicit, exponential, n_all_zero = orjson.loads(body)
            return cls(
                None if explicit is None else ExplicitHistogram(*map(_tupled, explicit)),
                None if exponential is None else ExponentialHistogram(*map(_tupled, exponential)),
                n_all_zero,
            )
        except (TypeError, ValueError) as error:
            refuse(TAG, f"the body can't be read, {error!r}")


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
