"""The threshold that keeps a false-alarm budget, and whether the promise holds.

A monitor judges as before, p < alpha and D >= min_effect; the budget only chooses alpha, for each count n of values in
a window (`ThresholdCurve.at`). docs/statistics.md, "The false-alarm budget", has the reasoning.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from udfs.budget.cache import AnswerCache
from udfs.budget.onset_levels import RATES, OnsetLevels
from udfs.budget.shipped import GRID, Entry, shipped_entries
from udfs.budget.simulation import DEFAULT_POLICY, Question
from udfs.budget.sources import CONTINUOUS, Atoms, Autoregressive, Independent, Source
from udfs.statistics.ks import Method, ks_p_value


@dataclass(frozen=True)
class PromisePolicy:
    """When a budget counts as kept (spec row D2). A reference needs `references_a_window` times the values of a window,
    else a minimum effect must cover its error. The onset rate may be uncertain by `largest_relative_error`; 0.7 is a
    factor of two. `busiest` bounds onset rate x overlap: above it, episodes fill the time and their rate means little.
    A curve is simulated at `n_factors` times the expected n.
    """

    references_a_window: float = 10.0
    largest_relative_error: float = 0.7
    busiest: float = 0.1
    n_factors: tuple[float, ...] = (0.5, 1.0, 2.0)


DEFAULT_PROMISE = PromisePolicy()


@dataclass(frozen=True)
class Threshold:
    """Of windows of `n` values: drifted means p < `alpha_effective`, which is D > `critical_statistic`, and
    D >= `min_effect`.

    `onset_rate` is what is promised: the onsets a window, averaged over references of this size, at most `budget_rate`
    by the estimate; `relative_error` is the estimate's standard error, of simulation, tail and record together. Where
    `kept` is false the promise can't be given, and `reason` says why and what to do; where it is true `reason` is
    empty. `safe_effect` is the minimum effect that would keep the budget whatever this reference's error is (for 99 of
    100 references).
    """

    alpha_effective: float
    critical_statistic: float
    min_effect: float
    safe_effect: float
    onset_rate: float
    budget_rate: float
    relative_error: float
    kept: bool
    reason: str
    n_reference: int
    n: int
    overlap: int
    values: str
    seed: int
    simulated_windows: int
    tail_fitted: bool
    origin: str


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Thresholds for every n, from simulations at a few: `answers[i]` is for windows of `ns[i]` values, ascending.

    Between them sqrt(n m / (n + m)) times the level is linear in log n, outside it is constant (and the promise is not
    given). `m` is the raw count of the reference that was simulated, `points` how many points the real one has.
    `order_known` says whether anything was known of how the values depend on each other. Picklable.
    """

    ns: tuple[int, ...]
    answers: tuple[OnsetLevels, ...]
    m: int
    n_reference: int
    points: int
    overlap: int
    rate: float
    min_effect: float
    method: Method
    order_known: bool
    values: str
    variance_error: float
    seed: int
    origin: str
    promise: PromisePolicy = field(default=DEFAULT_PROMISE)

    def at(self, n: int) -> Threshold:
        """Return the threshold for windows of n values, n >= 1; about 1 ms, remembered for the latest 1024 n."""
        return _threshold_at(self, n)

    def scaled_level(self, number: int) -> tuple[float, float]:
        """The scaled level of one answer, and its relative error. Raises ValueError where it has none."""
        found = self.answers[number].level_of(self.rate)
        if found is None:
            problem = f"the simulation of n = {self.ns[number]} shows no level for {self.rate:.3g} onsets a window"
            raise ValueError(f"{problem}: simulate more windows")
        return found[0] * self.scale(self.ns[number]), found[1]

    def scale(self, n: int) -> float:
        """The square root of the effective size of n values against m."""
        return math.sqrt(n * self.m / (n + self.m))


@lru_cache(maxsize=1024)
def _threshold_at(curve: ThresholdCurve, n: int) -> Threshold:
    if n < 1:
        raise ValueError(f"a window has at least one value, not {n}")
    scaled, errors = zip(*(curve.scaled_level(i) for i in range(len(curve.ns))), strict=True)
    logs = np.log(curve.ns)
    exact = float(np.interp(math.log(n), logs, scaled)) / curve.scale(n)
    error = math.hypot(float(np.interp(math.log(n), logs, errors)), _record_error(curve))
    step = 1.0 / math.lcm(curve.points, n)
    # Up to the next middle between two values that D can take: the rate may be lower than asked, never higher.
    below = math.ceil(exact / step - 0.5 - 1e-6)
    level = (below + 0.5) * step
    alpha = _alpha(curve, n, level, below)
    nearest = curve.answers[int(np.argmin(np.abs(logs - math.log(n))))]
    safe = level + nearest.reference_error
    found = Threshold(
        alpha_effective=alpha,
        critical_statistic=max(level, curve.min_effect),
        min_effect=curve.min_effect,
        safe_effect=safe,
        onset_rate=_onset_rate(curve, n, max(level, curve.min_effect - 0.5 * step)),
        budget_rate=curve.rate,
        relative_error=error,
        kept=True,
        reason="",
        n_reference=curve.n_reference,
        n=n,
        overlap=curve.overlap,
        values=curve.values,
        seed=curve.seed,
        simulated_windows=nearest.windows,
        tail_fitted=curve.rate < nearest.counted_to,
        origin=curve.origin,
    )
    reason = _reason(curve, found)
    return replace(found, kept=not reason, reason=reason)


