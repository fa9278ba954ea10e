"""The false-alarm budget of what is judged over bins: chi-square and G on categories, PSI, KL and Jensen-Shannon.

How often such a statistic alarms by chance follows from the reference's own counts, so each quiet stream is simulated
from them: its true shares are drawn around the reference's (Dirichlet: what shares a reference of these counts may have
come from), its slices are multinomial, or cut from an AR(1) where values depend on each other; and every window is
judged by the very function that the job calls. Onsets, tail and levels are those of KS (`onset_curve.py`, `tail.py`).

Levels are of d, which falls like a Gaussian's norm: d = sqrt(-2 ln p) for a test with a p, so that alpha is
exp(-d^2 / 2), and the square root of a distance. docs/statistics.md has the reasoning.

Source: Rubin, "The Bayesian bootstrap", Ann. Stat. 9, 1981 (shares around a reference's).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from scipy.special import ndtri

from schemas.ids import content_digest
from udfs.budget.between_sizes import UNKNOWN_ORDER, level_between, too_far_in_the_tail
from udfs.budget.cache import AnswerCache
from udfs.budget.episodes import quiet_windows
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.onset_levels import OnsetLevels
from udfs.budget.simulation import ALGORITHM_VERSION, SimulationPolicy, levels_of
from udfs.budget.sources import Autoregressive
from udfs.budget.threshold import DEFAULT_PROMISE, PromisePolicy, check_rate, rounded_up
from udfs.budget.window_statistics import slice_sizes
from udfs.references.bins import Floats, ReferenceBins

Counts = NDArray[np.int64]
"""Of one window, int64 of shape (bins,)."""
SLIDES = 240
WINDOWS = 100_000
STEP = 1e-9
"""Levels are told to this; the statistics themselves move in far coarser steps."""


@dataclass(frozen=True, eq=False)
class BinnedTest:
    """How a judge turns a window's counts into d. `is_distance`: d is the root of one, and shrinks with n as D does;
    else it is sqrt(-2 ln p). `parameters` are all else that `level` depends on, as JSON, for the cache's key.

    The tail of a distance over k + 1 bins has the power of a chi of k degrees of freedom.
    """

    name: str
    level: Callable[[Counts], float]
    is_distance: bool
    parameters: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class BinnedQuestion:
    """What levels are asked for: a test against `bins`, in windows of n values and `overlap` slices.

    `coefficient` is that of the AR(1) that successive values follow, 0 where they are independent.
    """

    test: BinnedTest
    bins: ReferenceBins
    n: int
    overlap: int
    coefficient: float

    def key(self, policy: SimulationPolicy) -> Mapping[str, Any]:
        """All that the answer depends on, as JSON."""
        return {
            "test": self.test.name,
            "parameters": dict(self.test.parameters),
            "bins": self.bins.digest,
            "n": self.n,
            "overlap": self.overlap,
            "coefficient": self.coefficient,
            "windows": WINDOWS,
            "policy": asdict(policy),
            "version": ALGORITHM_VERSION,
        }

    def digest(self, policy: SimulationPolicy) -> str:
        """Names `key`."""
        return content_digest(orjson.dumps(self.key(policy), option=orjson.OPT_SORT_KEYS))

    def simulated(self, policy: SimulationPolicy) -> OnsetLevels:
        """Simulate, the same for the same question and policy. Some 10 to 30 s of one core."""
        windows = min(WINDOWS, policy.most_windows)
        rng = np.random.default_rng(policy.seed)
        statistics = simulated_levels(self, rng, math.ceil(windows / (SLIDES - 2 * self.overlap + 1)))
        curve = OnsetCurve.of(statistics, quiet=quiet_windows(self.overlap), step=STEP)
        return levels_of(curve, 0.0, replace(policy, tail=replace(policy.tail, **self._powers())))

    def _powers(self) -> dict[str, Any]:
        power = 0.5 * max(0, self.bins.size - 2) + 0.5 if self.test.is_distance else 0.5
        return {"power": power, "other_powers": (power - 0.5, power + 0.5)}


def simulated_levels(question: BinnedQuestion, rng: np.random.Generator, streams: int) -> Floats:
    """Return d of the windows of quiet streams, each with shares of its own: shape (streams, slides - overlap + 1)."""
    sizes = np.resize(np.array(slice_sizes(question.n, question.overlap)), max(SLIDES, 12 * question.overlap))
    independent = independent_share(rng, question.bins.shares, question.coefficient)
    found = []
    for _ in range(streams):
        shares = question.bins.draw_shares(rng, independent)
        slices = drawn_slices(rng, shares, sizes, question.coefficient)
        reached = np.concatenate([np.zeros((1, shares.size), dtype=np.int64), np.cumsum(slices, axis=0)])
        windows = reached[question.overlap :] - reached[: -question.overlap]
        found.append([question.test.level(counts) for counts in windows])
    return np.array(found)


def independent_share(rng: np.random.Generator, shares: Floats, coefficient: float) -> float:
    """Return how many independent values tell as much of the shares as one of an AR(1) does: 1 where it is none.

    By how much the counts of a thousand values vary more than multinomial ones. It is above (1 - c) / (1 + c), which is
    of means: which bin a value is in depends less on the value before than the value itself does.
    """
    if not coefficient:
        return 1.0
    counts = drawn_slices(rng, shares, np.full(300, 1000), coefficient)
    return min(1.0, float(1000 * (shares * (1 - shares)).sum() / counts.var(axis=0, ddof=1).sum()))


def drawn_slices(rng: np.random.Generator, shares: Floats, sizes: Counts, coefficient: float) -> Counts:
    """Draw successive slices of values in bins of these shares: int64 of shape (slices, bins)."""
    if not coefficient:
        return rng.multinomial(sizes, shares)
    values = Autoregressive(coefficient).draw(rng, int(sizes.sum()))
    bins = ndtri(np.minimum(np.cumsum(shares)[:-1], 1.0)).searchsorted(values, side="right")
    bins += np.repeat(np.arange(sizes.size) * shares.size, sizes)
    return np.bincount(bins, minlength=sizes.size * shares.size).reshape(sizes.size, shares.size)


@dataclass(frozen=True)
class BinnedThreshold:
    """Of windows of n values: drifted means d > `level`. The other fields as in `threshold.Threshold`."""

    level: float
    onset_rate: float
    budget_rate: float
    relative_error: float
    kept: bool
    reason: str


@dataclass(frozen=True, eq=False)
class BinnedBudget:
    """Thresholds for every n, from simulations at a few; picklable. As `ThresholdCurve` is for KS."""

    test: str
    is_distance: bool
    ns: tuple[int, ...]
    answers: tuple[OnsetLevels, ...]
    n_reference: int
    rate: float
    tests: int
    order_known: bool
    origin: str
    promise: PromisePolicy = DEFAULT_PROMISE

    def at(self, n: int) -> BinnedThreshold:
        """Return the threshold for windows of n values, n >= 1. Raises ValueError where no level is known."""
        level, error = level_between(self.answers, self.ns, self.rate, self._scale, n)
        reason = self._reason(n, error)
        return BinnedThreshold(level, self.rate, self.rate, error, not reason, reason)

    def _scale(self, n: float) -> float:
        return math.sqrt(n * self.n_reference / (n + self.n_reference)) if self.is_distance else 1.0

    def _reason(self, n: int, error: float) -> str:
        low, high = self.ns[0], self.ns[-1]
        if not self.order_known:
            return UNKNOWN_ORDER
        if not low <= n <= high:
            return f"windows of {n} values lie outside of what was simulated, {low} to {high}"
        if self.n_reference < self.promise.references_a_window * n:
            wanted = math.ceil(self.promise.references_a_window * n)
            return (
                f"the reference stands for {self.n_reference} values, fewer than "
                f"{self.promise.references_a_window:g} times the {n} of a window, so the budget is kept on average "
                f"over such references but not for each. Build it of {wanted} values"
            )
        return too_far_in_the_tail(self.rate, error, self.promise.largest_relative_error)


def binned_budget(
    test: BinnedTest,
    bins: ReferenceBins,
    *,
    n: int,
    overlap: int,
    coefficient: float | None,
    rate: float,
    tests: int = 1,
    cache: AnswerCache | None = None,
    promise: PromisePolicy = DEFAULT_PROMISE,
) -> BinnedBudget:
    """Return the thresholds of a test over bins whose windows have about n values; `coefficient` None is unknown.

    `tests` says among how many the budget was divided. Simulated at up to three n, a minute or two of one core
    together, where `cache` has no answers. Raises ValueError for a rate that is not rare.
    """
    check_rate(rate, overlap, promise)
    cache = cache or AnswerCache(None)
    ns = tuple(sorted({max(overlap, round(n * factor)) for factor in promise.n_factors}))
    asked = [BinnedQuestion(test, bins, at, overlap, rounded_up(coefficient or 0.0)) for at in ns]
    answers, origin = cache.answers(asked)
    return BinnedBudget(
        test.name,
        test.is_distance,
        ns,
        answers,
        bins.n_raw,
        rate,
        tests,
        coefficient is not None,
        origin,
        promise,
    )
