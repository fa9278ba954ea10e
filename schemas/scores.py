"""One semantic score of one request, as topic `scores` carries it.

The value is JSON, described by `scores.schema.json`; the key is the trace id. Nothing in it depends on when or where it
was computed, and no text of the request is in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import orjson

from schemas.ids import record_id
from schemas.judge_report import JudgeReport
from schemas.status import Status
from schemas.strict_json import loads_strictly

SCHEMA_VERSION = 1

REQUEST_LABELS = (
    "service_name",
    "provider",
    "model",
    "model_version",
    "tenant",
    "prompt_template",
    "prompt_template_version",
    "experiment",
    "arm",
    "assignment_epoch",
    "adapter_id",
)
"""Fields of the request that its scores carry under the same names, so that they can be grouped by them."""

VALUE_DECIMALS = 5
"""A model's figure moves in the 7th decimal with what else is in its batch; a replay must write the same bytes."""


class UnreadableScoreError(ValueError):
    """A message of topic `scores` that is no score; the text names the field at fault and quotes no value."""


@dataclass(frozen=True, slots=True)
class RequestScore:
    """One score. `labels` are `REQUEST_LABELS` of the request, those that it has; `event_time_ms` is the request's.

    `scorer` computed it, in version `scorer_version`, with the model of `model_digest` (None: without a model).
    `score` names the figure; `value` is finite where `status` is `ok` and None where it isn't; `label` is the class
    that it stands for, where the scorer decides one. `truncated`: the scorer did not see the whole text.
    `sampling_rate`, above 0 and at most 1, was the request's chance to be scored: it counts for 1 / sampling_rate
    requests. `judge` is the validation report of a scorer that judges, None for one that measures or was not validated.

    Raises ValueError where value, status or sampling rate contradict this.
    """

    trace_id: str
    span_id: str
    event_time_ms: int
    labels: dict[str, str]
    scorer: str
    scorer_version: str
    model_digest: str | None
    score: str
    value: float | None
    status: str
    sampling_rate: float
    label: str | None = None
    truncated: bool = False
    judge: JudgeReport | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a figure without the status for it, and the reverse."""
        if (self.value is not None) != (self.status == Status.OK):
            raise ValueError(f"{self.score}: a value stands exactly where status is ok")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.score}: value must be finite")
        if not 0 < self.sampling_rate <= 1:
            raise ValueError(f"{self.score}: sampling_rate must be above 0 and at most 1")

    @property
    def score_id(self) -> str:
        """Deterministic over the request, the scorer, its version, its model, and the score's name."""
        whose = (self.trace_id, self.span_id, self.scorer, self.scorer_version, self.model_digest or "")
        return record_id(*whose, self.score)

    def to_json(self) -> bytes:
        """The Kafka value: ids first, keys in a fixed order, the value with `VALUE_DECIMALS` decimals.

        >>> score = RequestScore("0a", "0b", 1_700_000_000_000, {"model": "m"}, "repetition", "1", None,
        ...     "repetition_rate", 0.123456789, "ok", 0.01)
        >>> orjson.loads(score.to_json())["value"]
        0.12346
        """
        return orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "score_id": self.score_id,
                "trace_id": self.trace_id,
                "span_id": self.span_id,
                "event_time_ms": self.event_time_ms,
                **{name: self.labels.get(name) for name in REQUEST_LABELS},
                "scorer": self.scorer,
                "scorer_version": self.scorer_version,
                "model_digest": self.model_digest,
                "score": self.score,
                "value": None if self.value is None else round(self.value, VALUE_DECIMALS),
                "status": self.status,
                "label": self.label,
                "truncated": self.truncated,
                "sampling_rate": self.sampling_rate,
                "judge": None if self.judge is None else self.judge.to_dict(),
                "evidence": dict(self.evidence),
            }
        )


def decode_score(payload: bytes | None) -> RequestScore:
    """Read one Kafka value of topic `scores`.

    Raises UnreadableScoreError, whose text names the field at fault and never quotes a value. O(length).
    """
    try:
        body = loads_strictly(payload or b"")
    except (ValueError, RecursionError):
        raise UnreadableScoreError("the message is not JSON") from None
    if not isinstance(body, dict):
        raise UnreadableScoreError("the message is not a JSON object")
    if body.get("schema_version") != SCHEMA_VERSION:
        raise UnreadableScoreError(f"schema_version is not {SCHEMA_VERSION}")
    for name, (kinds, words) in _KINDS.items():
        found = body.get(name)
        # True is an int to Python, and no number here.
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            raise UnreadableScoreError(f"{name} is not {words}")
    labels = {name: body[name] for name in REQUEST_LABELS if body.get(name) is not None}
    if not all(isinstance(value, str) for value in labels.values()):
        raise UnreadableScoreError(f"{next(n for n, v in labels.items() if not isinstance(v, str))} is not a text")
    if body["status"] not in tuple(Status):
        raise UnreadableScoreError(f"status is not one of {', '.join(Status)}")
    return _built(body, labels)


_TEXT: tuple[tuple[type, ...], str] = (str,), "a text"
_OPTIONAL_TEXT: tuple[tuple[type, ...], str] = (str, type(None)), "a text or null"
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "trace_id": _TEXT,
    "span_id": _TEXT,
    "event_time_ms": ((int,), "a whole number of milliseconds"),
    "scorer": _TEXT,
    "scorer_version": _TEXT,
    "model_digest": _OPTIONAL_TEXT,
    "score": _TEXT,
    "value": ((int, float, type(None)), "a number or null"),
    "status": _TEXT,
    "label": _OPTIONAL_TEXT,
    "truncated": ((bool,), "true or false"),
    "sampling_rate": ((int, float), "a number above 0 and at most 1"),
    "judge": ((dict, type(None)), "a validation report or null"),
    "evidence": ((dict,), "an object"),
}


def _built(body: dict[str, Any], labels: dict[str, str]) -> RequestScore:
    given = {name: body[name] for name in (each.name for each in fields(RequestScore)) if name in _KINDS}
    try:
        judge = None if body["judge"] is None else JudgeReport(**body["judge"])
    except (TypeError, ValueError):
        raise UnreadableScoreError("judge is not a validation report") from None
    try:
        return RequestScore(**(given | {"labels": labels, "judge": judge}))
    except ValueError as error:
        raise UnreadableScoreError(str(error)) from None
