"""Is the traffic split as planned? Pearson's chi-square once, and a sequential test that may be read at every look.

A fixed-sample p-value read again and again crosses any threshold in the end: at p < 0.01, read every 30 s, a healthy
split is sure to be called wrong some day. The sequential p-value may be read after every record, for ever, and stays
honest: under the plan the chance that it ever falls below alpha is at most alpha.

Arms are compared with their planned weights, so a declared 95/5 split is never wrong for being unequal. An arm planned
with weight 0 that gets traffic is impossible under the plan: p is 0, and what would be infinite beside it is the
largest float64 (`IMPOSSIBLE`), so that no output holds an infinity.

Sources: Fabijan et al., "Diagnosing sample ratio mismatch in online controlled experiments", KDD 2019; Lindon & Malek,
"Anytime-valid inference for multinomial count data", 2020 (arXiv 2011.03567), whose reference implementation is
optimizely/ssrm.
"""

import json
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from schemas.status import Status
from udfs.statistics.aligned import aligned, amounts, check_whole
from udfs.statistics.chi_square import chi_square_p_value
from udfs.statistics.divergence import relative_entropy
from udfs.statistics.result import TestResult
from udfs.versioned_bytes import refuse, seal, unseal

Arms: TypeAlias = Mapping[Any, float] | Sequence[float] | NDArray[Any]
"""A figure an arm: by the arm's name, or in the order of the plan."""

IMPOSSIBLE = sys.float_info.max
"""Stands for infinite evidence: traffic in an arm that the plan gives none."""

_LN_10 = math.log(10)
_TAG, _VERSION = b"SRM", 1


def sample_ratio_chi_square(counts: Arms, weights: Arms) -> TestResult:
    """Test by Pearson's chi-square whether counts follow planned weights; for one look at a fixed sample.

    Both are mappings by arm, or sequences in one order; a mapping of counts may go with a sequence of weights in its
    order. Weights need not add up to 1. An arm without a weight has weight 0; a null arm (not assigned) takes no part
    and is counted in `n_window_null`. `effect` is the largest distance between an arm's share and its planned share.
    No counts at all give status `insufficient_data`; one arm, p 1 and no degrees of freedom. Asymptotic: rely on it
    where every arm expects at least about 5. `n_reference` is 0: a plan is no sample.

    Raises ValueError, naming the argument, unless weights are finite, at least 0 and not all 0, and counts whole
    numbers of at least 0; and where sequences differ in length. O(arms).

    >>> result = sample_ratio_chi_square([9500, 500], [0.95, 0.05])
    >>> result.statistic, result.p_value, sample_ratio_chi_square([9500, 500], [1, 1]).statistic
    (0.0, 1.0, 8100.0)
    """
    if isinstance(counts, Mapping) and not isinstance(weights, Mapping):
        weights = _by_arm(weights, list(counts), "weights")
    both = aligned(counts, weights, names=("counts", "weights"))
    observed, shares = both.reference, _shares(both.window)
    check_whole(observed, "counts")
    n, n_null = int(observed.sum()), int(both.n_reference_null)
    if n == 0:
        return TestResult.without_figures(
            Status.INSUFFICIENT_DATA, method="asymptotic", n_reference=0, n_window=0, n_window_null=n_null
        )
    planned = shares > 0
    expected = n * shares[planned]
    statistic = math.fsum(np.square(observed[planned] - expected) / expected)
    degrees_of_freedom = int(planned.sum()) - 1
    p_value, log10_p_value = chi_square_p_value(statistic, degrees_of_freedom)
    if observed[~planned].any():
        statistic, p_value, log10_p_value = IMPOSSIBLE, 0.0, -IMPOSSIBLE
    return TestResult(
        statistic=statistic,
        p_value=p_value,
        log10_p_value=log10_p_value,
        effect=float(np.abs(observed / n - shares).max()),
        degrees_of_freedom=degrees_of_freedom,
        n_reference=0,
        n_window=n,
        n_reference_null=0,
        n_window_null=n_null,
        n_infinite=0,
        method="asymptotic",
        status=Status.OK,
    )


