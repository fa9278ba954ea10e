"""Followers in Flink: verdicts in, the same and what is said of them out. The logic is in `udfs.signals`."""

from collections import deque
from collections.abc import Iterator, Sequence

import orjson
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import MapState, MapStateDescriptor

from schemas.feedback import decode_feedback
from schemas.verdicts import Verdict
from udfs.signals import feedback
from udfs.signals.feedback import Due, FeedbackScore, FeedbackState
from udfs.signals.flink_feedback import key_of
from udfs.signals.follow import Follower

VERDICT_TYPE = Types.ROW_NAMED(["verdict"], [Types.STRING()])
# Part of the savepoint: never rename it.
STATE_NAME = "followers"


def monitor_and_series(row: Row) -> str:
    """The key of a row: that of its verdict, or the one that its label was given."""
    if row[0] is None:
        return str(row[2])
    body = orjson.loads(row[0])
    return key_of(body["monitor"], body["series"])


class FollowVerdicts(KeyedProcessFunction):
    """Rows of one verdict (JSON text), or of a label, keyed by `monitor_and_series`, to rows of `VERDICT_TYPE`.

    A verdict is passed on as it is; behind it comes what the followers say of it, which is offered to all of them too.
    The verdicts of one key must come in the order of their windows' ends. They are the clock of its labels: windows of
    feedback that end by a verdict's window end are closed before it.
    """

    def __init__(self, followers: Sequence[Follower], scores: Sequence[FeedbackScore] = ()) -> None:
        self._followers, self._scores = tuple(followers), tuple(scores)
        self._states: MapState

    def open(self, runtime_context: RuntimeContext) -> None:
        """Take hold of the states: by follower and its own key, versioned bytes."""
        descriptor = MapStateDescriptor(STATE_NAME, Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()))
        self._states = runtime_context.get_map_state(descriptor)

    def process_element(self, row: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """One verdict, and what follows of it; or one label, kept."""
        if row[0] is None:
            self._keep(row[1].encode(), str(row[2]))
            return
        verdict = Verdict.from_json(row[0].encode())
        for closed in self._closed(verdict):
            yield from self._followed(closed, closed.to_json().decode())
        yield from self._followed(verdict, row[0])

    def _followed(self, verdict: Verdict, text: str) -> Iterator[Row]:
        yield Row(text)
        waiting = deque([verdict])
        while waiting:
            next_one = waiting.popleft()
            said = [found for follower in self._followers for found in self._said(follower, next_one)]
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

    def _keep(self, data: bytes, key: str) -> None:
        label = decode_feedback(data)
        for score in self._scores:
            if score.accepts(label) and key == key_of(score.frame.monitor, _series(score, score.labels(label))):
                self._store(score, score.add(self._feedback(score), label))

    def _closed(self, verdict: Verdict) -> list[Verdict]:
        """The verdicts on windows of feedback that end by the verdict's window end."""
        scores = (score for score in self._scores if score.frame.monitor == verdict.monitor)
        return [said for score in scores if self._is_due(score, verdict) for said in self._closed_of(score, verdict)]

    def _is_due(self, score: FeedbackScore, verdict: Verdict) -> bool:
        due = self._states.get(_due_place(score))
        if due is None:  # no label yet, or a state of version 1
            return self._states.get(_place(score)) is not None
        return feedback.decode_due(bytes(due)).by(verdict.window_end_ms)

    def _closed_of(self, score: FeedbackScore, verdict: Verdict) -> list[Verdict]:
        said: list[Verdict] = []
        state = self._feedback(score)
        labels = tuple(verdict.series[name] for name in score.frame.group_by)
        while (end_ms := score.next_end_ms(state)) is not None and end_ms <= verdict.window_end_ms:
            state, found = score.close(state, labels, end_ms)
            said += found
        self._store(score, state)
        return said

    def _feedback(self, score: FeedbackScore) -> FeedbackState:
        stored = self._states.get(_place(score))
        return FeedbackState() if stored is None else feedback.decode(bytes(stored))

    def _store(self, score: FeedbackScore, state: FeedbackState) -> None:
        self._states.put(_place(score), feedback.encode(state))
        self._states.put(_due_place(score), feedback.encode_due(Due(score.next_end_ms(state))))


def _place(score: FeedbackScore) -> str:
    return f"{feedback.TEST}({score.score})\x00{score.frame.monitor}"


def _due_place(score: FeedbackScore) -> str:
    return f"{_place(score)}\x00due"


def _series(score: FeedbackScore, labels: Sequence[str]) -> dict[str, str]:
    return dict(zip(score.frame.group_by, labels, strict=True))
