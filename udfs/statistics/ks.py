"""The two-sample Kolmogorov-Smirnov test: D, its p-value and the counts beside them, equal to scipy's `ks_2samp`.

D is the largest distance between the two empirical distribution functions, ties and infinities included; the effect
size is D itself. Three ways to a p-value, as scipy names them: `asymptotic` (its `asymp`), `exact`, and `auto`, which
is exact up to 10,000 values a side. Where an exact count is impossible the p-value is asymptotic, and for one value
against one, where no asymptotic p-value is defined, it is exact; the result's `method` says which it is.

One implementation serves samples (`ks_two_sample`), counts (`ks_from_counts`) and sketches, which know D already
(`ks_from_statistic`).
"""

import math
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from schemas.status import Status
from udfs.statistics.kolmogorov import asymptotic_p_value
from udfs.statistics.result import TestResult
from udfs.statistics.samples import sample
from udfs.statistics.smirnov import LARGEST_AUTO_SIZE, exact_p_value, is_exact_possible, steps_of

Method = Literal["asymptotic", "exact", "auto"]
METHODS: tuple[Method, ...] = get_args(Method)
P_VALUES_KEPT = 16_384
"""P-values remembered by each method; windows of a fixed count meet only lcm(m, n) different D."""

_cached_asymptotic = lru_cache(maxsize=P_VALUES_KEPT)(asymptotic_p_value)
_cached_exact = lru_cache(maxsize=P_VALUES_KEPT)(exact_p_value)


def ks_two_sample(
    reference: ArrayLike | pd.Series, window: ArrayLike | pd.Series, *, method: Method = "asymptotic"
) -> TestResult:
    """Test whether two samples come from one distribution.

    Takes lists, arrays, masked arrays and pandas series of numbers; None, NaN and NA are dropped and counted, an
    infinite value is ordered and takes part. Computes in float64. A side without values gives status
    `insufficient_data`. Raises ValueError on an unknown `method` or on values that are no numbers.
    O((m + n) log(m + n)) time and O(m + n) memory, plus the p-value's.

    >>> result = ks_two_sample([1, 2, 3, 4], [3, 6, 7, 8, 9, 3, 2, 1, 4, 4, 5, None], method="exact")
    >>> result.statistic, round(result.p_value, 6), result.n_window, result.n_window_null
    (0.45454545454545453, 0.493773, 11, 1)
    """
    _check_method(method)
    ours, theirs = sample(reference), sample(window)
    bins = np.unique(np.concatenate([ours.values, theirs.values]))
    return ks_from_counts(
        _counts(ours.values, bins),
        _counts(theirs.values, bins),
        method=method,
        n_reference_null=ours.n_null,
        n_window_null=theirs.n_null,
        n_infinite=theirs.n_infinite,
    )


