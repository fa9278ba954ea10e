"""One window of an experiment's traffic: how many requests came by epoch and arm, and which users were in which arm."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from udfs.experiments.arm_sketch import ALL_USERS, ArmSketch, UserIds


@dataclass(frozen=True)
class ArmCount:
    """Requests of one epoch and arm, and how many of them name no user."""

    n: int
    n_without_user: int = 0


@dataclass(frozen=True)
class ExperimentWindow:
    """The traffic of one experiment in the window that ends at `end_ms` (epoch milliseconds, exclusive).

    `counts` and `users` are by (epoch, arm). `users` holds the ids of the window's users that lie below `users_below`
    and no others. Nothing here has an order.
    """

    end_ms: int
    counts: Mapping[tuple[str, str], ArmCount] = field(default_factory=dict)
    users: Mapping[tuple[str, str], UserIds] = field(default_factory=dict)
    users_below: int = ALL_USERS

    @property
    def n(self) -> int:
        """All requests of the window."""
        return sum(count.n for count in self.counts.values())

    @classmethod
    def of(cls, end_ms: int, sketches: Iterable[ArmSketch]) -> "ExperimentWindow":
        """Return the window of `sketches`, one an epoch and arm. Raises ValueError where one is there twice.

        Where a sketch left users out, the others leave out the same ones, so that each user is known with all his arms.

        >>> sketches = [ArmSketch.of("e", "1", "a", ["u1", "u2", None]), ArmSketch.of("e", "1", "b", ["u2"])]
        >>> window = ExperimentWindow.of(30_000, sketches)
        >>> window.n, window.counts["1", "a"], window.users["1", "b"].size
        (4, ArmCount(n=3, n_without_user=1), 1)
        """
        found = list(sketches)
        below = min((sketch.below for sketch in found), default=ALL_USERS)
        counts = {(s.epoch, s.arm): ArmCount(s.n, s.n_without_user) for s in found}
        if len(counts) != len(found):
            raise ValueError("two sketches of one window are of one epoch and arm")
        return cls(end_ms, counts, {(s.epoch, s.arm): s.users_below(below) for s in found}, below)