def _record_error(curve: ThresholdCurve) -> float:
    """What an error in the variance of windows does to the rate, which falls as exp(-d^2 / (2 variance))."""
    return -math.log(curve.rate) * curve.variance_error


def _alpha(curve: ThresholdCurve, n: int, level: float, below: int) -> float:
    """The p-value that is undercut exactly where D is above `level`, the middle of steps `below` and `below` + 1."""
    if curve.method == "asymptotic":
        return ks_p_value(min(level, 1.0), curve.points, n, method=curve.method)[0]
    # An exact p belongs to a step, and only to one that D can take; between such steps it doesn't change.
    for steps in range(below, -1, -1):
        try:
            return ks_p_value(min(steps / math.lcm(curve.points, n), 1.0), curve.points, n, method=curve.method)[0]
        except ValueError:
            continue
    return 1.0


def _onset_rate(curve: ThresholdCurve, n: int, level: float) -> float:
    """The rate at a level for windows of n: between the simulated n the logarithm is interpolated."""
    scaled = level * curve.scale(n)
    rates = [answer.rate_of(scaled / curve.scale(at)) for at, answer in zip(curve.ns, curve.answers, strict=True)]
    if not min(rates):
        return 0.0
    between = np.interp(math.log(n), np.log(curve.ns), np.log(rates))
    return min(float(np.exp(between)), curve.rate)


def _reason(curve: ThresholdCurve, found: Threshold) -> str:
    """Why the promise can't be given; empty where it can."""
    promise, m, n = curve.promise, curve.n_reference, found.n
    low, high, error = curve.ns[0], curve.ns[-1], found.relative_error
    if not found.alpha_effective or found.critical_statistic >= 1.0:
        return f"no D of {n} values is rare enough for one onset in {1 / curve.rate:,.0f} windows; use larger windows"
    if not curve.order_known:
        problem = "nothing is known of how successive values depend on each other, so they were taken as independent"
        return f"{problem}; autocorrelated ones alarm more often. Build the reference from values in the order of time"
    if not low <= n <= high:
        return f"windows of {n} values lie outside of what was simulated, {low} to {high}"
    if m < promise.references_a_window * n and curve.min_effect < found.safe_effect:
        wanted = math.ceil(promise.references_a_window * n)
        return (
            f"the reference stands for {m} values, fewer than {promise.references_a_window:g} times the {n} of a "
            "window, so the budget is kept on average over such references but not for each. "
            f"Build it of {wanted} values, or set min_effect to {found.safe_effect:.3g}"
        )
    if error <= promise.largest_relative_error:
        return ""
    if _record_error(curve) > promise.largest_relative_error:
        problem = f"the record ({curve.values}) holds too few blocks to say how much windows vary. Record more"
    else:
        problem = f"one onset in {1 / curve.rate:,.0f} windows lies too far in the tail"
    return f"{problem}: the rate may be off by {error:.0%}"


def source_for(points: ArrayLike, coefficient: float, *, largest_tie: float = 0.05) -> Source:
    """Return the source for a feature with these reference points and dependence (`dependence_of`).

    Ties are simulated only where one value has more than `largest_tie` of the points; smaller ones are ignored, which
    makes the threshold larger, never smaller, and lets shipped thresholds be used. The coefficient is rounded up to the
    next 0.05 (above 0.95 to the next 0.005), so that nearly equal ones share an answer.

    >>> source_for([1.0, 2.0, 3.0], 0.58).key["coefficient"]
    0.6
    >>> source_for([0.0, 0.0, 3.0], 0.0).words
    'independent values with ties'
    """
    atoms = Atoms.of_points(points)
    shares = atoms.ends - atoms.starts
    if not shares.size or shares.max() <= largest_tie:
        atoms = CONTINUOUS
    rounded = rounded_up(coefficient)
    return Autoregressive(rounded, atoms) if rounded > 0 else Independent(atoms)


def rounded_up(coefficient: float) -> float:
    """Return an AR(1)'s coefficient up to the next 0.05, above 0.95 to the next 0.005: nearly equal ones share answers.

    >>> rounded_up(0.58), rounded_up(0.951), rounded_up(0.0)
    (0.6, 0.955, 0.0)
    """
    grid = 0.05 if coefficient <= 0.95 else 0.005
    return min(round(math.ceil(coefficient / grid - 1e-9) * grid, 3), 0.995)


