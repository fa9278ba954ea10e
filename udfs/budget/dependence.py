"""How strongly successive values of a feature depend on each other, estimated from a series in the order of time.

Everything is computed on normal scores, so only the order of the values matters, as for D. Two figures come out:

- `coefficient`: of the AR(1) whose integrated autocorrelation time equals the series'. A mean over many successive
  values, such as a window's distribution function, varies tau times as much as with independent values, and for an
  AR(1) tau = (1 + coefficient) / (1 - coefficient). Matching tau, not the correlation of neighbours, is what counts for
  windows: a series with a weak memory that is long needs a larger coefficient than its neighbours show.
- `block_length`: for the block bootstrap of the series itself, by Politis and White's rule.

Sources: Geyer, "Practical Markov chain Monte Carlo", Stat. Sci. 7, 1992 (where to cut the sum); Politis & White,
"Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23, 2004, corrected by Patton,
Politis & White 2009.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
FEWEST_VALUES = 100
LONGEST_SHARE = 4
"""Correlation is looked for up to a lag of a quarter of the series: beyond, too few pairs are left to see it."""
NOISE_DEVIATIONS = 2.0
"""A correlation below so many standard errors of an uncorrelated series, 1 / sqrt(n), counts as none."""
LARGEST_COEFFICIENT = 0.999


@dataclass(frozen=True)
class Dependence:
    """Of one series: see the module. `lag_1` is the plain correlation of neighbours' normal scores."""

    n: int
    lag_1: float
    integrated_time: float
    coefficient: float
    block_length: int


def dependence_of(values_in_time_order: ArrayLike | pd.Series, *, longest_lag: int | None = None) -> Dependence:
    """Estimate the dependence of a series of numbers in the order of time; nulls and NaN are left out.

    `longest_lag` bounds the lags that count (default: a quarter of the series). Give the window's count of values where
    changes slower than a window should alarm rather than count as quiet. Raises ValueError for fewer than 100 values.
    O(n log n).

    >>> rng = np.random.default_rng(1)
    >>> found = dependence_of(rng.random(5000))
    >>> found.coefficient, found.block_length
    (0.0, 1)
    """
    values = pd.to_numeric(pd.Series(values_in_time_order)).dropna().to_numpy(dtype=np.float64)
    if values.size < FEWEST_VALUES:
        raise ValueError(f"dependence can't be estimated from {values.size} values; give {FEWEST_VALUES} or more")
    most = values.size // LONGEST_SHARE
    correlation = autocorrelation(values, min(most, longest_lag) if longest_lag else most)
    tau = integrated_time(correlation, values.size)
    return Dependence(
        n=values.size,
        lag_1=float(correlation[1]),
        integrated_time=tau,
        coefficient=min((tau - 1.0) / (tau + 1.0), LARGEST_COEFFICIENT),
        block_length=block_length(correlation, values.size),
    )


def autocorrelation(values: Floats, longest_lag: int) -> Floats:
    """Return the autocorrelation of the values' normal scores at lags 0 to `longest_lag`; of a constant, none.

    >>> autocorrelation(np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), 1).round(3).tolist()
    [1.0, -0.833]
    """
    from scipy.stats import rankdata  # at first use: slow to import, and few need it

    scores = ndtri((rankdata(values) - 0.5) / values.size)
    scores -= scores.mean()
    spectrum = np.fft.rfft(scores, 2 * values.size)
    covariance = np.fft.irfft(spectrum * spectrum.conj())[: longest_lag + 1]
    if covariance[0] <= np.finfo(float).eps * values.size:
        return np.eye(1, longest_lag + 1).ravel()
    found: Floats = covariance / covariance[0]
    return found


def integrated_time(correlation: Floats, n: int) -> float:
    """Return 1 + 2 (sum of the correlations) up to the first pair of lags that is within noise; at least 1.

    >>> round(integrated_time(0.5 ** np.arange(20.0), 10**6), 2)  # (1 + 0.5) / (1 - 0.5)
    3.0
    """
    pairs = correlation[: correlation.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    noise = NOISE_DEVIATIONS * math.sqrt(2.0 / n)
    within_noise = np.flatnonzero(pairs < noise)
    pairs = pairs[: within_noise[0] if within_noise.size else pairs.size]
    if pairs.size == 1 and correlation[1] < NOISE_DEVIATIONS / math.sqrt(n):
        return 1.0
    return max(1.0, 2.0 * float(pairs.sum()) - 1.0)


def block_length(correlation: Floats, n: int) -> int:
    """Return the block length that Politis and White's rule gives for the circular bootstrap of a mean; 1 to n / 3.

    >>> block_length(0.9 ** np.arange(1000.0), 10_000)
    107
    """
    most = math.ceil(min(3.0 * math.sqrt(n), n / 3))
    in_a_row = max(5, math.ceil(math.sqrt(math.log10(n))))
    is_small = np.abs(correlation[1:]) < NOISE_DEVIATIONS * math.sqrt(math.log10(n) / n)
    runs = np.flatnonzero(np.convolve(is_small, np.ones(in_a_row), "valid") == in_a_row)
    last = int(runs[0]) if runs.size else correlation.size - 1
    if last == 0:
        return 1
    lags = np.arange(1, min(2 * last, correlation.size - 1) + 1)
    taper = np.clip(2.0 * (1.0 - lags / (2.0 * last)), 0.0, 1.0)
    weighted = taper * correlation[lags]
    g, long_run = 2.0 * float((lags * weighted).sum()), 1.0 + 2.0 * float(weighted.sum())
    if long_run <= 0.0 or g == 0.0:
        return 1
    return int(min(max(1, math.ceil((1.5 * g**2 / long_run**2 * n) ** (1.0 / 3.0))), most))
