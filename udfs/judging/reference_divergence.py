"""How far a window's distribution is from the reference's, over bins the reference fixes: KL, PSI or Jensen-Shannon.

These are distances, not tests: above 0 by chance, more so on small windows. The evidence has what chance alone
makes of them on average (`expected_by_chance`), and a window of too few values isn't judged.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.ids import content_digest
from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.budget.binned import BinnedBudget, BinnedTest
from udfs.judging.binned import Binned
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.promised import promised
from udfs.judging.window_judge import Input, Values
from udfs.statistics.divergence import js_divergence, kl_divergence, population_stability_index

Test = Literal["kl_divergence", "psi", "js_divergence"]
METHOD = "reference_bins"

Counts = NDArray[np.int64]


class _Sketch(Protocol):
    @property
    def n(self) -> int: ...

    @property
    def n_null(self) -> int: ...


S = TypeVar("S", bound=_Sketch)


@dataclass(frozen=True, slots=True)
class DivergencePolicy:
    """When a window has diverged: its `test` above `threshold`, in its unit.

    KL is in nats, of the reference to the window (the static limit that spec D8 calls too coarse is 0.12); PSI's usual
    limit is 0.25 (Siddiqi, 2006); Jensen-Shannon is in bits and has no usual one. `pseudo_count` (spec: half a record)
    goes into every bin of KL and PSI; Jensen-Shannon needs none. Where a false-alarm budget chooses the threshold (spec
    D2), `threshold` is the least that it may be.
    """

    test: Test
    threshold: float
    min_samples: int = 200
    pseudo_count: float = 0.5


@dataclass(frozen=True)
class ReferenceDivergence(Generic[S]):
    """Judges the windows of one field; `frame` is made for the feature `TEST(FIELD)`, as in `kl_divergence(model)`.

    The hourly series of spec D8 is this over windows of an hour that slide by an hour. The effect is the figure itself.
    """

    frame: Frame
    field: str
    binned: Binned[S]
    policy: DivergencePolicy
    budget: BinnedBudget | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number or as text."""
        return (Input(self.field, self.binned.kind),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's sketch."""
        (values,) = columns
        return self.binned.sketch(values)

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window that ends at `window_end_ms` (epoch milliseconds).

        >>> from udfs.judging.binned import BinnedCategories
        >>> from udfs.sketches.category import CategoryCounts
        >>> reference = BinnedCategories(CategoryCounts.from_values(["stop"] * 550 + ["length"] * 450))
        >>> hour = Frame("chat", "kl_divergence(r)", (), 3_600_000, 3_600_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = ReferenceDivergence(hour, "r", reference, DivergencePolicy("kl_divergence", threshold=0.12))
        >>> (verdict,) = judge.judge([], 3_600_000, [judge.sketch(["stop"] * 380 + ["length"] * 620)])
        >>> round(verdict.statistic, 3), verdict.drifted
        (0.059, False)
        """
        return self.of_merged(labels, window_end_ms, self.merged(sketches))

    def merged(self, sketches: Iterable[bytes]) -> S:
        """Return the sketch of the whole window."""
        return self.binned.merged(sketches)

    def of_merged(self, labels: Sequence[str], window_end_ms: int, merged: S) -> list[Verdict]:
        """Return the verdict of the window from its sketch."""
        measured = self._measured(labels, merged)
        return [measured_verdict(self.frame, labels, window_end_ms, measured, test=self.policy.test, method=METHOD)]

    def _measured(self, labels: Sequence[str], merged: S) -> Measured:
        reference, window = self.binned.counts(merged)
        n_reference = int(reference.sum())
        is_enough = merged.n >= max(1, self.policy.min_samples) and n_reference > 0
        distance = _DISTANCES[self.policy.test](reference, window, self.policy.pseudo_count) if is_enough else None
        threshold, evidence = self.policy.threshold, {}
        if distance is not None:
            evidence = self._evidence(reference, window)
            if self.budget is not None:
                found = self.budget.at(merged.n)
                threshold, evidence = max(threshold, found.level**2), evidence | promised(found, labels)
        return Measured(
            statistic=distance,
            threshold=threshold,
            wrong_side="above",
            status=Status.INSUFFICIENT_DATA if distance is None else Status.OK,
            n_window=merged.n,
            n_reference=n_reference,
            n_reference_null=self.binned.n_reference_null,
            n_window_null=merged.n_null,
            n_infinite=int(getattr(merged, "n_infinite", 0)),
            effect=distance,
            evidence=evidence,
        )

    def _evidence(self, reference: Counts, window: Counts) -> dict[str, Any]:
        """How many bins there are, what chance makes of the figure, and the bin whose share changed most."""
        reference_shares, window_shares = reference / reference.sum(), window / window.sum()
        number = int(np.argmax(np.abs(window_shares - reference_shares)))
        by_chance = (reference.size - 1) * (1 / reference.sum() + 1 / window.sum())
        return {
            "bins": int(reference.size),
            "expected_by_chance": float(by_chance * _BY_CHANCE[self.policy.test]),
            "largest_change": {
                **self.binned.bin_name(number),
                "reference_share": float(reference_shares[number]),
                "window_share": float(window_shares[number]),
            },
        }


def budgeted(policy: DivergencePolicy, reference: Counts) -> BinnedTest:
    """Return the test as a false-alarm budget simulates it: the very distance that windows are judged by."""
    distance = _DISTANCES[policy.test]

    def level(window: Counts) -> float:
        return math.sqrt(max(0.0, distance(reference, window, policy.pseudo_count) or 0.0))

    digest = content_digest(reference.astype("<i8").tobytes())
    return BinnedTest(policy.test, level, True, {"pseudo_count": policy.pseudo_count, "reference": digest})


def _js(reference: Counts, window: Counts, _pseudo_count: float) -> float | None:
    return js_divergence(reference, window)


_DISTANCES: Mapping[str, Callable[[Counts, Counts, float], float | None]] = {
    "kl_divergence": kl_divergence,
    "psi": population_stability_index,
    "js_divergence": _js,
}

# Parts of (bins - 1) (1/m + 1/n), which PSI is by chance (Yurdakul & Naranjo, 2020): KL is half of it, and
# Jensen-Shannon, to second order an eighth of it in nats.
_BY_CHANCE: Mapping[str, float] = {"kl_divergence": 0.5, "psi": 1.0, "js_divergence": 0.125 / float(np.log(2))}
