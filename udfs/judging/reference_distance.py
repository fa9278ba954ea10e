"""How far a window's distribution lies from the reference's all along: Cramer-von Mises, or Wasserstein-1.

KS sees the largest gap between two distribution functions. Cramer-von Mises sees the mean of all (better at a small
shift of everything); Wasserstein-1 is the area between them, in the field's own unit (milliseconds stay milliseconds),
so a few values far out count by how far. Both are distances: above 0 by chance, so give a false-alarm budget.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.budget.binned import BinnedBudget
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.promised import promised
from udfs.judging.reference_ks import largest_gap_at
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.rank_excess import RankExcess
from udfs.sketches.reference import RankReference

Test = Literal["cramer_von_mises", "wasserstein_1"]
METHOD = "rank_sketch"


@dataclass(frozen=True)
class ReferenceDistance:
    """Judges the windows of one numeric field; `frame` is made for the feature `TEST(FIELD)`.

    A window drifted where its distance is above `threshold`; with fewer than `min_samples` values it is
    `insufficient_data`, and with an infinite one Wasserstein-1 is `invalid`. Where there is a false-alarm `budget`
    (spec D2) its threshold is taken where that is larger; the budget's levels are in parts of `unit`.
    """

    frame: Frame
    field: str
    test: Test
    reference: RankReference
    threshold: float
    min_samples: int
    budget: BinnedBudget | None = None
    unit: float = 1.0

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `RankExcess`. O(n log n)."""
        (values,) = columns
        return RankExcess.from_values(values, self.reference).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window that ends at `window_end_ms` (epoch milliseconds). O(bytes + k).

        >>> reference = RankReference.from_values([float(ms) for ms in range(100)])
        >>> frame = Frame("chat", "wasserstein_1(ms)", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = ReferenceDistance(frame, "ms", "wasserstein_1", reference, threshold=10.0, min_samples=50)
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch([ms + 20.0 for ms in range(100)])])
        >>> round(verdict.statistic, 9), verdict.drifted
        (20.0, True)
        """
        window = RankExcess.merge_all(sketches, self.reference)
        measured = self._measured(labels, window)
        return [measured_verdict(self.frame, labels, window_end_ms, measured, test=self.test, method=METHOD)]

    def level(self, n: int) -> float:
        """Return the distance above which a window of n values drifted."""
        return self.threshold if self.budget is None else max(self.threshold, self.budget.at(n).level * self.unit)

    def _measured(self, labels: Sequence[str], window: RankExcess) -> Measured:
        rank, distance, threshold = window.rank, None, self.threshold
        status, evidence = Status.INSUFFICIENT_DATA, dict[str, Any]()
        if rank.n >= max(1, self.min_samples) and self.reference.n:
            distance = window.cramer_von_mises() if self.test == "cramer_von_mises" else window.wasserstein_1()
            status = Status.OK if math.isfinite(distance) else Status.INVALID
        if status is Status.OK:
            threshold, evidence = self.level(rank.n), {"largest_gap": largest_gap_at(rank)}
            if self.budget is not None:
                evidence |= promised(self.budget.at(rank.n), labels)
        figure = distance if status is Status.OK else None
        return Measured(
            statistic=figure,
            threshold=threshold,
            wrong_side="above",
            status=status,
            n_window=rank.n,
            n_reference=self.reference.n,
            n_reference_null=self.reference.n_null,
            n_window_null=rank.n_null,
            n_infinite=rank.n_infinite,
            effect=figure,
            evidence=evidence,
        )
