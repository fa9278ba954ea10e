"""One decision, as topic `decisions` carries it: what should be done, by which rule, on which inputs.

A decision is a proposal: Slacktide analyses and never acts. The value is JSON, described by `decisions.schema.json`;
the key is the subject.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import orjson

from schemas.ids import record_id
from schemas.times import rfc3339

SCHEMA_VERSION = 1


class Action(StrEnum):
    """What is proposed."""

    REVIEW = "review"  # a person should look at the subject
    SCALE = "scale"
    ROLL_BACK = "roll_back"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `subject` is what it is about, and `subject_type` what kind of thing that is (`request`, `arm`...).

    `rule` names the rule that fired and `inputs` the figures that it fired on; `reason` says it in a sentence, without
    any text of a request. `cause_id` is the id of the record that made it fire (a score, a verdict), `event_time_ms`
    that record's event time, `labels` the series it belongs to, `config_digest` the configuration of the rule.

    Raises ValueError on an input that is NaN or infinite.
    """

    action: Action
    subject: str
    subject_type: str
    rule: str
    reason: str
    cause_id: str
    event_time_ms: int
    labels: Mapping[str, str]
    inputs: Mapping[str, str | int | float | bool | None]
    config_digest: str

    def __post_init__(self) -> None:
        """Refuse figures that no record may hold."""
        for name, given in self.inputs.items():
            if isinstance(given, float) and not math.isfinite(given):
                raise ValueError(f"inputs.{name} must be finite")

    @property
    def decision_id(self) -> str:
        """Deterministic over what is proposed for what, by which rule of which configuration, because of what."""
        return record_id(self.action, self.subject_type, self.subject, self.rule, self.config_digest, self.cause_id)

    def to_json(self) -> bytes:
        """The Kafka value: ids first, keys in a fixed order.

        >>> decision = Decision(Action.REVIEW, "0a", "request", "low_score(factuality)", "factuality is below 0.5",
        ...     "0c", 1_700_000_000_000, {"model": "m"}, {"value": 0.2}, "sha256:" + "0" * 64)
        >>> orjson.loads(decision.to_json())["event_time"]
        '2023-11-14T22:13:20.000Z'
        """
        return orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "decision_id": self.decision_id,
                "action": self.action,
                "subject": self.subject,
                "subject_type": self.subject_type,
                "rule": self.rule,
                "reason": self.reason,
                "cause_id": self.cause_id,
                "event_time": rfc3339(self.event_time_ms),
                "labels": dict(sorted(self.labels.items())),
                "inputs": dict(self.inputs),
                "config_digest": self.config_digest,
            }
        )
