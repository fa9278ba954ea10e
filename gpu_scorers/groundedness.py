"""Groundedness: how near each sentence of a response lies to some sentence of its prompt, by sentence embeddings.

    groundedness = mean over the response's sentences of the highest cosine to a sentence of the prompt

From -1 to 1. It is offered where there is no NLI model, under its own name, and it is not factuality: a sentence that
contradicts the prompt in the prompt's own words lies very near to it. Use it where the prompt carries what the answer
must be made of (retrieval), and look at its change, not at its height.

Source: ours; the matching of each sentence with its best support is that of SummaC-ZS (Laban et al., "SummaC", TACL
2022), with cosines in place of entailment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gpu_scorers.cosines import unit_rows
from gpu_scorers.scorer import Request, Score, unscored
from gpu_scorers.sentences import sentences
from gpu_scorers.text_encoder import Embedding, TextEncoder
from schemas.judge_report import JudgeReport
from schemas.status import Status

NAME = "groundedness"


@dataclass(frozen=True, slots=True)
class GroundednessPolicy:
    """How much of a text is read: its first `max_sentences` within its first `max_characters`. Both ours."""

    max_sentences: int = 64
    max_characters: int = 65_536


@dataclass(frozen=True, slots=True)
class _Side:
    """The sentences of a text that are read, and whether it has more."""

    sentences: list[str]
    truncated: bool


@dataclass(frozen=True, eq=False)
class Groundedness:
    """The scorer."""

    encoder: TextEncoder
    policy: GroundednessPolicy = field(default_factory=GroundednessPolicy)
    name: str = NAME
    version: str = "1"
    judge: JudgeReport | None = None

    @property
    def model_digest(self) -> str:
        """That of the embedding model."""
        return self.encoder.files.digest

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request. All sentences of the batch go through the model together."""
        sides = [(self._side(r.prompt), self._side(r.response)) for r in batch]
        every = list({s: None for pair in sides for side in pair for s in side.sentences})
        embedded = dict(zip(every, self.encoder.encode(every), strict=True))
        return [[_score(prompt, response, embedded)] for prompt, response in sides]

    def _side(self, text: str | None) -> _Side:
        head = (text or "")[: self.policy.max_characters]
        found = sentences(head)
        truncated = len(text or "") > len(head) or len(found) > self.policy.max_sentences
        return _Side(found[: self.policy.max_sentences], truncated)


def _score(prompt: _Side, response: _Side, embedded: dict[str, Embedding]) -> Score:
    rows = {}
    for name, side in (("prompt", prompt), ("response", response)):
        if not side.sentences:
            return unscored(NAME, Status.NO_DATA, f"the {name} has no sentence")
        vectors = [v for s in side.sentences if (v := embedded[s].vector) is not None]
        units, usable = unit_rows(vectors) if vectors else (np.zeros((0, 0)), np.zeros(0, dtype=np.bool_))
        if not usable.any():
            return unscored(NAME, Status.INVALID, f"the model knows no sentence of the {name}")
        rows[name] = units[usable]
    best = np.clip(rows["response"] @ rows["prompt"].T, -1.0, 1.0).max(axis=1)
    used = [embedded[s] for s in (*prompt.sentences, *response.sentences)]
    evidence: dict[str, str | int | float] = {
        "response_sentences": len(best),
        "response_sentences_unreadable": len(response.sentences) - len(best),
        "prompt_sentences": len(rows["prompt"]),
        "lowest": float(best.min()),
    }
    for embedding in used:
        if embedding.fallback:
            evidence |= embedding.fallback.evidence()
    cut = sum(embedding.tokens.truncated for embedding in used)
    if cut:
        evidence["sentences_cut"] = cut
    truncated = prompt.truncated or response.truncated or cut > 0
    return Score(NAME, float(best.mean()), truncated=truncated, evidence=evidence)
