"""Whether a share differs between two samples: Pearson's chi-square of the 2 x 2 table, Fisher's test where small.

Chi-square without correction is the two-proportion z-test squared. Where a cell of the table expects fewer than 5
(Cochran 1954) its p is not to be relied on and Fisher's is taken.

Sources: Cochran, "Some methods for strengthening the common chi-square tests", Biometrics 10, 1954; Fisher 1935.
"""

from schemas.status import Status
from udfs.statistics.chi_square import chi_square_p_value
from udfs.statistics.fisher import fisher_exact_p_value
from udfs.statistics.result import TestResult

SMALLEST_EXPECTED = 5.0


def two_proportions(k_reference: int, n_reference: int, k_window: int, n_window: int) -> TestResult:
    """Test whether `k_window` of `n_window` is the share that `k_reference` of `n_reference` is, two-sided.

    `statistic` is the window's share, `effect` the absolute difference of the shares. `method` says how p was made:
    `asymptotic` or `exact`. A side without values gives status `insufficient_data`. Raises ValueError unless
    0 <= k <= n. Microseconds; where exact, O(smallest margin).

    >>> result = two_proportions(50, 1000, 90, 1000)
    >>> result.statistic, round(result.effect, 9), round(result.p_value, 7), result.method
    (0.09, 0.04, 0.0004557, 'asymptotic')
    >>> two_proportions(0, 1000, 4, 100).method
    'exact'
    """
    if not (0 <= k_reference <= n_reference and 0 <= k_window <= n_window):
        raise ValueError("a count must be from 0 to the number of values")
    if not n_reference or not n_window:
        return TestResult.without_figures(
            Status.INSUFFICIENT_DATA, method="asymptotic", n_reference=n_reference, n_window=n_window
        )
    n_all, k_all = n_reference + n_window, k_reference + k_window
    reference_share, window_share = k_reference / n_reference, k_window / n_window
    smallest = min(k_all, n_all - k_all) * min(n_reference, n_window) / n_all
    is_exact = smallest < SMALLEST_EXPECTED
    if is_exact:
        degrees_of_freedom = None
        p_value, log10_p_value = fisher_exact_p_value(k_reference, n_reference, k_window, n_window)
    else:
        degrees_of_freedom = 1
        gap = window_share - reference_share
        chi_square = gap * gap * n_reference * n_window * n_all / (k_all * (n_all - k_all))
        p_value, log10_p_value = chi_square_p_value(chi_square, 1)
    return TestResult(
        statistic=window_share,
        p_value=p_value,
        log10_p_value=log10_p_value,
        effect=abs(window_share - reference_share),
        degrees_of_freedom=degrees_of_freedom,
        n_reference=n_reference,
        n_window=n_window,
        n_reference_null=0,
        n_window_null=0,
        n_infinite=0,
        method="exact" if is_exact else "asymptotic",
        status=Status.OK,
    )
