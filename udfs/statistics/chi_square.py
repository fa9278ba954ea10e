"""The upper tail of the chi-square distribution, with a logarithm that survives underflow.

Source: Abramowitz & Stegun, "Handbook of Mathematical Functions", 26.4.19 and the continued fraction 6.5.31.
"""

import math

from scipy.special import chdtrc, gammaln

_LN_10 = math.log(10)
_SMALLEST_SAFE_P = 1e-280
_CONVERGED = 1e-15
_MOST_TERMS = 100_000


def chi_square_p_value(statistic: float, degrees_of_freedom: int) -> tuple[float, float]:
    """Return (p, log10 p) of a chi-square statistic; p is scipy's and may be 0.0, log10 p is finite.

    Without degrees of freedom nothing can differ: p is 1. Some microseconds, more where p underflows.

    >>> p, log10_p = chi_square_p_value(10.909090909090908, 2)
    >>> round(p, 12), round(log10_p, 12)
    (0.004276820349, -2.3688789922)
    >>> chi_square_p_value(5000.0, 2)[0], round(chi_square_p_value(5000.0, 2)[1], 6)
    (0.0, -1085.736205)
    """
    if degrees_of_freedom == 0:
        return 1.0, 0.0
    p = float(chdtrc(degrees_of_freedom, statistic))
    if p > _SMALLEST_SAFE_P:
        return p, math.log10(p)
    return p, _log10_tail(0.5 * degrees_of_freedom, 0.5 * statistic)


def _log10_tail(a: float, x: float) -> float:
    """Return log10 of Q(a, x), the regularised upper incomplete gamma function, for x well above a.

    Q = x**a exp(-x) / Gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), evaluated by Lentz's method.
    """
    partial = x + 1.0 - a
    inverse, ratio = 1.0 / partial, math.inf
    fraction = inverse
    for term in range(1, _MOST_TERMS):
        step = term * (a - term)
        partial += 2.0
        inverse = 1.0 / (partial + step * inverse)
        ratio = partial + step / ratio
        change = ratio * inverse
        fraction *= change
        if abs(change - 1.0) < _CONVERGED:
            break
    return float((a * math.log(x) - x - gammaln(a) + math.log(fraction)) / _LN_10)