class SequentialSampleRatio:
    """The sequential sample-ratio test: one p-value for an assignment epoch, to be read as often as one likes.

    The plan's multinomial is weighed against a Dirichlet mixture around it, with `concentration` pseudo-records spread
    by the weights. p is 1 over the largest Bayes factor seen at any look, at most 1: it never rises, and under the plan
    P(p ever < alpha) <= alpha. A new assignment epoch (a changed plan) starts a new test.

    `concentration` says for what size of mismatch the test is tuned: about sqrt(w (1 - w) / concentration) of a share
    w, half a point of an even split by default. A smaller one finds larger mismatches after fewer records. It stays
    honest whatever it is.

    The Bayes factor depends on the total counts alone, so how records are batched doesn't matter to it; p also depends
    on when one looked, and is never above what the totals say. Counts may name an arm that the plan doesn't; a null arm
    (not assigned) takes no part. State: O(arms).

    Raises ValueError as `sample_ratio_chi_square` does, and unless `concentration` is finite and above 0.

    >>> test = SequentialSampleRatio([0.5, 0.5])
    >>> round(test.update([520, 480]), 6), round(test.update([5200, 4800]), 6)
    (0.975235, 0.014421)
    """

    def __init__(self, weights: Arms, concentration: float = 10_000) -> None:
        if not (math.isfinite(concentration) and concentration > 0):
            raise ValueError(f"concentration must be a finite number above 0, not {concentration}")
        self._weights = _by_arm(weights, None, "weights")
        self._shares = _shares(np.array(list(self._weights.values())))
        self._concentration = float(concentration)
        self._totals: dict[Hashable, int] = dict.fromkeys(self._weights, 0)
        self._largest_log_bayes_factor = 0.0

    def update(self, counts: Arms) -> float:
        """Take in the counts since the last call and return p. Changes nothing where it raises ValueError. O(arms)."""
        for arm, count in self._checked(counts).items():
            self._totals[arm] = self._totals.get(arm, 0) + count
        self._largest_log_bayes_factor = max(self._largest_log_bayes_factor, self.log_bayes_factor)
        return self.p_value

    @property
    def p_value(self) -> float:
        """The p-value so far, 1 before the first record; it may be 0.0 where it underflows."""
        return math.exp(-self._largest_log_bayes_factor)

    @property
    def log10_p_value(self) -> float:
        """The logarithm of p to base 10, finite where p underflows."""
        if self._largest_log_bayes_factor == IMPOSSIBLE:
            return -IMPOSSIBLE
        return 0.0 - self._largest_log_bayes_factor / _LN_10

    @property
    def log_bayes_factor(self) -> float:
        """The natural logarithm of the evidence of all records so far against the plan; below 0, it speaks for it."""
        totals = np.array(list(self._totals.values()), dtype=np.float64)
        planned = self._shares > 0
        if totals[planned.size :].any() or totals[: planned.size][~planned].any():
            return IMPOSSIBLE
        return _log_bayes_factor(totals[: planned.size][planned], self._shares[planned], self._concentration)

    @property
    def counts(self) -> dict[Hashable, int]:
        """All records so far by arm (its place where the plan has no names), the plan's arms first."""
        return dict(self._totals)

    def to_bytes(self) -> bytes:
        """Return plan and state as bytes, for a job's keyed state. Arms must be texts, numbers or truth values."""
        state = {
            "weights": list(self._weights.items()),
            "concentration": self._concentration,
            "totals": list(self._totals.items()),
            "largest_log_bayes_factor": self._largest_log_bayes_factor,
        }
        return seal(_TAG, _VERSION, json.dumps(state, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> "SequentialSampleRatio":
        """Go on from a state. Raises ValueError on bytes that are none.

        >>> test = SequentialSampleRatio({"blue": 0.95, "green": 0.05})
        >>> p = test.update({"blue": 80, "green": 20})
        >>> SequentialSampleRatio.from_bytes(test.to_bytes()).update({}) == p
        True
        """
        body = unseal(data, _TAG)
        try:
            state = json.loads(body)
            test = cls(dict(state["weights"]), state["concentration"])
            test._totals = {arm: int(count) for arm, count in state["totals"]}
            test._largest_log_bayes_factor = float(state["largest_log_bayes_factor"])
        except (ValueError, KeyError, TypeError) as error:
            refuse(_TAG, f"the body can't be read, {error!r}")
        return test

    def _checked(self, counts: Arms) -> dict[Hashable, int]:
        names = None if isinstance(counts, Mapping) else list(self._weights)
        by_arm = _by_arm(counts, names, "counts")
        check_whole(np.array(list(by_arm.values())), "counts")
        return {arm: int(count) for arm, count in by_arm.items() if arm is not None}


def _by_arm(figures: Arms, arms: list[Hashable] | None, name: str) -> dict[Hashable, float]:
    """Return arm -> figure; a sequence's arms are `arms`, or 0, 1, 2... where that is None."""
    is_named = isinstance(figures, Mapping)
    column = amounts(list(figures.values()) if isinstance(figures, Mapping) else figures, name)
    names: list[Hashable] = list(figures) if is_named else list(range(column.size)) if arms is None else arms
    if len(names) != column.size:
        raise ValueError(f"{name} must be one an arm: {column.size} is not {len(names)}")
    return dict(zip(names, column.tolist(), strict=True))


def _shares(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    if not weights.any():
        raise ValueError("weights must not all be 0")
    if weights.max() > sys.float_info.max / weights.size:
        weights = weights / weights.max()
    return np.asarray(weights / math.fsum(weights))


def _log_bayes_factor(totals: NDArray[np.float64], shares: NDArray[np.float64], concentration: float) -> float:
    """Return the log of the Dirichlet-multinomial's likelihood over the plan's multinomial's.

    With a = concentration * shares and z = a + totals it is
    lgamma(sum a) - lgamma(sum z) + sum(lgamma(z) - lgamma(a)) - sum(totals log shares): large terms that nearly cancel.
    Writing lgamma(z) as z log z - z + rest(z) leaves sum(z) times the relative entropy of z / sum(z) to the plan, and
    the small rests, so digits are kept for any number of records.
    """
    prior = concentration * shares
    posterior = prior + totals
    size = float(posterior.sum())
    rests = [_rest(posterior).sum(), -_rest(prior).sum(), *_rest(np.array([concentration])), *-_rest(np.array([size]))]
    return size * relative_entropy(posterior / size, shares) + math.fsum(rests)


def _rest(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return lgamma(z) - z log z + z: from 100 up by Stirling's series, whose next term is below 1e-17."""
    series = 0.5 * np.log(2 * math.pi / z) + (1 / 12 - (1 / 360 - 1 / 1260 / z**2) / z**2) / z
    return np.where(z >= 100.0, series, gammaln(z) - xlogy(z, z) + z)
