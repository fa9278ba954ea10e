"""Followers in Flink: verdicts in, the same and what is said of them out. The logic is in `udfs.signals`."""

from collections import deque
from collections.abc import Iterator, Sequence

import orjson
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor

from schemas.verdicts import Verdict
from udfs.signals.follow import Follower

VERDICT_TYPE = Types.ROW_NAMED(["verdict"], [Types.STRING()])
# Part of the savepoint: never rename it.
STATE_NAME = "followers"


def monitor_and_series(row: Row) -> str:
    """The key of a verdict's row: all that followers of one series have to see together."""
    body = orjson.loads(row[0])
    return orjson.dumps([body["monitor"], body["series"]], option=orjson.OPT_SORT_KEYS).decode()


class FollowVerdicts(KeyedProcessFunction):
    """Rows of one verdict (JSON text), keyed by `monitor_and_series`, to rows of `VERDICT_TYPE`.

    A verdict is passed on as it is; behind it comes what the followers say of it, which is offered to all of them too.
    The verdicts of one key must come in the order of their windows' ends.
    """

    def __init__(self, followers: Sequence[Follower]) -> None:
        self._followers = tuple(followers)
        self._states: MapState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the states: by follower and its own key, versioned bytes."""
        descriptor = MapStateDescriptor(STATE_NAME, Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()))
        self._states = runtime_context.get_map_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One verdict, and what follows of it."""
        yield Row(row[0])
        waiting = deque([Verdict.from_json(row[0].encode())])
        while waiting:
            verdict = waiting.popleft()
            said = [found for follower in self._followers for found in self._said(follower, verdict)]
            yield from (Row(found.to_json().decode()) for found in said)
            waiting.extend(said)

    def _said(self, follower: Follower, verdict: Verdict) -> list[Verdict]:
        if not follower.accepts(verdict):
            return []
        place = f"{follower.uid}\x00{follower.key(verdict)}"
        stored = self._states.get(place)
        after, said = follower.step(None if stored is None else bytes(stored), verdict)
        self._states.put(place, after)
        return said
