"""The false-alarm budget of distances that add up gaps: Cramer-von Mises and Wasserstein-1 against a reference.

Simulated as D is (`simulation.py`), each stream with a reference of its own. Cramer-von Mises depends on the order of
values only, so any continuous feature has the same levels. Wasserstein-1 depends on how far apart values are: its
streams are distributed as the reference's own points, and levels are parts of the reference's spread.
"""

import math

from udfs.budget.binned import BinnedBudget
from udfs.budget.cache import AnswerCache
from udfs.budget.simulation import Question
from udfs.budget.sources import Shaped, Source
from udfs.budget.threshold import DEFAULT_PROMISE, PromisePolicy, check_rate, rounded_up, source_for
from udfs.budget.window_statistics import Norm
from udfs.references.feature import FeatureReference


def unit_of(norm: Norm, reference: FeatureReference) -> float:
    """Return what levels are parts of: for Wasserstein-1 the reference's spread, else 1.

    Raises ValueError where that is not finite, as with an infinite value, or 0, as with a constant.
    """
    if norm != "wasserstein_1":
        return 1.0
    spread = reference.maximum - reference.minimum
    if not 0.0 < spread < math.inf:
        raise ValueError(f"wasserstein_1 needs a reference of finite values that differ, not of a spread of {spread}")
    return spread


def distance_budget(
    norm: Norm,
    reference: FeatureReference,
    *,
    n: int,
    overlap: int,
    coefficient: float | None,
    rate: float,
    tests: int = 1,
    cache: AnswerCache | None = None,
    promise: PromisePolicy = DEFAULT_PROMISE,
) -> BinnedBudget:
    """Return the thresholds of a distance whose windows have about n values, in parts of `unit_of`.

    `coefficient` None is unknown, `tests` says among how many the budget was divided. Simulated at three n, one to two
    minutes of one core, where `cache` has no answers. Raises ValueError for a rate that is not rare.
    """
    check_rate(rate, overlap, promise)
    cache = cache or AnswerCache(None)
    m = min(reference.n_raw, cache.policy.largest_reference)
    source = _source(norm, reference, rounded_up(coefficient or 0.0))
    ns = tuple(sorted({max(overlap, round(n * factor)) for factor in promise.n_factors}))
    asked = [Question(m, reference.points.size, at, overlap, source, norm) for at in ns]
    answers, origin = cache.answers(asked)
    return BinnedBudget(norm, True, ns, answers, m, rate, tests, coefficient is not None, origin, promise)


def _source(norm: Norm, reference: FeatureReference, coefficient: float) -> Source:
    if norm != "wasserstein_1":
        return source_for(reference.points, coefficient)
    unit, low = unit_of(norm, reference), reference.minimum
    return Shaped((reference.points - low) / unit, reference.n_raw, 0.0, 1.0, coefficient)
