"""What a scorer is: a batch of requests in, for each of them a list of named scores out.

A scorer never raises because of a record: one that it can't score gets a score without a value and with a status that
says why, and the others are scored as if it weren't there. No score is NaN or infinite. What stops a scorer is a model
that can't be had, and that is said when it is made (`gpu_scorers.model_files.ModelError`), not on the first record.

This file imports no torch, so that jobs can name these types without loading it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from schemas.judge_report import JudgeReport
from schemas.status import Status
from schemas.version_graph import VersionGraph

Evidence = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What scorers read of one request; each scorer says which fields it takes, and None is a field that isn't there.

    `golden` is the text that a good answer should equal (BLEU). `logits` and `previous_logits` are one output of the
    current and of the previous version of a model, each of shape (labels,), any float type. `graph` is a snapshot of a
    version's graph. `labels` are those of the request: service, model, template...
    """

    trace_id: str
    prompt: str | None = None
    response: str | None = None
    golden: str | None = None
    logits: NDArray[np.floating[Any]] | None = None
    previous_logits: NDArray[np.floating[Any]] | None = None
    graph: VersionGraph | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """One figure about one request.

    `value` is finite where `status` is `ok`, and None where it isn't. `label` is the class that the figure stands for
    where the scorer decides one (`consistent`, `refused`). `truncated`: the scorer did not see the whole text;
    `evidence` then says how many tokens it left out. Raises ValueError where value and status contradict each other.

    >>> Score("repetition_rate", 0.25).status
    <Status.OK: 'ok'>
    >>> Score("repetition_rate", None)
    Traceback (most recent call last):
    ...
    ValueError: repetition_rate: ok needs a finite value, not None
    """

    name: str
    value: float | None
    status: Status = Status.OK
    label: str | None = None
    truncated: bool = False
    evidence: Evidence = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a figure without a status that allows it, and the reverse."""
        if self.status is Status.OK and (self.value is None or not math.isfinite(self.value)):
            raise ValueError(f"{self.name}: ok needs a finite value, not {self.value}")
        if self.status is not Status.OK and self.value is not None:
            raise ValueError(f"{self.name}: {self.status} has no value, not {self.value}")


def unscored(name: str, status: Status, reason: str) -> Score:
    """Return the score of a request that can't be scored.

    >>> unscored("bleu_4", Status.NO_DATA, "no golden text").evidence["reason"]
    'no golden text'
    """
    return Score(name, None, status, evidence={"reason": reason})


@runtime_checkable
class Scorer(Protocol):
    """Anything that scores batches.

    `name` is that of the scorer, unique within a job; the scores have names of their own. `version` changes whenever
    the same input may give another figure. `model_digest` is that of the model's files, None where there is no model.
    `judge` is the validation report of a scorer that judges, None for one that measures or was not validated.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def model_digest(self) -> str | None: ...

    @property
    def judge(self) -> JudgeReport | None: ...

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return the scores of each request, in the order of `batch` and as many lists as it has requests."""
        ...
