"""What the SLO job must write, worked out the slow way: each record looked at, then the pure state machine.

It shares with the job the checked SLOs, their indicators and the state machine, whose own tests are elsewhere; who is
late, dead or counted, and which slices are empty, it decides by the rules that docs/slos.md states.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from jobs.slo import groups_of
from jobs.slos import Slos
from schemas.verdicts import Verdict
from udfs.slicing.body import decoder
from udfs.slicing.fields import column, field_of
from udfs.slo.flink_slos import SloGroup
from udfs.slo.indicators import NOTHING, tallies
from udfs.slo.state import instants
from udfs.slo.step import SloSeries

MAX_SKEW_MS = 5 * 60 * 1000
Place = tuple[int, int]


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


def expected(records: Iterable[TopicRecord], slos: Slos, bound_ms: int, source: str = "requests") -> Expected:
    """Return what the job has written of one topic."""
    result, slice_ms = Expected(), slos.slice_ms
    newest: dict[int, int] = defaultdict(int)
    slices: dict[int, list[bytes]] = defaultdict(list)
    for record in records:
        result.books["read"] += 1
        event_ms, reason = _usable(record)
        if reason:
            result.dead_letters[record.partition, record.offset] = reason
            result.books["dead"] += 1
            continue
        newest[record.partition] = max(newest[record.partition], event_ms)
        end_ms = event_ms - event_ms % slice_ms + slice_ms
        if end_ms - 1 <= newest[record.partition] - bound_ms:
            result.dead_letters[record.partition, record.offset] = "late"
            result.books["late"] += 1
            continue
        slices[end_ms].append(record.value or b"")
    watermark_ms = min(newest.values()) - bound_ms - 1
    closed = {end_ms: of for end_ms, of in sorted(slices.items()) if end_ms - 1 <= watermark_ms}
    result.books["sliced"] = sum(map(len, closed.values()))
    for group in groups_of(slos, source):
        series: dict[tuple[str, ...], dict[int, list[bytes]]] = defaultdict(dict)
        for end_ms, values in closed.items():
            for labels, of in _by_series(values, group).items():
                series[labels][end_ms] = of
        for labels, taken in series.items():
            for slo in group.slos:
                result.verdicts += _judged(SloSeries(slo, labels, slice_ms), taken, watermark_ms)
    return result


def _usable(record: TopicRecord) -> tuple[int, str]:
    """Return the event time, or why there is none."""
    try:
        body = orjson.loads(record.value or b"")
    except orjson.JSONDecodeError:
        return 0, "malformed_json" if record.value else "no_value"
    if not isinstance(body, dict):
        return 0, "malformed_json"
    event_ms = body.get("event_time_ms")
    if isinstance(event_ms, bool) or not isinstance(event_ms, int) or event_ms <= 0:
        return 0, "bad_time"
    return event_ms, "clock_skew" if event_ms > record.timestamp_ms + MAX_SKEW_MS else ""


def _by_series(values: list[bytes], group: SloGroup) -> dict[tuple[str, ...], list[bytes]]:
    found: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
    for value in values:
        body: dict[str, Any] = msgspec.json.decode(value)
        found[tuple(body.get(label) or "" for label in group.labels)].append(value)
    return found


def _judged(series: SloSeries, taken: dict[int, list[bytes]], watermark_ms: int) -> list[Verdict]:
    slo, state, verdicts = series.slo, None, list[Verdict]()
    decode = decoder(tuple(sorted({field_of(given.field) for given in slo.indicator.inputs}))).decode
    for end_ms, values in taken.items():
        bodies = [decode(value) for value in values]
        columns = [column(bodies, given) for given in slo.indicator.inputs]
        (tally,) = tallies([slo.indicator], slo.indicator.inputs, columns)
        state, said = series.step(state, end_ms, tally)
        verdicts += said
    assert state is not None
    last_end_ms, last_data_ms = instants(state)
    silent_ms = min(watermark_ms, last_data_ms + slo.quiet_ms)
    for end_ms in range(last_end_ms + series.slice_ms, silent_ms + 1, series.slice_ms):
        state, said = series.step(state, end_ms, NOTHING)
        verdicts += said
    return verdicts
