"""Which arms each user of an epoch has been in, in bounded memory: exact for some number of users, then for a sample.

A user must stay in the arm that he was assigned to; one seen in two arms carries what he met in the one into the other.

The sample is by hash: of more than `most` users those with the `most` least ids are kept (bottom-k sampling, Cohen &
Kaplan, PODC 2007). Ids are uniform over 64 bits, so it is a plain random sample of users, whatever their traffic; and
because a user below the final bound was below every earlier one, each is known with all his arms. What is kept depends
on the users seen alone, not on their order nor on how they were cut into windows.

16 bytes a user in memory, 9 in state for up to 7 arms.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from udfs.experiments.arm_sketch import ALL_USERS, UNASSIGNED, UserIds
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"USR", 1
_HEAD = struct.Struct("<QQB")  # users, bound less 1, bytes of a set of arms
_WIDTHS = (1, 2, 4, 8)  # bytes of a set of arms


def _none() -> NDArray[np.uint64]:
    return np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class UserArms:
    """Users below the id `below`, sorted, each once, and the set of arms of each: bit i is arm i of the plan.

    The bit after the plan's last stands for every arm that no plan has.
    """

    ids: UserIds = field(default_factory=_none)
    arms: NDArray[np.uint64] = field(default_factory=_none)
    below: int = ALL_USERS

    @classmethod
    def of_window(cls, users: Mapping[str, UserIds], planned: Sequence[str], below: int = ALL_USERS) -> "UserArms":
        """Return what one window says of one epoch: `users` by arm, all of those below `below`. O(u log u).

        >>> seen = UserArms.of_window({"a": np.array([1, 2], np.uint64), "b": np.array([2], np.uint64)}, ["a", "b"])
        >>> seen.n, seen.n_switched
        (2, 1)
        """
        bits = {arm: number for number, arm in enumerate(planned)}
        columns = [(bits.get(arm, len(planned)), ids) for arm, ids in users.items() if arm != UNASSIGNED and len(ids)]
        if not columns:
            return cls(below=below)
        ids = np.concatenate([column for _, column in columns])
        arms = np.concatenate([np.full(len(column), 1 << bit, dtype=np.uint64) for bit, column in columns])
        return cls(*_each_once(ids, arms), below)

    @property
    def n(self) -> int:
        """Users kept."""
        return int(self.ids.size)

    @property
    def n_switched(self) -> int:
        """Users kept that were in two arms or more."""
        return int(np.count_nonzero(np.bitwise_count(self.arms) > 1))

    @property
    def sampled_share(self) -> float:
        """Which share of all users is kept: 1.0 where nobody was left out."""
        return self.below / ALL_USERS

    def cut(self, below: int) -> "UserArms":
        """Return the sample of the users below `below`; self where that leaves out nobody new. O(log n)."""
        if below >= self.below:
            return self
        stop = int(np.searchsorted(self.ids, np.uint64(below)))
        return UserArms(self.ids[:stop], self.arms[:stop], below)

    def merge(self, other: "UserArms", most: int) -> "UserArms":
        """Return both together, at most `most` users. Commutative and associative. O(n log n)."""
        below = min(self.below, other.below)
        one, two = self.cut(below), other.cut(below)
        both = UserArms(
            *_each_once(np.concatenate([one.ids, two.ids]), np.concatenate([one.arms, two.arms])), below=below
        )
        return both.cut(int(both.ids[most])) if both.n > most else both

    def to_bytes(self) -> bytes:
        """Return the state as bytes; the same users give the same bytes."""
        width = next(width for width in _WIDTHS if int(self.arms.max(initial=0)) < 1 << 8 * width)
        head = _HEAD.pack(self.n, self.below - 1, width)
        arms = self.arms.astype(f"<u{width}")
        return seal(_TAG, _VERSION, head + self.ids.astype("<u8").tobytes() + arms.tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "UserArms":
        """Read them again. Raises ValueError on bytes that are none.

        >>> seen = UserArms.of_window({"a": np.array([7], np.uint64)}, ["a"], below=9)
        >>> UserArms.from_bytes(seen.to_bytes()).to_bytes() == seen.to_bytes()
        True
        """
        body = unseal(data, _TAG)
        if len(body) < _HEAD.size:
            refuse(_TAG, "the head is cut")
        n, last, width = _HEAD.unpack_from(body)
        if width not in _WIDTHS or len(body) != _HEAD.size + n * (8 + width):
            refuse(_TAG, f"{len(body)} bytes don't hold {n} users")
        ids = np.frombuffer(body, dtype="<u8", count=n, offset=_HEAD.size).astype(np.uint64)
        arms = np.frombuffer(body, dtype=f"<u{width}", count=n, offset=_HEAD.size + 8 * n).astype(np.uint64)
        return cls(ids, arms, last + 1)


def _each_once(ids: UserIds, arms: NDArray[np.uint64]) -> tuple[UserIds, NDArray[np.uint64]]:
    """Return the ids sorted, each once, with the union of its sets of arms."""
    if not ids.size:
        return ids, arms
    order = np.argsort(ids, kind="stable")
    ids, arms = ids[order], arms[order]
    first = np.concatenate([[True], ids[1:] != ids[:-1]])
    return ids[first], np.bitwise_or.reduceat(arms, np.flatnonzero(first))
