"""What the drift job asks of whatever follows its verdicts: take these, keep this much, say this.

A follower is a pure state machine over verdicts, each keyed state a few kilobytes of versioned bytes. The job hosts
any of them in one keyed function: it asks `accepts`, keys by `uid` and `key`, and keeps the bytes that `step` returns.
Verdicts of one key must come in the order of their windows' ends (the job holds them back until the watermark has
passed); within one window end any order gives the same. Event time is the only clock, so a replay says the same again.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from schemas.verdicts import Verdict

_FEATURE = re.compile(r"[a-z0-9_]+\((.*)\)")


class Follower(Protocol):
    """One signal of one monitor, made of several verdicts.

    A verdict that is not newer than the newest window said already changes nothing and says nothing, so repeats and
    replays add nothing. A follower travels inside the job graph: it must pickle.
    """

    @property
    def uid(self) -> str:
        """Names the follower among all of a job, and so its state."""
        ...

    def accepts(self, verdict: Verdict) -> bool:
        """Whether `step` wants the verdict. O(1)."""
        ...

    def key(self, verdict: Verdict) -> str:
        """Return the key of the state that an accepted verdict belongs to."""
        ...

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Return the state after an accepted verdict, and what there is to say; None is the state of a new key.

        Raises UnknownStateVersionError on a state that newer code wrote.
        """
        ...


class History:
    """Followers with their states in memory: for a backtest, and for what a job would have said.

    What one follower says is offered to all of them, as the job does. Memory: O(keys).
    """

    def __init__(self, followers: Sequence[Follower]) -> None:
        self._followers = tuple(followers)
        self._states: dict[tuple[str, str], bytes] = {}

    def take(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """Return all that is said of `verdicts`, in the order in which it was said."""
        said: list[Verdict] = []
        waiting = deque(verdicts)
        while waiting:
            verdict = waiting.popleft()
            spoken = [found for follower in self._followers for found in self._step(follower, verdict)]
            said += spoken
            waiting.extendleft(reversed(spoken))
        return said

    def _step(self, follower: Follower, verdict: Verdict) -> list[Verdict]:
        if not follower.accepts(verdict):
            return []
        place = follower.uid, follower.key(verdict)
        self._states[place], said = follower.step(self._states.get(place), verdict)
        return said


def field_of(feature: str) -> str:
    """Return the field that a feature speaks of: what stands between its outermost brackets, or all of it.

    >>> field_of("ks(cosine(prompt_embedding))"), field_of("input_tokens")
    ('cosine(prompt_embedding)', 'input_tokens')
    """
    found = _FEATURE.fullmatch(feature)
    return found[1] if found else feature
