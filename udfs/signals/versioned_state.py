"""The encoding of a signal's state: JSON that names what it is and its version, readable by eye and by later code."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Body = dict[str, Any]
Migrations = Mapping[int, Callable[[Body], Body]]
"""From version n to n + 1: takes a decoded body, returns the next one's."""


class UnknownStateVersionError(ValueError):
    """A state that this code can't read. It must stop the job: going on would forget what was learnt."""


def encode_state(name: str, version: int, state: "DataclassInstance") -> bytes:
    """Return the bytes of a state. O(state)."""
    return orjson.dumps({"state": name, "version": version, "body": state})


def decode_state(data: bytes, name: str, version: int, migrations: Migrations) -> Body:
    """Return the body of a state, brought up to `version` one step at a time.

    Raises UnknownStateVersionError for a newer version (after a downgrade, restore the savepoint taken before the
    upgrade), and for the state of something else.

    >>> decode_state(b'{"state":"x","version":1,"body":{"n":2}}', "x", 2, {1: lambda body: {"count": body["n"]}})
    {'count': 2}
    """
    envelope = orjson.loads(data)
    found_name, found = envelope["state"], envelope["version"]
    body: Body = envelope["body"]
    if found_name != name:
        raise UnknownStateVersionError(f"state of {found_name}, not of {name}")
    while found != version:
        if found not in migrations:
            raise UnknownStateVersionError(f"state of {name} of version {found}; this code reads up to {version}")
        body, found = migrations[found](body), found + 1
    return body
