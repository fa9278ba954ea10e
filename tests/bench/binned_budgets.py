"""Realised onset rates of tests over bins under a false-alarm budget: the rows that bench_false_alarms adds.

Every stream has a reference of its own, drawn from the truth as its windows are; all are judged by the thresholds that
one such reference gave. Nothing here knows how the budget simulates.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from udfs.budget.binned import BinnedTest, binned_budget
from udfs.budget.sources import Autoregressive
from udfs.judging.reference_categories import budgeted as category_test
from udfs.judging.reference_divergence import DivergencePolicy, Test
from udfs.judging.reference_divergence import budgeted as divergence_test
from udfs.references.bins import ReferenceBins
from udfs.references.category_feature import CategoryReference
from udfs.sketches.category import CategoryCounts

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02, 0.0])
"""Of finish reasons, tenants and the like: a few large, a tail, and none that the reference doesn't name."""


@dataclass(frozen=True)
class Realised:
    """d of the windows of quiet streams, of shape (streams, windows); its threshold, and that of the usual rule.

    The usual rules are alpha = 0.01, and PSI above 0.25; Jensen-Shannon has none.
    """

    name: str
    levels: Floats
    threshold: float
    usual: float | None


def realised_levels(
    *, n_reference: int, n: int, overlap: int, rate: float, windows: int, slides: int, seed: int
) -> Iterator[Realised]:
    """Yield one for each test over bins: on categories, on deciles of independent values and on those of an AR(1)."""
    rng = np.random.default_rng(seed)
    streams = windows // (slides - 2 * overlap)
    deciles = np.full(10, 0.1)
    cases: list[tuple[str, Callable[[Counts], BinnedTest], Floats, float, float | None]] = [
        ("chi-square, 7 categories", _chi_square, SHARES, 0.0, math.sqrt(-2 * math.log(0.01))),
        ("PSI, 7 categories", lambda counts: _divergence("psi", counts), SHARES[:-1], 0.0, 0.5),
        ("Jensen-Shannon, 10 bins", lambda counts: _divergence("js_divergence", counts), deciles, 0.0, None),
        ("PSI, 10 bins, AR(1) 0.6", lambda counts: _divergence("psi", counts), deciles, 0.6, 0.5),
    ]
    for name, test_of, shares, coefficient, usual in cases:
        sizes = np.full(slides, n // overlap)
        first = _drawn(rng, shares, np.array([n_reference]), coefficient)[0]
        budget = binned_budget(
            test_of(first), ReferenceBins.of_counts(first), n=n, overlap=overlap, coefficient=coefficient, rate=rate
        )
        found = []
        for _ in range(streams):
            test = test_of(_drawn(rng, shares, np.array([n_reference]), coefficient)[0])
            reached = np.cumsum(np.vstack([np.zeros_like(shares), _drawn(rng, shares, sizes, coefficient)]), axis=0)
            counts = (reached[overlap:] - reached[:-overlap]).astype(np.int64)
            found.append([test.level(window) for window in counts])
        yield Realised(name, np.array(found), budget.at(n).level, usual)


def _drawn(rng: np.random.Generator, shares: Floats, sizes: Counts, coefficient: float) -> Counts:
    if not coefficient:
        return rng.multinomial(sizes, shares)
    values = Autoregressive(coefficient).draw(rng, int(sizes.sum()))
    bins = np.searchsorted(ndtri(np.cumsum(shares)[:-1]), values)
    parts = np.split(bins, np.cumsum(sizes)[:-1])
    return np.array([np.bincount(part, minlength=shares.size) for part in parts])


def _chi_square(counts: Counts) -> BinnedTest:
    named = {f"category {number}": int(count) for number, count in enumerate(counts[:-1])}
    return category_test("chi_square_homogeneity", CategoryReference(CategoryCounts(named, 0, 0), len(named)))[0]


def _divergence(test: Test, counts: Counts) -> BinnedTest:
    return divergence_test(DivergencePolicy(test, 0.0, 200), counts)
