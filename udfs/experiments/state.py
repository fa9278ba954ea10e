"""What is remembered of one experiment between windows, and its versioned bytes.

Layout: an envelope (`udfs.versioned_bytes`) around the length of a JSON head, the head, and each epoch's users. To
change it: raise `STATE_VERSION`, keep the old reader, and commit a golden file of what the old code wrote.
"""

import base64
import struct
from dataclasses import dataclass

import orjson

from udfs.experiments.plan import SplitPlan
from udfs.experiments.sticky import UserArms
from udfs.statistics.sample_ratio import SequentialSampleRatio
from udfs.versioned_bytes import refuse, seal, unseal

STATE_VERSION = 1
_TAG = b"EXP"
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class EpochState:
    """One assignment epoch. `test` are the bytes of its `SequentialSampleRatio`.

    `plan_key` names the weights it is tested against; `n_since` are the requests in planned arms since the last window
    in which an arm had traffic, in the order of arms.
    """

    epoch: str
    plan_key: str
    last_window_end_ms: int
    n_last_window: int
    test: bytes
    n_since: tuple[int, ...]
    users: UserArms

    @classmethod
    def begin(cls, plan: SplitPlan, epoch: str) -> "EpochState":
        """Return the state before the epoch's first request: p is 1, no user is known."""
        weights = plan.weights_of(epoch)
        test = SequentialSampleRatio(dict(weights), plan.concentration)
        return cls(epoch, plan_key(plan, epoch), 0, 0, test.to_bytes(), (0,) * len(weights), UserArms())


@dataclass(frozen=True)
class ExperimentState:
    """One experiment: the newest window, windows without traffic in a row, and its epochs by name."""

    last_window_end_ms: int | None = None
    no_data_windows: int = 0
    epochs: tuple[EpochState, ...] = ()
    n_epochs_forgotten: int = 0

    def epoch(self, plan: SplitPlan, name: str) -> EpochState:
        """Return the state of an epoch: a new one where it is unknown, or known under other weights."""
        for known in self.epochs:
            if known.epoch == name and known.plan_key == plan_key(plan, name):
                return known
        return EpochState.begin(plan, name)


def plan_key(plan: SplitPlan, epoch: str) -> str:
    """Return what a sequential test holds for: under other weights its p means nothing.

    >>> plan_key(SplitPlan("e", (("a", 1.0), ("b", 2.0))), "")
    '[[["a",1.0],["b",2.0]],278.0]'
    """
    return orjson.dumps([plan.weights_of(epoch), plan.concentration]).decode()


def encode(state: ExperimentState) -> bytes:
    """Return the bytes of `state`; equal states give equal bytes. O(users)."""
    users = [epoch.users.to_bytes() for epoch in state.epochs]
    head = orjson.dumps(
        {
            "last_window_end_ms": state.last_window_end_ms,
            "no_data_windows": state.no_data_windows,
            "n_epochs_forgotten": state.n_epochs_forgotten,
            "epochs": [
                {
                    "epoch": epoch.epoch,
                    "plan_key": epoch.plan_key,
                    "last_window_end_ms": epoch.last_window_end_ms,
                    "n_last_window": epoch.n_last_window,
                    "test": base64.b64encode(epoch.test).decode(),
                    "n_since": epoch.n_since,
                    "user_bytes": len(of_epoch),
                }
                for epoch, of_epoch in zip(state.epochs, users, strict=True)
            ],
        }
    )
    return seal(_TAG, STATE_VERSION, _LENGTH.pack(len(head)) + head + b"".join(users))


def decode(data: bytes) -> ExperimentState:
    """Read them again. Raises ValueError on bytes that are none, or of a later version: that must stop the job.

    >>> decode(encode(ExperimentState(last_window_end_ms=1)))
    ExperimentState(last_window_end_ms=1, no_data_windows=0, epochs=(), n_epochs_forgotten=0)
    """
    body = unseal(data, _TAG, version=STATE_VERSION)
    try:
        (length,) = _LENGTH.unpack_from(body)
        at = _LENGTH.size + length
        head = orjson.loads(body[_LENGTH.size : at])
        epochs = []
        for fields in head.pop("epochs"):
            users = UserArms.from_bytes(body[at : at + fields.pop("user_bytes")])
            at += len(users.to_bytes())
            test, n_since = base64.b64decode(fields.pop("test")), tuple(fields.pop("n_since"))
            epochs.append(EpochState(**fields, test=test, n_since=n_since, users=users))
        return ExperimentState(**head, epochs=tuple(epochs))
    except (struct.error, KeyError, TypeError, orjson.JSONDecodeError) as error:
        refuse(_TAG, f"the body can't be read, {error!r}")
