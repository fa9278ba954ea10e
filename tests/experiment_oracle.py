"""What the experiment job must write, worked out the slow way: each record looked at, then the pure state machine.

It shares with the job the checked experiments and the state machine, whose own tests are elsewhere; who is late, dead
or counted it decides by the rules that docs/experiments.md states, on records in the order of their partitions.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from jobs.experiments import Experiments
from schemas.verdicts import Verdict
from udfs.experiments.arm_sketch import ArmSketch
from udfs.experiments.state import ExperimentState
from udfs.experiments.step import step
from udfs.experiments.window import ExperimentWindow

MAX_SKEW_MS = 5 * 60 * 1000
Place = tuple[int, int]
ArmKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record of topic `requests`. Records of one partition are given in the order of their offsets."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes | None


@dataclass
class Expected:
    """All that the job must write once event time stands still at the newest record."""

    verdicts: list[Verdict] = field(default_factory=list)
    dead_letters: dict[Place, str] = field(default_factory=dict)
    books: Counter[str] = field(default_factory=Counter)
    last_window_end_ms: int = 0


def expected(
    records: Iterable[TopicRecord], experiments: Experiments, *, added_after_ms: Mapping[str, int] | None = None
) -> Expected:
    """Return what the job has written. `added_after_ms`: the last window before an experiment came into the file."""
    result = Expected()
    newest: dict[int, int] = defaultdict(int)
    users: dict[int, dict[ArmKey, list[str | None]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        result.books["read"] += 1
        body, reason = _usable(record)
        if reason:
            result.dead_letters[record.partition, record.offset] = reason
            result.books["dead"] += 1
            continue
        event_ms = body["event_time_ms"]
        newest[record.partition] = max(newest[record.partition], event_ms)
        end_ms = event_ms - event_ms % experiments.window_ms + experiments.window_ms
        if end_ms - 1 <= newest[record.partition] - experiments.watermark_bound_ms:
            result.dead_letters[record.partition, record.offset] = "late"
            result.books["late"] += 1
            continue
        experiment, epoch, arm = (body.get(name) or "" for name in ("experiment", experiments.epoch_field, "arm"))
        users[end_ms][experiment, epoch, arm].append(body.get("user_hash"))
    watermark_ms = min(newest.values()) - experiments.watermark_bound_ms
    closed = {end_ms: of for end_ms, of in sorted(users.items()) if end_ms - 1 <= watermark_ms}
    result.books["sliced"] = sum(len(users) for of in closed.values() for users in of.values())
    result.last_window_end_ms = max(closed)
    for name in experiments.by_name:
        after_ms = (added_after_ms or {}).get(name, 0)
        result.verdicts += _judged(
            name, {end_ms: of for end_ms, of in closed.items() if end_ms > after_ms}, experiments
        )
    return result


def _usable(record: TopicRecord) -> tuple[dict[str, Any], str]:
    """Return the request, or why there is none."""
    try:
        body = orjson.loads(record.value or b"")
    except orjson.JSONDecodeError:
        return {}, "malformed_json" if record.value else "no_value"
    if not isinstance(body, dict):
        return {}, "malformed_json"
    event_ms = body.get("event_time_ms")
    if isinstance(event_ms, bool) or not isinstance(event_ms, int) or event_ms <= 0:
        return {}, "bad_time"
    return body, "clock_skew" if event_ms > record.timestamp_ms + MAX_SKEW_MS else ""


def _judged(
    name: str, closed: Mapping[int, Mapping[ArmKey, list[str | None]]], experiments: Experiments
) -> list[Verdict]:
    """Run the state machine of one experiment over all windows in which the topic had any request."""
    verdicts: list[Verdict] = []
    state = ExperimentState()
    for end_ms, by_arm in closed.items():
        sketches = [ArmSketch.of(*key, of) for key, of in by_arm.items() if key[0] == name]
        state, said = step(state, ExperimentWindow.of(end_ms, sketches), experiments.by_name[name])
        verdicts += said
    return verdicts
