"""The far tail of the onset rate: levels for rates too rare to be counted.

The statistic is the largest of a Gaussian process, approximately, so its rate of onsets falls as

    rate(d) ~ d^(2 power) exp(-d^2 / (2 s^2)).

Where D rests on one window, power is 0 (Kolmogorov); windows that overlap ever more raise it towards 1, and few
distinct values lower it, to -1/2 at least (Piterbarg, "Asymptotic methods in the theory of Gaussian processes and
fields", 1996). It is not estimated, as the data can't tell a power from a scale, but set to 1/2; what other powers
would give is part of the stated error. The scale is fitted, by maximum likelihood, to the onsets above a level u.

Why not the generalised Pareto distribution that is usual for peaks over a threshold: fitted to such a tail it has a
negative shape, so it ends at a D that is never exceeded, and far out it promises too much: fitted at 5e-3 it allows 1.2
to 1.3 onsets for 1 at a rate of 1e-5, and by the form above 5 at 1e-7, 14 at 1e-8 (docs/statistics.md).

What is fitted is the rate among windows with a quiet past. Episodes and the quiet windows that end them leave no room
for another onset; at one in 100 windows and an overlap of 10 that is a tenth of the time, and it bends the curve.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from udfs.budget.onset_curve import OnsetCurve

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TailPolicy:
    """Of the fit. `begin_rate` is the rate, among quiet windows, at which the tail begins; `levels` how many it is
    counted at, up to the highest with `fewest_onsets`; `groups` of streams give the standard error. `power` is used,
    and the difference that `other_powers` make is the error of the form.
    """

    begin_rate: float = 5e-3
    levels: int = 30
    fewest_onsets: int = 5
    groups: int = 20
    power: float = 0.5
    other_powers: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Tail:
    """rate(d) = begin_rate x^power exp(-steepness (x - 1)), x = (d / begin)^2, among windows with a quiet past.

    `busy` is the share of the time that is not quiet, a rate of onsets: at rate h it is busy h.
    """

    begin: float
    begin_rate: float
    power: float
    steepness: float
    busy: float

    def rate(self, level: float) -> float:
        """Onsets a window, of all windows, at a level of `begin` or more."""
        x = (level / self.begin) ** 2
        among_quiet: float = self.begin_rate * x**self.power * math.exp(-self.steepness * (x - 1.0))
        return among_quiet * (1.0 - self.busy * among_quiet)

    def level_of(self, rate: float) -> float:
        """Return the level of a rate, which must be below the tail's first. Found by bisection, to 1e-12."""
        low, high = self.begin, self.begin
        while self.rate(high) > rate:
            high *= 2.0
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.rate(middle) > rate else (low, middle)
        return high


@dataclass(frozen=True)
class FittedTail:
    """The tail that is used, its fits without one group of streams each, and those of the other powers."""

    tail: Tail
    without_a_group: tuple[Tail, ...]
    of_other_powers: tuple[Tail, ...]

    def relative_error(self, level: float) -> float:
        """Return the relative standard error of `rate(level)`: sampling (jackknife) and form, added as squares."""
        rate = self.tail.rate(level)
        g = len(self.without_a_group)
        spread = np.array([math.log(t.rate(max(level, t.begin)) / rate) for t in self.without_a_group])
        sampling = (g - 1) / g * float(((spread - spread.mean()) ** 2).sum())
        form = max(abs(math.log(t.rate(level) / rate)) for t in self.of_other_powers)
        return math.sqrt(sampling + form**2)


def fit_tail(curve: OnsetCurve, policy: TailPolicy) -> FittedTail | None:
    """Fit the tail of a simulated curve; None where it has too few onsets to show one. O(windows log windows)."""
    levels = _levels(curve, policy)
    if levels.size < 3:
        return None
    onsets, quiet = (counts.astype(np.float64) for counts in curve.group_counts(levels, policy.groups))
    all_onsets, all_quiet = onsets.sum(axis=0), quiet.sum(axis=0)

    def fit(of: Floats, among: Floats, power: float) -> Tail:
        windows = curve.windows * among[0] / all_quiet[0]
        return _fit(levels, of, among, windows, power)

    return FittedTail(
        fit(all_onsets, all_quiet, policy.power),
        tuple(fit(all_onsets - o, all_quiet - q, policy.power) for o, q in zip(onsets, quiet, strict=True)),
        tuple(fit(all_onsets, all_quiet, power) for power in policy.other_powers),
    )


def _levels(curve: OnsetCurve, policy: TailPolicy) -> Floats:
    """Levels at even steps of their squares, from where the rate falls to `begin_rate` to where onsets get few."""
    candidates = curve.between_steps(np.quantile(curve.statistics, np.linspace(0.0, 1.0, 2001)))
    onsets, quiet = curve.counts(candidates)
    too_often = np.flatnonzero(onsets > policy.begin_rate * np.maximum(quiet, 1))
    begin = candidates[min(too_often[-1] + 1, candidates.size - 1)] if too_often.size else candidates[0]
    highest = np.sort(curve.statistics, axis=None)[-min(curve.windows, 50 * policy.fewest_onsets) :]
    tops = curve.between_steps(highest)
    enough = np.flatnonzero(curve.counts(tops)[0] >= policy.fewest_onsets)
    if not enough.size or tops[enough[-1]] <= begin:
        return np.empty(0)
    return curve.between_steps(np.sqrt(np.linspace(begin**2, tops[enough[-1]] ** 2, policy.levels)))


def _fit(levels: Floats, onsets: Floats, quiet: Floats, windows: float, power: float) -> Tail:
    """The steepness of greatest likelihood of the onsets between levels, each level's corrected for its busy time."""
    from scipy.optimize import minimize_scalar  # at first use: slow to import, and few need it

    x = (levels / levels[0]) ** 2
    expected = onsets * windows / quiet
    between = np.append(-np.diff(expected), expected[-1])

    def loss(steepness: float) -> float:
        surviving = x**power * np.exp(-steepness * (x - 1.0))
        shares = np.append(-np.diff(surviving), surviving[-1])
        return -float((between * np.log(np.maximum(shares, 1e-300))).sum())

    found = minimize_scalar(loss, bounds=(power + 0.05, 100.0), method="bounded", options={"xatol": 1e-8})
    begin_rate = float(onsets[0] / quiet[0])
    busy = float((1.0 - quiet[0] / windows) / begin_rate)
    return Tail(float(levels[0]), begin_rate, power, float(found.x), busy)
