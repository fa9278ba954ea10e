"""Null rate: whether a field is missing more or less often than in the reference (spec D10).

Nulls take part in no distribution test, so a field that goes missing would drift unseen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame, Policy
from udfs.statistics.judgement import is_drifted, published_score
from udfs.statistics.result import TestResult
from udfs.statistics.two_proportions import two_proportions

TEST = "two_proportions"


class CountsNulls(Protocol):
    """A sketch that counts values and, apart from them, nulls: rank, log and category sketches do."""

    @property
    def n(self) -> int:
        """Values that are no null."""
        ...

    @property
    def n_null(self) -> int:
        """Nulls and NaN."""
        ...


@dataclass(frozen=True)
class NullRate:
    """A finding of `WithFindings`: the share of nulls in the window against the reference's.

    `reference_n` counts the reference's raw values that are no null, `reference_null` its nulls. The statistic is the
    window's share; the effect, held against `min_effect`, is by how many share points it differs. With fewer than
    `min_samples` requests the window is `insufficient_data`. The verdict's feature is `null_rate(FIELD)`.
    """

    frame: Frame
    field: str
    reference_n: int
    reference_null: int
    alpha: float
    min_effect: float
    min_samples: int

    @cached_property
    def _finding(self) -> Frame:
        return self.frame.about(f"null_rate({self.field})", VerdictKind.FINDING)

    def look(self, labels: Sequence[str], window_end_ms: int, merged: CountsNulls) -> list[Verdict]:
        """Return the one verdict of the window.

        >>> from udfs.sketches.category import CategoryCounts
        >>> frame = Frame("chat", "model", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> finding = NullRate(frame, "model", 990, 10, alpha=0.01, min_effect=0.02, min_samples=100)
        >>> (verdict,) = finding.look([], 60_000, CategoryCounts.from_values(["a"] * 900 + [None] * 100))
        >>> verdict.feature, verdict.statistic, verdict.drifted, verdict.evidence
        ('null_rate(model)', 0.1, True, {'reference_share': 0.01, 'window_share': 0.1})
        """
        n = merged.n + merged.n_null
        result = two_proportions(self.reference_null, self.reference_n + self.reference_null, merged.n_null, n)
        if n < self.min_samples:
            result = TestResult.without_figures(
                Status.INSUFFICIENT_DATA, method=result.method, n_reference=result.n_reference, n_window=n
            )
        is_known = result.statistic is not None
        evidence = {"reference_share": self.reference_null / result.n_reference, "window_share": result.statistic}
        verdict = self._finding.verdict(
            labels,
            window_end_ms,
            result,
            test=TEST,
            drifted=is_drifted(result, alpha=self.alpha, min_effect=self.min_effect),
            published_score=published_score(result, alpha=self.alpha),
            policy=Policy(alpha=self.alpha, min_effect=self.min_effect),
            evidence=evidence if is_known else {},
        )
        return [verdict]
