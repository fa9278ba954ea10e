"""What a slice keeps of one arm's requests: how many, and which users, in bounded memory.

A user's id is 64 bits of a hash of what the request says of him, so that no pseudonym is kept, and ids are uniform
whatever they are made of. Among 100,000 users two share an id with probability 3e-10.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from numpy.typing import NDArray

from udfs.versioned_bytes import refuse, seal, unseal

UserIds = NDArray[np.uint64]
ALL_USERS = 2**64
"""The bound below which every user id lies: nobody is left out."""

UNASSIGNED = ""
"""The arm of a request that names none."""

_TAG, _VERSION = b"ARM", 1
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class ArmSketch:
    """Requests of one experiment, epoch and arm; `users` are their users' ids below `below`, sorted, each once."""

    experiment: str
    epoch: str
    arm: str
    n: int
    n_without_user: int
    users: UserIds
    below: int = ALL_USERS

    @classmethod
    def of(cls, experiment: str, epoch: str, arm: str, users: Sequence[str | None], most: int = 50_000) -> "ArmSketch":
        """Return the sketch of requests by `users`, None where a request names none. About a microsecond a user.

        Of more than `most` users those of the least ids are kept. The order of requests doesn't matter.

        >>> sketch = ArmSketch.of("chat", "2", "canary", ["u1", "u2", "u1", None])
        >>> sketch.n, sketch.n_without_user, sketch.users.size, sketch.below == ALL_USERS
        (4, 1, 2, True)
        """
        known = {user for user in users if user}
        ids = np.unique(np.array([user_id(user) for user in known], dtype=np.uint64))
        below = ALL_USERS if ids.size <= most else int(ids[most])
        n_without_user = sum(not user for user in users)
        return cls(experiment, epoch, arm, len(users), n_without_user, ids[:most], below)

    def users_below(self, below: int) -> UserIds:
        """Return the ids below `below`."""
        return self.users if below >= self.below else self.users[: np.searchsorted(self.users, np.uint64(below))]

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes: 8 a user and some tens."""
        head = orjson.dumps([self.experiment, self.epoch, self.arm, self.n, self.n_without_user, self.below - 1])
        return seal(_TAG, _VERSION, _LENGTH.pack(len(head)) + head + self.users.astype("<u8").tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> "ArmSketch":
        """Read them again. Raises ValueError on bytes that are none.

        >>> ArmSketch.from_bytes(ArmSketch.of("e", "", "a", ["u"]).to_bytes()).arm
        'a'
        """
        body = unseal(data, _TAG)
        try:
            (length,) = _LENGTH.unpack_from(body)
            at = _LENGTH.size + length
            experiment, epoch, arm, n, n_without_user, last = orjson.loads(body[_LENGTH.size : at])
            users = np.frombuffer(body, dtype="<u8", offset=at).astype(np.uint64)
        except (struct.error, ValueError) as error:
            refuse(_TAG, f"the body can't be read, {error!r}")
        return cls(experiment, epoch, arm, n, n_without_user, users, last + 1)


def user_id(user: str) -> int:
    """Return the 64-bit id of a user's name or hash.

    >>> user_id("u1") != user_id("u2"), user_id("u1") < 2**64
    (True, True)
    """
    return int.from_bytes(hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
