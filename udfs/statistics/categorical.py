"""Tests of whether two samples of categories come from one distribution: Pearson's chi-square and the G-test.

Both are scipy's `chi2_contingency(table, correction=False)`, the G-test with `lambda_="log-likelihood"`, on the table
of two rows without its empty columns. The p-value is asymptotic: rely on it where the smaller sample expects at least
about 5 of every category (Cochran 1954); with rarer ones it may be several times too small, so fold them together
first (`CategoryCounts.folded`). A category that only one side has is a column like any other.

Sources: Pearson 1900; Cochran, "Some methods for strengthening the common chi-square tests", Biometrics 10, 1954;
Sokal & Rohlf, "Biometry", chapter 17 (G). Effect: Cramer, "Mathematical Methods of Statistics", 1946, section 21.9.
"""

import math

import numpy as np
from numpy.typing import NDArray

from schemas.status import Status
from udfs.statistics.aligned import Aligned, Histogram, aligned, check_whole
from udfs.statistics.chi_square import chi_square_p_value
from udfs.statistics.divergence import relative_entropy
from udfs.statistics.result import TestResult


def chi_square_homogeneity(reference_counts: Histogram, window_counts: Histogram) -> TestResult:
    """Test by Pearson's chi-square whether two samples of categories come from one distribution.

    Takes two mappings (or Series) category -> count, or two arrays of counts over the same categories. Categories are
    never sorted, so they may be of mixed types; a null category is dropped and counted. One category in all gives
    statistic 0, p 1 and no degrees of freedom; a side without counts gives status `insufficient_data`. `effect` is
    Cramer's V, from 0 (equal shares) to 1 (no category in common), whatever the sample sizes.

    Raises ValueError, naming the argument, where a count is no whole number of at least 0: shares have no sample size
    and can't be tested. O(categories) time and memory; the same figures in whatever order the categories come.

    >>> result = chi_square_homogeneity({"a": 60, "b": 40}, {"a": 50, "b": 40, "c": 10})
    >>> round(result.statistic, 9), result.degrees_of_freedom, round(result.p_value, 12)
    (10.909090909, 2, 0.004276820349)
    """
    table = _table(reference_counts, window_counts)
    return _result(table, _pearson(table))


def g_test(reference_counts: Histogram, window_counts: Histogram) -> TestResult:
    """Test by the log-likelihood ratio whether two samples of categories come from one distribution.

    Takes, gives and raises what `chi_square_homogeneity` does; `effect` is the same Cramer's V, so that one
    `min_effect` means the same under either test.

    >>> result = g_test({"a": 60, "b": 40}, {"a": 50, "b": 40, "c": 10})
    >>> round(result.statistic, 9), result.degrees_of_freedom
    (14.77329087, 2)
    """
    table = _table(reference_counts, window_counts)
    return _result(table, _log_likelihood(table))


def _table(reference_counts: Histogram, window_counts: Histogram) -> Aligned:
    names = ("reference_counts", "window_counts")
    both = aligned(reference_counts, window_counts, names=names)
    for side, n_null, name in zip(
        (both.reference, both.window), (both.n_reference_null, both.n_window_null), names, strict=True
    ):
        check_whole(side, name)
        check_whole(n_null, name)
    occurs = (both.reference + both.window) > 0
    return Aligned(both.reference[occurs], both.window[occurs], both.n_reference_null, both.n_window_null)


def _pearson(table: Aligned) -> float:
    """Return chi-square as m n times the sum of (share - share)**2 / (count + count); exactly 0 for equal shares."""
    m, n = table.reference.sum(), table.window.sum()
    if not m or not n:
        return 0.0
    gap = table.reference / m - table.window / n
    return _total(gap * gap * (m * n / (table.reference + table.window)))


def _log_likelihood(table: Aligned) -> float:
    """Return G: twice the relative entropy of each row to the pooled row, each times its size."""
    m, n = table.reference.sum(), table.window.sum()
    if not m or not n:
        return 0.0
    ours, theirs = table.reference / m, table.window / n
    pooled = (table.reference + table.window) / (m + n)
    return 2.0 * (float(m) * relative_entropy(ours, pooled) + float(n) * relative_entropy(theirs, pooled))


def _result(table: Aligned, statistic: float) -> TestResult:
    n_reference, n_window = int(table.reference.sum()), int(table.window.sum())
    n_reference_null, n_window_null = int(table.n_reference_null), int(table.n_window_null)
    if not n_reference or not n_window:
        return TestResult.without_figures(
            Status.INSUFFICIENT_DATA,
            method="asymptotic",
            n_reference=n_reference,
            n_window=n_window,
            n_reference_null=n_reference_null,
            n_window_null=n_window_null,
        )
    degrees_of_freedom = table.reference.size - 1
    p_value, log10_p_value = chi_square_p_value(statistic, degrees_of_freedom)
    return TestResult(
        statistic=statistic,
        p_value=p_value,
        log10_p_value=log10_p_value,
        effect=min(1.0, math.sqrt(_pearson(table) / (n_reference + n_window))),
        degrees_of_freedom=degrees_of_freedom,
        n_reference=n_reference,
        n_window=n_window,
        n_reference_null=n_reference_null,
        n_window_null=n_window_null,
        n_infinite=0,
        method="asymptotic",
        status=Status.OK,
    )


def _total(terms: NDArray[np.float64]) -> float:
    """Return the correctly rounded sum, the same in whatever order the terms come."""
    return math.fsum(terms)
