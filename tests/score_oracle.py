"""What the score job must write, worked out the slow way: each record of a partition in turn, then the pure batch.

It shares with the job the scorers, the rules and the batch, whose own tests are elsewhere; who is sampled it decides by
the rule that docs/score_job.md states.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from jobs.score_batch import SampledRecord, ScoreBatch, ScorerInJob
from schemas.books import ScoreKind
from udfs.sampling.hash_fraction import hash_fraction


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One record of topic `requests`; those of one partition are given in the order of their offsets."""

    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: bytes | None
    header_ms: int | None


@dataclass
class Expected:
    """All that the job must write: scores by their id, decisions and dead letters as bytes."""

    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    decisions: Counter[bytes] = field(default_factory=Counter)
    letters: Counter[bytes] = field(default_factory=Counter)
    books: Counter[str] = field(default_factory=Counter)


def expected(records: Iterable[TopicRecord], scorers: list[ScorerInJob], topic: str, config_digest: str) -> Expected:
    """Return what the job has written once it has read `records`."""
    result = Expected()
    places: Counter[tuple[Any, ...]] = Counter()
    sampled = []
    for record in records:
        result.books[ScoreKind.READ] += 1
        body = _body(record.value)
        series = tuple(body.get(name) for name in ("service_name", "provider", "model"))
        event_ms = record.header_ms if record.header_ms is not None else body.get("event_time_ms")
        counter = (record.partition, series, event_ms // 60_000 if isinstance(event_ms, int) else None)
        places[counter] += 1
        trace_id = record.key if record.key is not None else body.get("trace_id", "")
        fraction, place = hash_fraction(trace_id), places[counter]
        if any(each.rule.includes(fraction, place) for each in scorers):
            where = (record.partition, record.offset, record.timestamp_ms)
            sampled.append(SampledRecord(record.value, trace_id, place, *where))
        else:
            result.books[ScoreKind.UNSAMPLED] += 1
    for outcome in ScoreBatch(scorers, topic, config_digest).score(sampled):
        result.books[outcome.kind] += 1
        result.scores |= {score["score_id"]: score for score in map(orjson.loads, outcome.scores)}
        result.decisions.update(outcome.decisions)
        result.letters.update(outcome.letters)
    return result


def _body(value: bytes | None) -> dict[str, Any]:
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
