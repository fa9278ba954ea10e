"""A test of categories that rare ones can't spoil, nor hide in.

Pearson's chi-square and G are relied on where each category expects at least 5 in the smaller sample (Cochran 1954).
Categories that expect fewer, by their counts in both samples together, are pooled with what a bounded sample doesn't
name into one bucket, which is tested like a category. (Two buckets, one of named categories and one of others, would
be too many: the names are those that were frequent in the reference by chance too, so that quiet windows always seem
to have more of the others. At 4,000 values of 200 categories, 100 named, that called 14 % of quiet windows different
at p < 0.05; one bucket calls 3 %.)

Where the bucket itself expects fewer than 5, it isn't thrown in with a frequent category, where it would be diluted:
the other categories are tested by chi-square, the bucket against all others by Fisher's exact test, and p is twice the
smaller (Bonferroni). So a new category that takes over a small window of a huge reference is seen, though chi-square
would expect 0.1 of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from schemas.status import Status
from udfs.sketches.category import CategoryCounts
from udfs.statistics.fisher import fisher_exact_p_value
from udfs.statistics.result import TestResult

SMALLEST_EXPECTED = 5.0

CategoryTest = Callable[[NDArray[np.int64], NDArray[np.int64]], TestResult]


@dataclass(frozen=True, eq=False)
class PooledTable:
    """Counts of reference and window over the same bins, int64: frequent categories, then the bucket where it occurs.

    `n_pooled` named categories went into the bucket, and `has_bucket` says that there is one; `is_weak`, that it
    expects fewer than 5 still.
    """

    reference: NDArray[np.int64]
    window: NDArray[np.int64]
    n_pooled: int
    has_bucket: bool
    is_weak: bool

    @property
    def largest_share_change(self) -> float:
        """The most that the share of one bin differs by; both sides must have values."""
        gaps = self.reference / self.reference.sum() - self.window / self.window.sum()
        return float(np.abs(gaps).max())


def pooled_table(reference: CategoryCounts, window: CategoryCounts) -> PooledTable:
    """Bring two samples over the same bins, rare categories pooled; deterministic. O(categories).

    >>> reference = CategoryCounts.from_values(["a"] * 60 + ["b"] * 36 + ["c", "d"] * 2)
    >>> window = CategoryCounts.from_values(["a"] * 54 + ["b"] * 36 + ["e"] * 10)
    >>> table = pooled_table(reference, window)
    >>> table.reference.tolist(), table.window.tolist(), table.n_pooled, table.is_weak
    ([60, 36, 0, 4], [54, 36, 10, 0], 2, True)
    """
    total = reference.n + window.n
    smaller_share = min(reference.n, window.n) / total if total else 0.0
    pairs = {
        category: (reference.counts.get(category, 0), window.counts.get(category, 0))
        for category in reference.counts.keys() | window.counts.keys()
    }

    def is_rare(pair: tuple[int, int]) -> bool:
        return sum(pair) * smaller_share < SMALLEST_EXPECTED

    def is_frequent_in_reference(pair: tuple[int, int]) -> bool:
        return pair[0] * min(reference.n, window.n) >= SMALLEST_EXPECTED * reference.n

    frequent = {category: pair for category, pair in pairs.items() if not is_rare(pair)}
    if not frequent:  # as where a large window has none of a small reference's categories left
        frequent = {category: pair for category, pair in pairs.items() if is_frequent_in_reference(pair)}
    rare = [pair for category, pair in pairs.items() if category not in frequent]
    bucket = (sum(ours for ours, _ in rare) + reference.n_other, sum(theirs for _, theirs in rare) + window.n_other)
    bins = [frequent[category] for category in sorted(frequent)]
    has_bucket = sum(bucket) > 0
    if has_bucket:
        bins.append(bucket)
    table = np.array(bins, dtype=np.int64).reshape(-1, 2)
    return PooledTable(table[:, 0], table[:, 1], len(rare), has_bucket, has_bucket and is_rare(bucket))


def pooled_test(table: PooledTable, test: CategoryTest) -> TestResult:
    """Return the result of `test` (chi-square homogeneity or G) on a pooled table, its p as the module says.

    `statistic` and `degrees_of_freedom` are of the whole table; `method` is `asymptotic`, `exact` where only the bucket
    could be tested, or `asymptotic_and_exact`. `effect` is the largest share change: Cramer's V shrinks with the ratio
    of the sample sizes, so that one `min_effect` would not mean the same for every window. Status `insufficient_data`
    where a side is empty, or where nothing but one bucket is left to compare.
    """
    whole = test(table.reference, table.window)
    if whole.status is not Status.OK:
        return whole
    if table.has_bucket and table.reference.size == 1:
        sizes = {"n_reference": whole.n_reference, "n_window": whole.n_window}
        return TestResult.without_figures(Status.INSUFFICIENT_DATA, method=whole.method, **sizes)
    whole = replace(whole, effect=table.largest_share_change)
    if not table.is_weak:
        return whole
    ours, theirs = int(table.reference[-1]), int(table.window[-1])
    p_value, log10_p_value = fisher_exact_p_value(ours, whole.n_reference, theirs, whole.n_window)
    frequent = test(table.reference[:-1], table.window[:-1])
    if not frequent.degrees_of_freedom or frequent.p_value is None or frequent.log10_p_value is None:
        return replace(whole, p_value=p_value, log10_p_value=log10_p_value, method="exact")
    return replace(
        whole,
        p_value=min(1.0, 2.0 * min(p_value, frequent.p_value)),
        log10_p_value=min(0.0, min(log10_p_value, frequent.log10_p_value) + math.log10(2.0)),
        method="asymptotic_and_exact",
    )
