"""A reference over bins: which shares the stream behind it may have, as far as its counts tell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.ids import content_digest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReferenceBins:
    """`weights` are a Dirichlet's, one a bin: counts for categories, counts of gaps between points for quantile bins.

    `n_raw` is how many raw values the reference stands for. A bin of weight 0 never occurs.
    """

    weights: Floats
    n_raw: int

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64]) -> "ReferenceBins":
        """Bins that were there before the values: categories.

        >>> ReferenceBins.of_counts(np.array([3, 0, 1])).n_raw
        4
        """
        return cls(counts.astype(np.float64), int(counts.sum()))

    @classmethod
    def of_quantiles(cls, counts: NDArray[np.int64], n_raw: int) -> "ReferenceBins":
        """Bins whose edges are reference points, the first and the last beyond them all (`QuantileBins`).

        m points leave m + 1 gaps of equal weight; the two outer bins are one gap each. A point that stands for many raw
        values brings as many gaps.

        >>> ReferenceBins.of_quantiles(np.array([0, 2, 2, 0]), 4).weights.tolist()
        [1.0, 1.0, 2.0, 1.0]
        """
        gaps = counts.astype(np.float64)
        of_a_point = n_raw / max(1.0, float(gaps.sum()))
        gaps *= of_a_point
        outer = 1.0 if of_a_point <= 1.0 else 0.5 * of_a_point
        gaps[0] = gaps[-1] = outer
        gaps[1] = max(0.5, gaps[1] - outer)
        return cls(gaps, n_raw)

    @property
    def size(self) -> int:
        """How many bins can occur."""
        return int(np.count_nonzero(self.weights))

    @property
    def digest(self) -> str:
        """Names weights and size."""
        return content_digest(self.weights.astype("<f8").tobytes() + str(self.n_raw).encode())

    @property
    def shares(self) -> Floats:
        """The likeliest shares."""
        found: Floats = self.weights / self.weights.sum()
        return found

    def draw_shares(self, rng: np.random.Generator, independent: float = 1.0) -> Floats:
        """Return shares of one stream; values that depend on each other tell as much as this part of them would."""
        known = self.weights > 0
        shares = np.zeros(self.weights.size)
        shares[known] = rng.dirichlet(self.weights[known] * independent)
        total: Floats = shares / shares.sum()
        return total
