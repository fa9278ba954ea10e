"""Labels that a replay gives its requests on demand: who asked, in which arm of an experiment, of which model version.

They are drawn apart from the service model and the faults, so a label changes no other value of a request.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from infra.replay.position import Position, parse_position, parse_share
from infra.replay.request_block import Ints, RequestBlock

Places = Sequence[int]
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Arms:
    """From `at` on, users are in these arms, by share of users. A later plan is another assignment epoch."""

    shares: tuple[tuple[str, float], ...]
    at: Position

    def of_users(self, users: int, rng: np.random.Generator) -> NDArray[np.str_]:
        """Return the arm of each user: drawn once, so that a user stays in it while the plan holds."""
        names, shares = zip(*self.shares, strict=True)
        edges = np.cumsum(shares)[:-1]
        return np.array(names)[np.searchsorted(edges, rng.random(users), side="right")]


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """From `at` on, requests are answered by this version of the model."""

    version: str
    at: Position


def assign(block: RequestBlock, users: Ints, arms: Sequence[NDArray[np.str_]], begins_ns: Places) -> None:
    """Give each request of `block` its user, and the arm and epoch of the plan that holds when it ends.

    `users` (n) are the users drawn for the requests; `arms` has one array (arm by user) a plan, `begins_ns` the plans'
    begins, ascending. Before the first plan a request has the service model's arm and no epoch.
    """
    plan = _in_force(block, begins_ns)
    block.fields["arm"] = np.where(plan < 0, block.fields["arm"], np.stack(arms)[np.maximum(plan, 0), users])
    block.fields["user_id"] = np.char.add("user-", np.char.zfill(users.astype(str), 6))
    block.fields["assignment_epoch"] = np.where(plan < 0, "", (plan + 1).astype(str))


def set_version(block: RequestBlock, versions: Sequence[ModelVersion], begins_ns: Places) -> None:
    """Give each request of `block` the version in force when it ends; before the first one it has none."""
    names = np.array(["", *(version.version for version in versions)])
    block.fields["model_version"] = names[_in_force(block, begins_ns) + 1]


def _in_force(block: RequestBlock, begins_ns: Places) -> Ints:
    """Return which of the plans holds at each request's end, -1 for none."""
    return np.searchsorted(np.array(begins_ns), block.end_ns, side="right") - 1


def parse_arms(text: str) -> Arms:
    """Read `NAME=SHARE,NAME=SHARE[,...][@TIME]`; shares add up to 1. Raises ValueError.

    >>> parse_arms("a=95%,b=5%@30m")
    Arms(shares=(('a', 0.95), ('b', 0.05)), at=Position(share=None, seconds=1800.0, instant_ms=None))
    """
    listed, _, at = text.partition("@")
    pairs = [part.partition("=") for part in listed.split(",")]
    names = [name.strip() for name, _, _ in pairs]
    if not all(name and share for name, (_, _, share) in zip(names, pairs, strict=True)) or len(set(names)) < len(
        names
    ):
        raise ValueError(f"{text!r} is no list of arms; write control=50%,treatment=50%, each name once")
    shares = [parse_share(share.strip()) for _, _, share in pairs]
    if abs(sum(shares) - 1) > _SUM_TOLERANCE:
        raise ValueError(f"the shares of {text!r} add up to {sum(shares):.4g}; they must add up to 1")
    return Arms(tuple(zip(names, shares, strict=True)), parse_position(at or "0"))


def parse_version(text: str) -> ModelVersion:
    """Read `VERSION[@TIME]`. Raises ValueError.

    >>> parse_version("v2@50%").at.share
    0.5
    """
    version, _, at = text.partition("@")
    if not version:
        raise ValueError(f"{text!r} names no version; write v2@50%, or v1 for the whole replay")
    return ModelVersion(version, parse_position(at or "0"))
