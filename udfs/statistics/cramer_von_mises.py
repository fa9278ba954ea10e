"""The two-sample Cramer-von Mises test: the mean squared distance of two distribution functions.

Where KS looks at the one place of the largest distance, this adds all of them up: better at small shifts everywhere,
worse at a change in one tail. T = m n / (m + n)**2 times the sum over all pooled values z of (F(z) - G(z))**2.

Ties. Without ties this is scipy's `cramervonmises_2samp` (statistic, and p with method "asymptotic"). With ties scipy
takes midranks, and then two samples of one and the same constant, 5 and 10 values, give T = 0.62 and p = 0.018: a false
alarm on any constant feature. Here the squared distance at a tied value is the mean of those just before and at it, so
equal samples give 0 and it is the same read from the other end. The p-value is for continuous values; with few distinct
ones it is rough (an even binary feature crosses p = 0.01 in 1.5 % of windows), and a chi-square is right.

Not from a rank sketch. Within the gap between two reference points the sketch knows how many window values there are,
but not which of them are tied, and T depends on that; so it needs the values (KS doesn't, see `udfs.sketches.rank`).

Sources: Anderson, "On the distribution of the two-sample Cramer-von Mises criterion", Ann. Math. Stat. 33(3), 1962;
Anderson & Darling, "Asymptotic theory of certain goodness of fit criteria", Ann. Math. Stat. 23(2), 1952; for the upper
tail Smirnov 1936, in Durbin, "Distribution Theory for Tests Based on the Sample Distribution Function", 1973, section
4.4.
"""

import math

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, kve

from schemas.status import Status
from udfs.statistics.result import TestResult
from udfs.statistics.samples import Sample, sample

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_LOWER_SERIES_UNTIL = 0.2
_NEGLIGIBLE_NATS = 45.0


def cramer_von_mises(reference: ArrayLike | pd.Series, window: ArrayLike | pd.Series) -> TestResult:
    """Test whether two samples come from one distribution; sensitive to small distances everywhere.

    Takes what `udfs.statistics.samples.sample` takes and raises as it does; an infinite value is ordered and takes
    part. `effect` is the root mean square distance of the two distribution functions over the pooled sample, from 0 to
    about 0.58 (two samples with nothing in common). The p-value is asymptotic, with Anderson's correction for sample
    sizes. A side without values gives status `insufficient_data`. O((m + n) log(m + n)).

    >>> result = cramer_von_mises([1.0, 2.0, 3.0, 4.0], [2.5, 3.5, 4.5, 5.5, None])
    >>> result.statistic, round(result.p_value, 6), result.n_window_null
    (0.25, 0.209215, 1)
    """
    ours, theirs = sample(reference), sample(window)
    counts = {
        "n_reference": ours.n,
        "n_window": theirs.n,
        "n_reference_null": ours.n_null,
        "n_window_null": theirs.n_null,
        "n_infinite": theirs.n_infinite,
    }
    if not ours.n or not theirs.n:
        return TestResult.without_figures(Status.INSUFFICIENT_DATA, method="asymptotic", **counts)
    mean_square = _mean_square_gap(ours, theirs)
    statistic = mean_square * ours.n * theirs.n / (ours.n + theirs.n)
    p_value, log10_p_value = _p_value(statistic, ours.n, theirs.n)
    return TestResult(
        statistic=statistic,
        p_value=p_value,
        log10_p_value=log10_p_value,
        effect=math.sqrt(mean_square),
        degrees_of_freedom=None,
        method="asymptotic",
        status=Status.OK,
        **counts,
    )


def limit_upper_tail(x: float) -> tuple[float, float]:
    """Return (p, log10 p) of the Cramer-von Mises limit distribution above `x`; log10 p is finite.

    >>> p, log10_p = limit_upper_tail(0.46136)  # the table's 5 % point
    >>> round(p, 5), round(limit_upper_tail(200.0)[1], 2)
    (0.05, -430.23)
    """
    if x <= 0.0:
        return 1.0, 0.0
    if x < _LOWER_SERIES_UNTIL:
        p = 1.0 - _lower_series(x)
        return p, math.log10(p)
    # 1 / pi times the sum over j, signs alternating, of integrals over u from (2 j - 1) pi to 2 j pi. The first one's
    # exp(-x pi**2 / 2) is taken out of all.
    scaled = sum((-1.0) ** (j + 1) * _tail_integral(x, (2 * j - 1) * math.pi) for j in range(1, 6)) / math.pi
    log_p = math.log(scaled) - 0.5 * x * math.pi**2
    return math.exp(log_p), log_p / math.log(10)


def _mean_square_gap(ours: Sample, theirs: Sample) -> float:
    pooled, counts = np.unique(np.concatenate([ours.values, theirs.values]), return_counts=True)
    gap = _ecdf(ours.values, pooled) - _ecdf(theirs.values, pooled)
    squared = np.square(gap)
    before = np.concatenate([[0.0], squared[:-1]])
    return float(np.sum(counts * (0.5 * (squared + before))) / (ours.n + theirs.n))


def _ecdf(ordered: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.searchsorted(ordered, points, side="right") / ordered.size)


def _p_value(statistic: float, m: int, n: int) -> tuple[float, float]:
    """Return (p, log10 p), T brought to the limit's mean 1/6 and variance 1/45 from its own (Anderson 1962)."""
    size, product = m + n, m * n
    mean = (1.0 + 1.0 / size) / 6.0
    variance = (size + 1.0) * (4.0 * product * size - 3.0 * (m * m + n * n) - 2.0 * product)
    variance /= 45.0 * size**2 * 4.0 * product
    if variance <= 0.0:  # one value against one: every order gives the same T
        return 1.0, 0.0
    return limit_upper_tail(1.0 / 6.0 + (statistic - mean) / math.sqrt(45.0 * variance))


def _lower_series(x: float) -> float:
    """Return the limit distribution function below 0.2, by Anderson and Darling's series; 6 terms are plenty there."""
    k = np.arange(6.0)
    y = 4.0 * k + 1.0
    q = y * y / (16.0 * x)
    terms = np.exp(gammaln(k + 0.5) - gammaln(k + 1.0) - 2.0 * q) * np.sqrt(y) * kve(0.25, q)
    return float(np.sum(terms) / (math.pi**1.5 * math.sqrt(x)))


def _tail_integral(x: float, start: float) -> float:
    """Return the integral over u of 2 sqrt(-1 / (u sin u)) exp(-x (u**2 - pi**2) / 2), from `start` to `start` + pi.

    With u = start + pi sin(a)**2 the integrand is smooth at both ends. What is 45 nats below the start is left out.
    """
    end = math.sqrt(start**2 + 2.0 * _NEGLIGIBLE_NATS / x)
    last = math.asin(math.sqrt(min(1.0, (end - start) / math.pi)))
    a = 0.5 * last * (_NODES + 1.0)
    share = np.square(np.sin(a))
    u = start + math.pi * share
    smooth = math.pi * np.sin(2.0 * a) / np.sqrt(u * np.sin(math.pi * share))
    return float(last * np.sum(_WEIGHTS * smooth * np.exp(-0.5 * x * (u * u - math.pi**2))))