def threshold_curve(
    *,
    n_reference: int,
    n_points: int,
    n: int,
    overlap: int,
    source: Source,
    rate: float,
    min_effect: float = 0.0,
    method: Method = "asymptotic",
    order_known: bool = True,
    cache: AnswerCache | None = None,
    promise: PromisePolicy = DEFAULT_PROMISE,
    shipped_only: bool = False,
) -> ThresholdCurve:
    """Return the thresholds of a test whose windows have about `n` values.

    `n_reference` is how many raw values the reference was made of, `n_points` how many of its points are kept; `rate`
    the onsets a window that the test may have (`FalseAlarmBudget.onset_rate`). Shipped levels are used where there are
    any, else those of `cache`, else up to three simulations (together some five minutes of one core at most).
    Raises ValueError for a rate that is not rare, and as `Question` does; LookupError where there are no shipped levels
    and they are `shipped_only`.

    >>> curve = threshold_curve(n_reference=10_000, n_points=1000, n=600, overlap=10, source=Independent(), rate=1e-3)
    >>> curve.origin, curve.at(600).kept, 0.07 < curve.at(600).critical_statistic < 0.09
    ('shipped', True, True)
    """
    check_rate(rate, overlap, promise)
    found = _shipped(n_reference, n_points, n, overlap, source)
    if found:
        seed, origin, m = DEFAULT_POLICY.seed, "shipped", found[0].n_reference
        ns, answers = tuple(e.n for e in found), tuple(e.levels for e in found)
    elif shipped_only:
        raise LookupError("no levels are shipped for such windows")
    else:
        cache = cache or AnswerCache(None)
        seed, m = cache.policy.seed, min(n_reference, cache.policy.largest_reference)
        ns = tuple(sorted({max(overlap, round(n * factor)) for factor in promise.n_factors}))
        answers, origin = cache.answers(Question(m, n_points, at, overlap, source) for at in ns)
    return ThresholdCurve(
        ns,
        answers,
        m,
        n_reference,
        min(n_points, n_reference),
        overlap,
        rate,
        min_effect,
        method,
        order_known,
        source.words,
        source.variance_error,
        seed,
        origin,
        promise,
    )


def threshold_for(
    question: Question,
    rate: float,
    *,
    min_effect: float = 0.0,
    method: Method = "asymptotic",
    cache: AnswerCache | None = None,
    promise: PromisePolicy = DEFAULT_PROMISE,
) -> Threshold:
    """Return the threshold for one n, simulated (or cached) at just that n. Raises as `threshold_curve` does.

    >>> from udfs.budget.simulation import SimulationPolicy
    >>> policy = SimulationPolicy(most_windows=20_000)
    >>> question = Question(2000, 1000, 200, 2, Independent())
    >>> found = threshold_for(question, 1e-3, cache=AnswerCache(None, policy))
    >>> found.kept, found.tail_fitted, found.origin
    (True, True, 'simulated')
    """
    check_rate(rate, question.overlap, promise)
    cache = cache or AnswerCache(None)
    levels, origin = cache.answer(question)
    curve = ThresholdCurve(
        (question.n,),
        (levels,),
        question.n_reference,
        question.n_reference,
        question.points,
        question.overlap,
        rate,
        min_effect,
        method,
        True,
        question.source.words,
        question.source.variance_error,
        cache.policy.seed,
        origin,
        promise,
    )
    return curve.at(question.n)


def check_rate(rate: float, overlap: int, promise: PromisePolicy) -> None:
    """Raise ValueError where an onset rate is too high to mean anything at this overlap."""
    most = min(RATES[0], promise.busiest / overlap)
    if not 0.0 < rate <= most:
        problem = (
            f"{rate:.3g} false alarms a window is not rare: at an overlap of {overlap} at most {most:.3g} can be kept"
        )
        raise ValueError(f"{problem}, one in {1 / most:,.0f} windows")


def _shipped(n_reference: int, n_points: int, n: int, overlap: int, source: Source) -> list[Entry]:
    """The shipped entries that fit, by n; none where one doesn't.

    Of the references shipped the largest that is no larger than the real one: a smaller one errs more, so its levels
    are higher and the rate is kept.
    """
    coefficient = _continuous_coefficient(source)
    m = max((size for size in GRID.n_references if size <= n_reference), default=None)
    if coefficient is None or m is None or min(n_points, n_reference) < GRID.n_points:
        return []
    found = [e for e in shipped_entries() if (e.n_reference, e.coefficient, e.overlap) == (m, coefficient, overlap)]
    is_within = bool(found) and found[0].n <= n <= found[-1].n
    return found if is_within else []


def _continuous_coefficient(source: Source) -> float | None:
    if source.has_ties:
        return None
    if isinstance(source, Independent):
        return 0.0
    return source.coefficient if isinstance(source, Autoregressive) else None
