"""A batch of sampled records of topic `requests` -> their scores, review decisions and dead letters; no engine.

Each scorer gets those of the batch that its own rule chooses, all in one call. Where it raises, the batch is halved
until the record that it raises on is alone: that one becomes a dead letter, and the others are scored as if it weren't
there. What one scorer says never depends on another.

Cost beside the scorers: about 20 microseconds a request and score. Memory: the batch, and its scores.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpu_scorers.scorer import Request, Score, Scorer
from schemas.books import ScoreKind
from schemas.dead_letters import WHOLE_MESSAGE, Reason, dead_letter_record
from schemas.decisions import Action, Decision
from schemas.scores import REQUEST_LABELS, VALUE_DECIMALS, RequestScore
from udfs.sampling.hash_fraction import hash_fraction
from udfs.sampling.review import ReviewRule
from udfs.sampling.rule import SampleRule

JOB = "score"
CUT_BY_INGEST = "text_cut_by_ingest"
log = logging.getLogger(__name__)

_LABELS = [(name, str | None, None) for name in REQUEST_LABELS]
_FIELDS = [("trace_id", str), ("span_id", str), ("event_time_ms", int)]
_TEXTS = [("prompt", str | None, None), ("response", str | None, None), ("is_text_cut", bool | None, None)]
_Body = msgspec.defstruct("_Body", [*_FIELDS, *_TEXTS, *_LABELS], gc=False)
_DECODER = msgspec.json.Decoder(_Body)


@dataclass(frozen=True, slots=True)
class SampledRecord:
    """A record that at least one scorer may want. `place` is its place in its series' minute (`udfs.sampling.rule`)."""

    value: bytes | None
    trace_id: str
    place: int
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True)
class ScorerInJob:
    """A loaded scorer, what it samples, and which of its scores asks for a review."""

    scorer: Scorer
    rule: SampleRule
    review: ReviewRule | None = None


@dataclass
class Outcome:
    """What became of one record: exactly one kind, and the payloads for the three topics."""

    kind: ScoreKind = ScoreKind.UNSAMPLED
    scores: list[bytes] = field(default_factory=list)
    decisions: list[bytes] = field(default_factory=list)
    letters: list[bytes] = field(default_factory=list)


