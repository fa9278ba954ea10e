"""A replay of which everything is known: its trace read, every time placed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.replay.arrivals import ArrivalSource
from infra.replay.faults import Drift, Slowdown
from infra.replay.labels import Arms, ModelVersion
from infra.replay.plan import SECOND_NS, ReplayPlan


@dataclass(frozen=True)
class ResolvedReplay:
    """A plan with its trace read and every time placed; `start_ns` is nanoseconds since 1970.

    Drifts, slow episodes, plans of arms and model versions come with their place, nanoseconds after the begin; of the
    last two in the order of their places.
    """

    plan: ReplayPlan
    source: ArrivalSource
    constants: Mapping[str, Any]
    rate_ratio: float
    start_ns: int
    last_end_ns: int | None
    drifts: tuple[tuple[Drift, int], ...]
    slowdowns: tuple[tuple[Slowdown, int], ...]
    arms: tuple[tuple[Arms, int], ...] = ()
    versions: tuple[tuple[ModelVersion, int], ...] = ()

    @property
    def late_share(self) -> float:
        """The share of late ones among those early enough to become late before the replay is over."""
        if not self.plan.shares.late:
            return 0.0
        early_enough = 1 - self.plan.late_by_seconds * SECOND_NS / max(self.source.last_ns, 1)
        return self.plan.shares.late / early_enough if early_enough > 0 else float("inf")
