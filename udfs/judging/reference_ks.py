"""Exact two-sample KS of a sliding window against a stored reference (spec D1).

Pure, so that the same window always gives the same bytes.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.budget.threshold import ThresholdCurve
from udfs.judging.frame import Frame, Policy
from udfs.judging.promised import promised
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.rank import RankSketch
from udfs.sketches.rank_windows import merge_windows
from udfs.sketches.reference import RankReference
from udfs.statistics.judgement import is_drifted, published_score
from udfs.statistics.ks import Method
from udfs.statistics.result import TestResult

TEST = "ks_two_sample"


@dataclass(frozen=True)
class ReferenceKs:
    """Judges the windows of one numeric field.

    A window drifted when p < `alpha` and D >= `min_effect`; with fewer than `min_samples` values it is
    `insufficient_data`. Where there is a false-alarm `budget` (spec D2), alpha is the one that keeps it for a window of
    as many values, and the evidence says what is promised. `reference` is prepared, so nothing is read from a disk
    later.
    """

    frame: Frame
    field: str
    alpha: float
    min_effect: float
    min_samples: int
    method: Method
    reference: RankReference
    budget: ThresholdCurve | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `RankSketch`. O(n log n) of n values."""
        (values,) = columns
        return RankSketch.from_values(values, self.reference).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window that ends at `window_end_ms` (epoch milliseconds, exclusive).

        Raises ValueError on bytes of another reference. O(total bytes + k), and about 0.2 ms for a p-value not met
        before.

        >>> reference = RankReference.from_values([1.0, 2.0, 3.0, 4.0])
        >>> frame = Frame("chat", "input_tokens", ("model",), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = ReferenceKs(frame, "input_tokens", 0.01, 0.05, 3, "asymptotic", reference)
        >>> (verdict,) = judge.judge(["m1"], 60_000, [judge.sketch([2.0, 3.0, None, 9.0])])
        >>> verdict.status, verdict.statistic, verdict.drifted, verdict.series, verdict.n_window, verdict.n_window_null
        ('ok', 0.33333333333333337, False, {'model': 'm1'}, 3, 1)
        """
        return self.of_merged(labels, window_end_ms, self.merged(sketches))

    def merged(self, sketches: Iterable[bytes]) -> RankSketch:
        """Return the sketch of the whole window; `WithFindings` looks at it too."""
        return RankSketch.merge_all(sketches, self.reference)

    def merged_windows(self, windows: Sequence[Sequence[bytes]]) -> list[RankSketch]:
        """Return `merged` of many windows, D and p known, in half of the time."""
        return merge_windows(windows, self.reference)

    def of_merged(self, labels: Sequence[str], window_end_ms: int, merged: RankSketch) -> list[Verdict]:
        """Return the one verdict of a window whose sketches are merged."""
        result = self._tested(merged)
        policy, evidence = Policy(alpha=self.alpha, min_effect=self.min_effect), {}
        if result.status is Status.OK:
            evidence = {"largest_gap": largest_gap_at(merged)}
            if self.budget is not None:
                threshold = self.budget.at(merged.n)
                policy = replace(policy, alpha=threshold.alpha_effective, threshold=threshold.critical_statistic)
                evidence |= promised(threshold, labels)
        alpha = self.alpha if policy.alpha is None else policy.alpha
        verdict = self.frame.verdict(
            labels,
            window_end_ms,
            result,
            test=TEST,
            drifted=is_drifted(result, alpha=alpha, min_effect=self.min_effect),
            published_score=published_score(result, alpha=alpha),
            # So rare an onset that no p is below it: then the statistic alone is told.
            policy=policy if alpha else replace(policy, alpha=None),
            evidence=evidence,
        )
        return [verdict]

    def _tested(self, merged: RankSketch) -> TestResult:
        """The test's result; without figures where the window has too few values to say anything."""
        if merged.n >= self.min_samples:
            return merged.result(self.method)
        return TestResult.without_figures(
            Status.INSUFFICIENT_DATA,
            method=self.method,
            n_reference=self.reference.n,
            n_reference_null=self.reference.n_null,
            n_window=merged.n,
            n_window_null=merged.n_null,
            n_infinite=merged.n_infinite,
        )


def largest_gap_at(sketch: RankSketch) -> dict[str, Any]:
    """Say where window and reference are furthest apart: what share of each lies at or below (or below) which value.

    This is what a person asks first of a drift: larger or smaller, and where. `relation` is `<=`, or `<` where the gap
    is just below the value; `at` is None where the value is infinite. The sketch needs its reference's points and at
    least one value. O(k).

    >>> reference = RankReference.from_values([1.0, 2.0, 3.0, 4.0])
    >>> largest_gap_at(RankSketch.from_values([3.5, 5.0], reference))
    {'at': 3.0, 'relation': '<=', 'reference_share': 0.75, 'window_share': 0.0}
    """
    reference = sketch.reference
    if reference.points is None:
        raise ValueError("this sketch was read without its reference, so it can't say where the gap is")
    gap = sketch.gap
    if gap is None:
        raise ValueError("an empty window has no gap")
    # Bin 2i + 1 is point i itself, bin 2i the open interval below it; in the bin above all both shares are 1.
    at = float(reference.points[min(gap.bin_number // 2, reference.points.size - 1)])
    return {
        "at": at if math.isfinite(at) else None,
        "relation": "<=" if gap.bin_number % 2 or gap.bin_number == reference.n_bins - 1 else "<",
        "reference_share": float(reference.ecdf[gap.bin_number]),
        "window_share": gap.reached / sketch.n,
    }
