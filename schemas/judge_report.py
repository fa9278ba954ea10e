"""What a judge showed on a validation set: the report that must stand behind a score before an SLI counts it.

Source of the limit: spec S1 (a judge of hallucinations must show an F1 of at least 0.92).
"""

from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from schemas.status import Status
from schemas.strict_json import loads_strictly

QUALIFYING_F1 = 0.92
"""Spec S1. What reads scores may ask for more, never for less."""


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """How well a judge agreed with people.

    `f1` is that of the class the judge is there to find, from 0 to 1; `n` how many labelled examples it was taken over;
    `date` when, ISO 8601; `digest` the SHA-256 of the examples and the judge's answers (`sha256:` and 64 hex digits);
    `model_digest` the model it was taken with. Raises ValueError, naming the field, on anything else.

    >>> JudgeReport(f1=0.94, n=500, date="2026-11-30", digest="sha256:" + "0" * 64).qualifies
    True
    """

    f1: float
    n: int
    date: str
    digest: str
    model_digest: str | None = None

    def __post_init__(self) -> None:
        """Refuse what can't be a report."""
        if isinstance(self.f1, bool) or not isinstance(self.f1, int | float) or not 0.0 <= self.f1 <= 1.0:
            raise ValueError(f"f1 must be a number from 0 to 1, not {self.f1!r}")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise ValueError(f"n must be a whole number of examples above 0, not {self.n!r}")
        try:
            date.fromisoformat(self.date)
        except (TypeError, ValueError):
            raise ValueError(f"date must be a day such as 2026-11-30, not {self.date!r}") from None
        for name, digest in (("digest", self.digest), ("model_digest", self.model_digest)):
            if digest is None and name == "model_digest":
                continue
            if not isinstance(digest, str) or not _is_sha256(digest):
                raise ValueError(f"{name} must be sha256: and 64 hex digits, not {digest!r}")

    @property
    def qualifies(self) -> bool:
        """Whether an SLI may count this judge's scores."""
        return self.f1 >= QUALIFYING_F1

    def to_dict(self) -> dict[str, Any]:
        """As a record of topic `scores` carries it."""
        return asdict(self)


def judge_status(report: JudgeReport | None, model_digest: str | None = None) -> Status:
    """Return `ok` for a judge that qualifies, else `judge_unqualified`.

    It doesn't without a report, with too low an F1, or with a report that was taken with another model.

    >>> str(judge_status(None)), str(judge_status(JudgeReport(0.91, 500, "2026-11-30", "sha256:" + "0" * 64)))
    ('judge_unqualified', 'judge_unqualified')
    """
    if report is None or not report.qualifies:
        return Status.JUDGE_UNQUALIFIED
    if report.model_digest is not None and report.model_digest != model_digest:
        return Status.JUDGE_UNQUALIFIED
    return Status.OK


def load_judge_report(path: str | Path) -> JudgeReport:
    """Read the JSON file of a report, an object of its fields.

    Raises ValueError naming the field that is wrong, missing or unknown; OSError where the file can't be read.
    """
    body = loads_strictly(Path(path).read_bytes())
    if not isinstance(body, dict):
        raise ValueError("a report is one JSON object")
    names = {field.name for field in fields(JudgeReport)}
    if unknown := sorted(body.keys() - names):
        raise ValueError(f"{unknown[0]} is no field of a report; they are {', '.join(sorted(names))}")
    if missing := sorted(names - body.keys() - {"model_digest"}):
        raise ValueError(f"{missing[0]} is missing")
    return JudgeReport(**body)


def _is_sha256(text: str) -> bool:
    head, _, digits = text.partition(":")
    return head == "sha256" and len(digits) == 64 and set(digits) <= set("0123456789abcdef")
