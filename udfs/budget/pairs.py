"""The false-alarm budget of two live streams: arm against arm, this hour against an earlier one (spec D1, D2).

No fixed reference: both windows are drawn, and move on together. What alarms is the certain end of the interval of D
(`udfs.sketches.log.ks_interval`), which is D at the edges of the log bins. Between them nothing is seen, so how many
values share a bin decides how far that end is below the exact D, and the shares of the bins are part of the question.

The statistic depends on both sizes through n_a n_b / (n_a + n_b) alone, in the limit and with any overlap, as both
windows forget at the same pace. So it is simulated at equal sizes, and holds for a split of 95 to 5.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from schemas.ids import content_digest
from udfs.budget.between_sizes import UNKNOWN_ORDER, level_between, too_far_in_the_tail
from udfs.budget.binned import BinnedThreshold, drawn_slices
from udfs.budget.cache import AnswerCache
from udfs.budget.episodes import quiet_windows
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.onset_levels import OnsetLevels
from udfs.budget.simulation import ALGORITHM_VERSION, SimulationPolicy, levels_of
from udfs.budget.threshold import DEFAULT_PROMISE, PromisePolicy, check_rate, rounded_up
from udfs.budget.window_statistics import slice_sizes
from udfs.sketches.log_bins import log_bins
from udfs.statistics.samples import sample

Floats = NDArray[np.float64]
TEST = "ks_two_streams"
WINDOWS = 400_000
NANOSECONDS_A_VALUE = 100.0
"""Of two streams whose values must be drawn one by one, on a slow core: bounds the windows, without a clock."""
FINE_BINS = 1000
N_FACTORS = (1 / 16, 1 / 2, 2.0)
"""At how many values a side, times those of a whole window: an arm may have any share of them."""


def bin_edges(points: ArrayLike | None, relative_accuracy: float = 0.01) -> Floats:
    """Return the share of values up to each edge between two log bins of a field whose reference has these points.

    Without points the bins are taken for fine ones: then D's certain end is hardly below D, alarms more often than with
    any coarser bins, and the budget is kept with something to spare.

    >>> bin_edges([1.0, 1.0, 1.5, 50.0]).tolist(), bin_edges(None).size
    ([0.5, 0.75], 999)
    """
    if points is None:
        return np.arange(1, FINE_BINS) / FINE_BINS
    ordered = sample(points).values
    _, counts = log_bins(relative_accuracy).count(ordered)
    reached: Floats = np.cumsum(counts)[:-1] / ordered.size
    return reached


@dataclass(frozen=True, eq=False)
class PairQuestion:
    """Two windows of n values each and `overlap` slices, seen at `edges` (`bin_edges`).

    Successive values of each stream follow an AR(1) of `coefficient`, 0 where they are independent.
    """

    edges: Floats
    n: int
    overlap: int
    coefficient: float

    def key(self, policy: SimulationPolicy) -> Mapping[str, Any]:
        """All that the answer depends on, as JSON."""
        return {
            "test": TEST,
            "edges": content_digest(self.edges.astype("<f8").tobytes()),
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
        """Simulate, the same for the same question and policy. Some 5 to 80 s of one core."""
        windows = min(WINDOWS, policy.most_windows)
        if self.coefficient:
            cost = 2.0 * self.n / self.overlap * NANOSECONDS_A_VALUE
            windows = min(windows, max(policy.fewest_windows, int(policy.most_seconds * 1e9 / cost)))
        streams = math.ceil(windows / policy.windows_a_stream(self.overlap))
        rng = np.random.default_rng(policy.seed)
        statistics = simulated_pairs(self, rng, streams, policy.slides_of(self.overlap))
        curve = OnsetCurve.of(statistics, quiet=quiet_windows(self.overlap), step=1.0 / self.n)
        return levels_of(curve, 0.0, policy)


def simulated_pairs(question: PairQuestion, rng: np.random.Generator, streams: int, slides: int) -> Floats:
    """Return the certain end of D of two quiet streams' windows: float64 of shape (streams, slides - overlap + 1)."""
    sizes = np.resize(np.array(slice_sizes(question.n, question.overlap)), slides)
    shares = np.maximum(np.diff(question.edges, prepend=0.0, append=1.0), 0.0)

    def reached() -> NDArray[np.int64]:
        sums = np.zeros((slides + 1, shares.size), dtype=np.int64)
        np.cumsum(drawn_slices(rng, shares, sizes, question.coefficient), axis=1, out=sums[1:])
        return np.cumsum(sums, axis=0, out=sums)

    found = []
    for _ in range(streams):
        apart = reached() - reached()
        windows = apart[question.overlap :] - apart[: -question.overlap]
        found.append(np.abs(windows).max(axis=1) / question.n)
    return np.array(found)


@dataclass(frozen=True, eq=False)
class PairBudget:
    """Thresholds for every two sizes, from simulations at a few equal ones, ascending; picklable."""

    ns: tuple[int, ...]
    answers: tuple[OnsetLevels, ...]
    rate: float
    order_known: bool
    promise: PromisePolicy = DEFAULT_PROMISE

    def at(self, n_a: int, n_b: int) -> BinnedThreshold:
        """Return the threshold of D's certain end for windows of so many values, both 1 or more.

        Raises ValueError where no level is known.
        """
        n = 2.0 * n_a * n_b / (n_a + n_b)
        level, error = level_between(self.answers, self.ns, self.rate, math.sqrt, n)
        reason = self._reason(n, error)
        return BinnedThreshold(level, self.rate, self.rate, error, not reason, reason)

    def _reason(self, n: float, error: float) -> str:
        low, high = self.ns[0], self.ns[-1]
        if not self.order_known:
            return UNKNOWN_ORDER
        if not low <= n <= high:
            return f"two windows worth {n:.0f} values each lie outside of what was simulated, {low} to {high}"
        return too_far_in_the_tail(self.rate, error, self.promise.largest_relative_error)


def pair_budget(
    edges: Floats,
    *,
    n: int,
    overlap: int,
    coefficient: float | None,
    rate: float,
    cache: AnswerCache | None = None,
    promise: PromisePolicy = DEFAULT_PROMISE,
) -> PairBudget:
    """Return the thresholds of two live streams that have about n values a window; `coefficient` None is unknown.

    Simulated at three sizes, up to a minute of one core, where `cache` has no answers. Raises ValueError for a rate
    that is not rare.
    """
    check_rate(rate, overlap, promise)
    cache = cache or AnswerCache(None)
    ns = tuple(sorted({max(overlap, round(n * factor)) for factor in N_FACTORS}))
    asked = [PairQuestion(edges, at, overlap, rounded_up(coefficient or 0.0)) for at in ns]
    return PairBudget(ns, cache.answers(asked)[0], rate, coefficient is not None, promise)