def _counts(ordered: NDArray[np.float64], bins: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.diff(np.searchsorted(ordered, bins, side="right"), prepend=0)


def ks_from_counts(
    reference_counts: NDArray[np.int64],
    window_counts: NDArray[np.int64],
    *,
    method: Method = "asymptotic",
    n_reference_null: int = 0,
    n_window_null: int = 0,
    n_infinite: int = 0,
) -> TestResult:
    """Test two samples given as counts over the same bins, in ascending order.

    A bin holds either one single value of both, or no value of the reference. Nulls and infinities are passed through
    to the result. O(bins) time and memory, plus the p-value's.

    >>> ks_from_counts(np.array([3, 2]), np.array([2, 3])).statistic
    0.19999999999999996
    """
    n_reference, n_window = int(reference_counts.sum()), int(window_counts.sum())
    known = n_reference and n_window
    return ks_from_statistic(
        largest_gap(np.cumsum(reference_counts) / n_reference, window_counts)[0] if known else None,
        n_reference,
        n_window,
        method=method,
        n_reference_null=n_reference_null,
        n_window_null=n_window_null,
        n_infinite=n_infinite,
    )


def ks_from_statistic(
    statistic: float | None,
    n_reference: int,
    n_window: int,
    *,
    method: Method = "asymptotic",
    p_value: tuple[float, float] | None = None,
    n_reference_null: int = 0,
    n_window_null: int = 0,
    n_infinite: int = 0,
) -> TestResult:
    """Return the result of a test whose D is known; status `insufficient_data` where it is None.

    `p_value` is (p, log10 p) of the asymptotic method where it is known too.

    Where paths are counted D is rounded to a fraction of lcm(m, n), as scipy does: the last bit may change.

    >>> ks_from_statistic(0.19999999999999996, 5, 5, method="exact").statistic
    0.2
    """
    _check_method(method)
    counts = {
        "n_reference": n_reference,
        "n_window": n_window,
        "n_reference_null": n_reference_null,
        "n_window_null": n_window_null,
        "n_infinite": n_infinite,
    }
    if statistic is None:
        return TestResult.without_figures(Status.INSUFFICIENT_DATA, method=method, **counts)
    if _is_exact(method, n_reference, n_window):
        statistic = _as_fraction(statistic, n_reference, n_window)
    if p_value is not None and method == "asymptotic":
        (p, log10_p_value), used = p_value, "asymptotic"
    else:
        p, log10_p_value, used = ks_p_value(statistic, n_reference, n_window, method=method)
    return TestResult(
        statistic=statistic,
        p_value=p,
        log10_p_value=log10_p_value,
        effect=statistic,
        degrees_of_freedom=None,
        method=used,
        status=Status.OK,
        **counts,
    )


def ks_p_value(
    statistic: float, n_reference: int, n_window: int, *, method: Method = "asymptotic"
) -> tuple[float, float, str]:
    """Return (p, log10 p, method used) of a D between samples of these sizes, both at least 1.

    p is scipy's (within 1e-10 where asymptotic) and may be 0.0, log10 p is finite. Remembered by (m, n, D); else it
    costs what `kolmogorov.asymptotic_p_value` or `smirnov.exact_p_value` say.

    >>> p, log10_p, used = ks_p_value(0.2, 100, 100, method="auto")
    >>> round(p, 12), round(log10_p, 9), used
    (0.036384287875, -1.439086121, 'exact')
    """
    _check_method(method)
    if _is_exact(method, n_reference, n_window):
        exact = _cached_exact(steps_of(statistic, n_reference, n_window), n_reference, n_window)
        if exact is not None:
            return *exact, "exact"
        statistic = _as_fraction(statistic, n_reference, n_window)
    return *_cached_asymptotic(statistic, n_reference, n_window), "asymptotic"


def forget_p_values() -> None:
    """Drop all remembered p-values: for measurements."""
    _cached_asymptotic.cache_clear()
    _cached_exact.cache_clear()


def _as_fraction(statistic: float, n_reference: int, n_window: int) -> float:
    """Return D as the fraction that paths are counted for, which scipy's exact method returns."""
    return steps_of(statistic, n_reference, n_window) / math.lcm(n_reference, n_window)


def largest_gap(reference_ecdf: NDArray[np.float64], window_counts: NDArray[np.int64]) -> tuple[float, int, int]:
    """Return D, the first bin whose upper end has it, and how many of the window's values lie up to there.

    D is the largest distance between the reference's ECDF and the window's, bit-equal to scipy's. Neither side may be
    empty. O(bins).

    >>> largest_gap(np.array([0.5, 1.0]), np.array([1, 3]))
    (0.25, 0, 1)
    """
    reached = window_counts.cumsum()
    gaps = reached / reached[-1]
    gaps -= reference_ecdf
    np.abs(gaps, out=gaps)
    bin_number = int(gaps.argmax())  # three times faster than gaps.max()
    return float(gaps[bin_number]), bin_number, int(reached[bin_number])


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")


def _is_exact(method: Method, n_reference: int, n_window: int) -> bool:
    if method == "auto":
        return max(n_reference, n_window) <= LARGEST_AUTO_SIZE
    if n_reference == n_window == 1:  # the effective size rounds to 0: there is no asymptotic p-value
        return True
    return method == "exact" and is_exact_possible(n_reference, n_window)
