"""A category field of a sliding window against stored reference counts: chi-square, or the G-test (spec D1).

Bounded by the reference: a category that it doesn't name is counted in `other`, which is tested like a category,
together with those that are too rare to be tested alone. So a slice of 100,000 new categories takes as many bytes as
one of none, and is seen as `other` having grown; which they are, and new ones in place of old rare ones, is told by
`udfs.judging.new_category`. A reference should name every category that isn't rare: 1,000 are kept by default.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from schemas.ids import content_digest
from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.budget.binned import BinnedBudget, BinnedTest
from udfs.judging.category_name import category_name
from udfs.judging.frame import Frame, Policy
from udfs.judging.promised import promised
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.references.category_feature import CategoryReference
from udfs.sketches.category import CategoryCounts
from udfs.sketches.pooled_categories import CategoryTest, PooledTable, pooled_table, pooled_test
from udfs.statistics.categorical import chi_square_homogeneity, g_test
from udfs.statistics.categories import OTHER
from udfs.statistics.divergence import js_divergence, population_stability_index
from udfs.statistics.judgement import is_drifted, published_score
from udfs.statistics.kolmogorov import LN_10
from udfs.statistics.result import TestResult

TestName = Literal["chi_square_homogeneity", "g_test"]
TESTS: dict[TestName, CategoryTest] = {"chi_square_homogeneity": chi_square_homogeneity, "g_test": g_test}
CATEGORIES_IN_EVIDENCE = 5


@dataclass(frozen=True)
class ReferenceCategories:
    """Judges the windows of one category field.

    A window drifted when p < `alpha` and the share of some category, or of the bucket of rare ones, differs by at least
    `min_effect` (`udfs.sketches.pooled_categories`); with fewer than `min_samples` values it is `insufficient_data`.
    Where there is a false-alarm `budget` (spec D2), alpha is the one that keeps it for a window of as many values.
    The verdict's feature is the field's name.
    """

    frame: Frame
    field: str
    reference: CategoryReference
    alpha: float
    min_effect: float
    min_samples: int
    test: TestName = "chi_square_homogeneity"
    budget: BinnedBudget | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as text."""
        return (Input(self.field, InputKind.TEXT),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `CategoryCounts`, folded to the reference's categories. O(n)."""
        (values,) = columns
        return CategoryCounts.from_values(values).folded(self.reference.known).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window that ends at `window_end_ms` (epoch milliseconds, exclusive).

        Evidence: the categories whose shares changed most, PSI and Jensen-Shannon divergence (bits) of the pooled
        table, Cramer's V, and how many categories were pooled. Raises ValueError on bytes that are no category counts.
        O(slices categories).

        >>> reference = CategoryReference.from_values(["stop"] * 900 + ["length"] * 100, max_categories=1000)
        >>> frame = Frame("chat", "finish_reason", ("model",), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = ReferenceCategories(frame, "finish_reason", reference, alpha=0.01, min_effect=0.05, min_samples=100)
        >>> (verdict,) = judge.judge(["m1"], 60_000, [judge.sketch(["stop"] * 150 + ["length"] * 50)])
        >>> verdict.status, round(verdict.statistic, 6), verdict.drifted, round(verdict.effect, 3)
        ('ok', 34.285714, True, 0.15)
        >>> verdict.evidence["moved"][0]
        {'category': 'length', 'is_bucket': False, 'reference_share': 0.1, 'window_share': 0.25}
        """
        return self.of_merged(labels, window_end_ms, self.merged(sketches))

    def merged(self, sketches: Iterable[bytes]) -> CategoryCounts:
        """Return the counts of the whole window; `WithFindings` looks at them too."""
        return CategoryCounts.merge_all(sketches)

    def of_merged(self, labels: Sequence[str], window_end_ms: int, merged: CategoryCounts) -> list[Verdict]:
        """Return the one verdict of a window whose sketches are merged."""
        reference = self.reference.counts
        table = pooled_table(reference, merged)
        result = pooled_test(table, TESTS[self.test])
        if merged.n < self.min_samples:
            sizes = {"n_reference": result.n_reference, "n_window": merged.n}
            result = TestResult.without_figures(Status.INSUFFICIENT_DATA, method=result.method, **sizes)
        result = replace(result, n_reference_null=reference.n_null, n_window_null=merged.n_null)
        alpha, evidence = self.alpha, {}
        if result.status is Status.OK:
            evidence = _evidence(table, reference, merged)
            if self.budget is not None:
                threshold = self.budget.at(merged.n)
                alpha, evidence = math.exp(-0.5 * threshold.level**2), evidence | promised(threshold, labels)
        verdict = self.frame.about(self.field).verdict(
            labels,
            window_end_ms,
            result,
            test=self.test,
            drifted=is_drifted(result, alpha=alpha, min_effect=self.min_effect),
            published_score=published_score(result, alpha=alpha),
            policy=Policy(alpha=alpha, min_effect=self.min_effect),
            evidence=evidence,
        )
        return [verdict]


def budgeted(test: TestName, reference: CategoryReference) -> tuple[BinnedTest, NDArray[np.int64]]:
    """Return the test as a false-alarm budget simulates it, pooling and all, and the reference's counts."""
    categories, ours = sorted(reference.known), reference.counts

    def level(window: NDArray[np.int64]) -> float:
        counts = {category: n for category, n in zip(categories, window.tolist(), strict=False) if n}
        result = pooled_test(pooled_table(ours, CategoryCounts(counts, 0, int(window[-1]))), TESTS[test])
        return 0.0 if result.log10_p_value is None else math.sqrt(max(0.0, -2.0 * LN_10 * result.log10_p_value))

    counts = np.array([*(ours.counts.get(category, 0) for category in categories), ours.n_other], dtype=np.int64)
    return BinnedTest(test, level, False, {"categories": content_digest(repr(counts.tolist()).encode())}), counts


def _evidence(table: PooledTable, reference: CategoryCounts, window: CategoryCounts) -> dict[str, Any]:
    chi_square = chi_square_homogeneity(table.reference, table.window)
    return {
        "moved": moved_most(reference, window, CATEGORIES_IN_EVIDENCE),
        "population_stability_index": population_stability_index(table.reference, table.window),
        "js_divergence_bits": js_divergence(table.reference, table.window),
        "cramers_v": chi_square.effect,
        "degrees_of_freedom": chi_square.degrees_of_freedom,
        "n_pooled_categories": table.n_pooled,
    }


def moved_most(reference: CategoryCounts, window: CategoryCounts, size: int) -> list[dict[str, Any]]:
    """Return the categories whose shares differ most, at most `size`, ties by kind and value. Both need values.

    >>> ours, theirs = (CategoryCounts.from_values(values) for values in (["a", "b"], ["a", "a"]))
    >>> [(moved["category"], moved["window_share"]) for moved in moved_most(ours, theirs, 1)]
    [('a', 1.0)]
    """
    counts = {
        category: (reference.counts.get(category, 0), window.counts.get(category, 0))
        for category in reference.counts.keys() | window.counts.keys()
    }
    counts[OTHER] = (reference.n_other, window.n_other)
    moved = [
        (abs(ours * window.n - theirs * reference.n), category, ours / reference.n, theirs / window.n)
        for category, (ours, theirs) in counts.items()
    ]
    most = sorted((row for row in moved if row[0]), key=lambda row: (-row[0], row[1]))[:size]
    return [
        {
            "category": "other" if category == OTHER else category_name(category),
            "is_bucket": category == OTHER,
            "reference_share": ours,
            "window_share": theirs,
        }
        for _, category, ours, theirs in most
    ]
