"""Version sketch: a slice of inputs that two adjacent versions answered, as three sums of scores.

Guarantee: merging is exact, commutative and associative, the empty sketch is neutral, and merged equals pooled, to the
last bit. Each score is summed and counted by itself, so a request that carries only one of them counts for that one.
As bytes: 152.

Source: spec D6.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.versioned_bytes import refuse, seal, unseal
from udfs.versions.score_sum import HIGHEST, ScoreSum
from udfs.versions.softmax_pairs import PairScores, scores_of_logits, scores_of_probabilities

_TAG, _VERSION = b"VSK", 1
_NONE = ScoreSum()
_PART_BYTES = len(_NONE.to_bytes())

Scores: TypeAlias = ArrayLike | pd.Series


@dataclass(frozen=True, slots=True)
class VersionSketch:
    """The sums of Jensen-Shannon divergences (bits), of agreements (1 for the same label) and of KL (nats)."""

    js_bits: ScoreSum = _NONE
    agreement: ScoreSum = _NONE
    kl_nats: ScoreSum = _NONE

    @classmethod
    def from_logits(cls, previous: NDArray[Any], current: NDArray[Any]) -> "VersionSketch":
        """Sketch two arrays of logits of shape (n, k), as `softmax_pairs.scores_of_logits` takes them. O(n k).

        >>> import numpy as np
        >>> previous, current = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [1.0, 0.0]])
        >>> sketch = VersionSketch.from_logits(previous, current)
        >>> sketch.agreement.n, sketch.agreement.mean, round(sketch.kl_nats.mean, 6)
        (2, 0.5, 0.231059)
        """
        return cls._from_pairs(scores_of_logits(previous, current))

    @classmethod
    def from_probabilities(cls, previous: NDArray[Any], current: NDArray[Any]) -> "VersionSketch":
        """Sketch two arrays of probabilities of shape (n, k), as `scores_of_probabilities` takes them. O(n k)."""
        return cls._from_pairs(scores_of_probabilities(previous, current))

    @classmethod
    def _from_pairs(cls, pairs: PairScores) -> "VersionSketch":
        made = cls.from_scores(js_bits=pairs.js_bits, agreement=pairs.same_label, kl_nats=pairs.kl_nats)
        invalid = ScoreSum(n_invalid=pairs.n_invalid)
        return made.merge(cls(invalid, invalid, invalid))

    @classmethod
    def from_scores(
        cls, *, js_bits: Scores | None = None, agreement: Scores | None = None, kl_nats: Scores | None = None
    ) -> "VersionSketch":
        """Sketch scores that came ready-made with the requests, each a sample of numbers with nulls.

        `js_bits` and `agreement` must be in 0 to 1 and `kl_nats` in 0 to 1024; what isn't is counted as invalid. An
        agreement is 1 (or True) for the same label; a share in between counts as that share. None: no such score was
        collected. Raises ValueError where a sample holds what is no number. O(n log n).

        >>> VersionSketch.from_scores(agreement=[True, True, False, None]).agreement.mean
        0.6666666666666666
        """
        return cls(
            _NONE if js_bits is None else ScoreSum.from_values(js_bits),
            _NONE if agreement is None else ScoreSum.from_values(agreement),
            _NONE if kl_nats is None else ScoreSum.from_values(kl_nats, highest=HIGHEST),
        )

    def merge(self, other: "VersionSketch") -> "VersionSketch":
        """Return the sketch of both slices. O(1)."""
        return VersionSketch(
            self.js_bits.merge(other.js_bits),
            self.agreement.merge(other.agreement),
            self.kl_nats.merge(other.kl_nats),
        )

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes]) -> "VersionSketch":
        """Return the sketch of all slices, straight from their bytes; of none, the empty one.

        >>> slices = [VersionSketch.from_scores(kl_nats=v).to_bytes() for v in ([0.1, 0.3], [0.8])]
        >>> round(VersionSketch.merge_all(slices).kl_nats.mean, 12)
        0.4
        """
        merged = cls()
        for data in sketches:
            merged = merged.merge(cls.from_bytes(data))
        return merged

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes, the same for equal sketches: the three sums, one after the other."""
        return seal(_TAG, _VERSION, b"".join(getattr(self, field.name).to_bytes() for field in fields(self)))

    @classmethod
    def from_bytes(cls, data: bytes) -> "VersionSketch":
        """Read a sketch back. Raises ValueError on bytes that are none.

        >>> sketch = VersionSketch.from_scores(js_bits=[0.5])
        >>> VersionSketch.from_bytes(sketch.to_bytes()) == sketch
        True
        """
        body = unseal(data, _TAG)
        if len(body) != 3 * _PART_BYTES:
            refuse(_TAG, f"{len(body)} bytes of body, {3 * _PART_BYTES} were expected")
        return cls(*(ScoreSum.from_bytes(body[at : at + _PART_BYTES]) for at in range(0, len(body), _PART_BYTES)))
