"""Embeddings of a sliding window against a stored centroid: their mean cosine, and its distribution (spec D3).

Two questions, because one hides from the other: a tenth of the requests moving far away moves the mean cosine little
and its distribution a lot, a slight turn of all of them moves both. Decay over days is made of these verdicts by
`udfs.signals.embedding_decay`.
"""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.budget.threshold import ThresholdCurve
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.references.embedding_reference import EmbeddingReference
from udfs.sketches.rank import RankSketch
from udfs.sketches.vector_sum import VectorSum
from udfs.statistics.cosines import cosines_to
from udfs.statistics.ks import Method
from udfs.versioned_bytes import refuse, seal, unseal

TEST, METHOD = "mean_cosine", "vector_sum"
_TAG, _VERSION = b"EMB", 1
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class EmbeddingPolicy:
    """What a window of embeddings is judged by.

    The mean cosine may lie `max_drop` below the reference's own. No figure is published for it (spec D3 names none):
    0.05 is ours, and depends on the embedding model, so set it from quiet windows. `alpha`, `min_effect` and `method`
    are those of the distribution's KS test (spec D1), which `judge_distribution` turns off.
    """

    max_drop: float = 0.05
    min_samples: int = 100
    judge_distribution: bool = True
    alpha: float = 0.01
    min_effect: float = 0.1
    method: Method = "asymptotic"


@dataclass(frozen=True)
class EmbeddingJudge:
    """Judges the windows of one field of embeddings.

    `frame` is made for the feature `mean_cosine(FIELD)`; verdicts of the distribution speak of `ks(cosine(FIELD))`,
    whose alpha a false-alarm `budget` chooses where there is one (spec D2); `max_drop` stays what was set. An embedding
    of another dimension, a zero one, or one with NaN or an infinity takes no part and is counted in the evidence. A
    slice takes 8 bytes a dimension and at most 2 bytes a request or a reference point beside it.
    """

    frame: Frame
    field: str
    reference: EmbeddingReference
    policy: EmbeddingPolicy
    budget: ThresholdCurve | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a vector."""
        return (Input(self.field, InputKind.VECTOR),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the slice's `VectorSum` and the `RankSketch` of its cosines, sealed. O(n dimension)."""
        (vectors,) = columns
        total = VectorSum.from_vectors(vectors, self.reference.dimension).to_bytes()
        cosines = RankSketch.from_values(cosines_to(vectors, self.reference.direction), self.reference.similarities)
        return seal(_TAG, _VERSION, _LENGTH.pack(len(total)) + total + cosines.to_bytes())

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the verdict on the mean cosine and, where it is wanted, the one on the distribution of cosines.

        Raises ValueError on bytes of another reference. O(total bytes).

        >>> from udfs.references.embedding_reference import build_embedding_reference
        >>> reference = build_embedding_reference([[1.0, 0.0]] * 50, name="chat", source="an example")
        >>> frame = Frame("chat", "mean_cosine(e)", ("model",), 60_000, 60_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = EmbeddingJudge(frame, "e", reference, EmbeddingPolicy(min_samples=2))
        >>> mean, ks = judge.judge(["m1"], 60_000, [judge.sketch([[1.0, 1.0], [2.0, 0.0], [0.0, 0.0], None])])
        >>> round(mean.statistic, 3), mean.threshold, mean.drifted, mean.n_window, mean.evidence["n_zero"]
        (0.854, 0.95, True, 2, 1)
        >>> ks.feature, ks.statistic
        ('ks(cosine(e))', 0.5)
        """
        parts = [_parts(data) for data in sketches]
        total = VectorSum.merge_all([vectors for vectors, _ in parts], self.reference.dimension)
        mean = measured_verdict(self.frame, labels, window_end_ms, self._measured(total), test=TEST, method=METHOD)
        if not self.policy.judge_distribution:
            return [mean]
        return [mean, *self.distribution.judge(labels, window_end_ms, [cosines for _, cosines in parts])]

    @property
    def distribution(self) -> ReferenceKs:
        """What judges the cosines of a window, from their rank sketches."""
        feature = f"ks(cosine({self.field}))"
        return ReferenceKs(
            frame=replace(self.frame, feature=feature),
            field=self.field,
            alpha=self.policy.alpha,
            min_effect=self.policy.min_effect,
            min_samples=self.policy.min_samples,
            method=self.policy.method,
            reference=self.reference.similarities,
            budget=self.budget,
        )

    def _measured(self, total: VectorSum) -> Measured:
        reference = self.reference
        mean = _mean_cosine(total, reference) if total.n >= self.policy.min_samples else None
        return Measured(
            statistic=mean,
            threshold=reference.mean_cosine - self.policy.max_drop,
            wrong_side="below",
            status=Status.INSUFFICIENT_DATA if mean is None else Status.OK,
            n_window=total.n,
            n_reference=reference.n,
            n_reference_null=reference.n_null,
            n_window_null=total.n_null,
            effect=None if mean is None else reference.mean_cosine - mean,
            evidence={
                "reference_mean_cosine": reference.mean_cosine,
                "n_zero": total.n_zero,
                "n_invalid": total.n_invalid,
                "resultant_length": None if mean is None else total.resultant_length(),
            },
        )


def _mean_cosine(total: VectorSum, reference: EmbeddingReference) -> float | None:
    centroid = total.centroid()
    if centroid is None:
        return None
    return max(-1.0, min(1.0, math.fsum(centroid * reference.direction)))


def _parts(data: bytes) -> tuple[bytes, bytes]:
    body = unseal(data, _TAG)
    if len(body) < _LENGTH.size or len(body) < _LENGTH.size + _LENGTH.unpack_from(body)[0]:
        refuse(_TAG, "the lengths do not add up")
    end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    return body[_LENGTH.size : end], body[end:]