class UnusableRecordError(ValueError):
    """A record that is no request; carries the dead letter's reason and detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class ScoreBatch:
    """Scores batches of topic `topic` with `scorers`. `config_digest` is that of the scorers file."""

    def __init__(self, scorers: Sequence[ScorerInJob], topic: str, config_digest: str) -> None:
        self._scorers, self._topic, self._config_digest = tuple(scorers), topic, config_digest

    def score(self, records: Sequence[SampledRecord]) -> list[Outcome]:
        """Return the outcome of each record, in order. Never raises on any bytes, nor because a scorer does."""
        outcomes = [Outcome() for _ in records]
        bodies: dict[int, Any] = {}
        for row, record in enumerate(records):
            try:
                body = _body_of(record)
            except UnusableRecordError as error:
                self._refuse(outcomes[row], record, error.reason, error.detail)
                continue
            if body.prompt is None and body.response is None:
                outcomes[row].kind = ScoreKind.NO_TEXT
            else:
                bodies[row] = body
        failed: dict[int, list[str]] = {}
        for each in self._scorers:
            self._run(each, records, bodies, outcomes, failed)
        for row, faults in failed.items():
            self._refuse(outcomes[row], records[row], Reason.SCORER_FAILED, "; ".join(faults), bodies[row])
        return outcomes

    def _run(
        self,
        each: ScorerInJob,
        records: Sequence[SampledRecord],
        bodies: dict[int, Any],
        outcomes: list[Outcome],
        failed: dict[int, list[str]],
    ) -> None:
        """Let one scorer score what it samples."""
        rule = each.rule
        rows = [row for row in bodies if rule.includes(hash_fraction(records[row].trace_id), records[row].place)]
        found = scores_or_error(each.scorer, [_request_of(bodies[row]) for row in rows])
        for row, scores in zip(rows, found, strict=True):
            outcomes[row].kind = ScoreKind.SCORED
            error = scores if isinstance(scores, Exception) else None
            if not isinstance(scores, Exception):
                try:
                    self._put(outcomes[row], each, bodies[row], scores, each.rule.rate_at(records[row].place))
                except (ValueError, TypeError) as wrong:  # a figure or evidence that no record can hold
                    error = wrong
            if error is not None:
                # Never its message: that may quote the text.
                failed.setdefault(row, []).append(f"scorer {each.scorer.name} raised {type(error).__name__}")

    def _put(self, outcome: Outcome, each: ScorerInJob, body: Any, scores: Sequence[Score], rate: float) -> None:
        """Add what one scorer says of a request, and the reviews it asks for; nothing where any of it is wrong."""
        made = [self._record(each.scorer, body, score, rate) for score in scores]
        rule = each.review
        asking = [record for record in made if rule and rule.asks(record.score, record.value)]
        payloads = [record.to_json() for record in made]
        outcome.decisions += [self._review(record, rule).to_json() for record in asking if rule]
        outcome.scores += payloads

    def _record(self, scorer: Scorer, body: Any, score: Score, rate: float) -> RequestScore:
        return RequestScore(
            trace_id=body.trace_id,
            span_id=body.span_id,
            event_time_ms=body.event_time_ms,
            labels=_labels_of(body),
            scorer=scorer.name,
            scorer_version=scorer.version,
            model_digest=scorer.model_digest,
            score=score.name,
            value=None if score.value is None else round(float(score.value), VALUE_DECIMALS),
            status=score.status,
            sampling_rate=rate,
            label=score.label,
            truncated=score.truncated or bool(body.is_text_cut),
            judge=scorer.judge,
            evidence={**score.evidence, CUT_BY_INGEST: True} if body.is_text_cut else score.evidence,
        )

    def _review(self, score: RequestScore, rule: ReviewRule) -> Decision:
        return Decision(
            action=Action.REVIEW,
            subject=score.trace_id,
            subject_type="request",
            rule=f"low_score({rule.score})",
            reason=f"{score.score} {score.value:g} is below {rule.below:g}",
            cause_id=score.score_id,
            event_time_ms=score.event_time_ms,
            labels=score.labels,
            inputs={
                "score": score.score,
                "value": score.value,
                "below": rule.below,
                "span_id": score.span_id,
                "scorer": score.scorer,
                "scorer_version": score.scorer_version,
                "model_digest": score.model_digest,
                "sampling_rate": score.sampling_rate,
            },
            config_digest=self._config_digest,
        )

    def _refuse(
        self, outcome: Outcome, record: SampledRecord, reason: Reason, detail: str, body: Any | None = None
    ) -> None:
        outcome.kind = ScoreKind.DEAD
        letter = dead_letter_record(
            reason=reason,
            detail=detail,
            job=JOB,
            topic=self._topic,
            partition=record.partition,
            offset=record.offset,
            index=WHOLE_MESSAGE,
            payload=record.value or b"",
            kafka_timestamp_ms=record.timestamp_ms,
            event_time_ms=None if body is None else body.event_time_ms,
        )
        outcome.letters.append(letter)


def scores_or_error(scorer: Scorer, requests: Sequence[Request]) -> list[list[Score] | Exception]:
    """Return the scores of each request, or the error that `scorer` raises on it alone.

    A batch on which it raises is halved, so one bad request among n costs at most 2 log2(n) further calls.
    """
    if not requests:
        return []
    try:
        found = scorer.score(requests)
        if len(found) != len(requests):
            raise ValueError(f"{scorer.name} gave {len(found)} answers to {len(requests)} requests")
        return list(found)
    except Exception as error:  # whatever a scorer's libraries raise on a record is that record's fault alone
        if len(requests) == 1:
            log.warning("scorer %s raised %s on a request", scorer.name, type(error).__name__)
            return [error]
    middle = len(requests) // 2
    return scores_or_error(scorer, requests[:middle]) + scores_or_error(scorer, requests[middle:])


def _body_of(record: SampledRecord) -> Any:
    """Return the record's fields. Raises UnusableRecordError, which quotes no value of them."""
    if not record.value:
        raise UnusableRecordError(Reason.NO_VALUE, "the record has no value")
    try:
        body: Any = _DECODER.decode(record.value)
    except msgspec.ValidationError as error:  # names field and type
        raise UnusableRecordError(Reason.BAD_VALUE, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnusableRecordError(Reason.MALFORMED_JSON, "the record is not JSON") from None
    if body.trace_id != record.trace_id:
        raise UnusableRecordError(Reason.BAD_ID, "trace_id is not the record's key, by which it was sampled")
    if body.event_time_ms <= 0:
        raise UnusableRecordError(Reason.BAD_TIME, "event_time_ms is not after 1970")
    return body


def _labels_of(body: Any) -> dict[str, str]:
    named = ((name, getattr(body, name)) for name in REQUEST_LABELS)
    return {name: value for name, value in named if value is not None}


def _request_of(body: Any) -> Request:
    return Request(body.trace_id, prompt=body.prompt, response=body.response, labels=_labels_of(body))
