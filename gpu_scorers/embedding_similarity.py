"""Embedding similarity: how near a response is to its prompt, and a prompt to the centroid of a reference.

    prompt_response_similarity   cosine of the embeddings of prompt and response
    prompt_centroid_similarity   cosine of the prompt's embedding to the reference centroid, where one is given
    response_centroid_similarity the same of the response's

All are from -1 to 1. A zero vector has no direction and so no cosine: its score is `invalid`, never 0 and never NaN.

Sources: spec M2, D3; Reimers & Gurevych, "Sentence-BERT", EMNLP 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_scorers.cosines import row_cosines
from gpu_scorers.scorer import Request, Score, unscored
from gpu_scorers.text_encoder import Embedding, TextEncoder
from schemas.judge_report import JudgeReport
from schemas.status import Status


@dataclass(frozen=True, slots=True, eq=False)
class Centroid:
    """The centroid of a reference, of shape (dimension,), not all zeros; and the reference's digest."""

    vector: NDArray[np.float64]
    digest: str


@dataclass(frozen=True, eq=False)
class EmbeddingSimilarity:
    """The scorer. Raises ValueError where the centroid is not of the model's dimension."""

    encoder: TextEncoder
    centroid: Centroid | None = None
    name: str = "embedding_similarity"
    version: str = "1"
    judge: JudgeReport | None = None

    def __post_init__(self) -> None:
        """Refuse a centroid of another model."""
        if self.centroid is not None and self.centroid.vector.shape != (self.encoder.dimension,):
            found, expected = self.centroid.vector.shape, self.encoder.dimension
            raise ValueError(f"the centroid has shape {found} where the model's embeddings have {expected} numbers")

    @property
    def model_digest(self) -> str:
        """That of the embedding model."""
        return self.encoder.files.digest

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request, three where there is a centroid."""
        texts = list(dict.fromkeys(t for r in batch for t in (r.prompt, r.response) if t is not None))
        embedded = dict(zip(texts, self.encoder.encode(texts), strict=True))
        return [self._scores(r, embedded) for r in batch]

    def _scores(self, request: Request, embedded: dict[str, Embedding]) -> list[Score]:
        sides = {"prompt": request.prompt, "response": request.response}
        found = {side: None if text is None else embedded[text] for side, text in sides.items()}
        scores = [_cosine("prompt_response_similarity", found)]
        if self.centroid is not None:
            for side in sides:
                one = {side: found[side]}
                scores.append(_cosine(f"{side}_centroid_similarity", one, self.centroid))
        return scores


def _cosine(name: str, sides: dict[str, Embedding | None], centroid: Centroid | None = None) -> Score:
    """The cosine of the two embeddings, or of the only one to the centroid."""
    vectors: list[NDArray[np.floating[Any]]] = []
    evidence: dict[str, str | int] = {}
    for side, embedding in sides.items():
        if embedding is None or not embedding.tokens.n_tokens:
            return unscored(name, Status.NO_DATA, f"no {side}" if embedding is None else f"the {side} has no token")
        if embedding.vector is None:
            return unscored(name, Status.INVALID, f"{side}: {embedding.reason}")
        vectors.append(embedding.vector)
        evidence |= embedding.evidence(f"{side}_")
    if centroid is not None:
        vectors.append(centroid.vector)
        evidence["reference_digest"] = centroid.digest
    value = row_cosines(vectors[0], vectors[1])[0]
    if value is None:
        return unscored(name, Status.INVALID, "an embedding of zeros has no direction")
    truncated = any(side is not None and side.tokens.truncated for side in sides.values())
    return Score(name, value, truncated=truncated, evidence=evidence)
