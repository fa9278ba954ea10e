"""A figure of a window against a limit: a mean, a rate or a quantile (spec D6, D9, T7).

The limit is absolute (prediction consistency below 0.85), or so far from the reference's own value (median factuality
down 15 %). Without one the figure is only measured, for a signal to judge (`udfs.signals.seasonal_threshold`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, Side, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.references.figures import ReferenceFigures
from udfs.sketches.log import LogSketch
from udfs.sketches.moments import Moments
from udfs.sketches.outside import OutsideCounts
from udfs.statistics.samples import sample

Figure = Literal["mean", "rate", "quantile"]
METHODS: dict[Figure, str] = {"mean": "moments", "rate": "counts", "quantile": "log_sketch"}
CONFIDENCE = 0.95
_TRUTHS = {"true": 1.0, "false": 0.0}  # as `InputKind.TEXT` names them


@dataclass(frozen=True, slots=True)
class Limit:
    """A window is wrong on the `wrong_side` of `value`; equal to it is still right.

    `reference_value` is the reference's own figure where the limit was made of it, `reference` what else is known of
    that reference: a root cause is told by it (`udfs.alerts.cause_signals`).
    """

    value: float
    wrong_side: Side
    reference_value: float | None = None
    reference: ReferenceFigures | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"a limit must be a finite number, not {self.value}")

    @classmethod
    def changed_by(cls, reference_value: float, change: float) -> "Limit":
        """Return the limit that is `change` (a share, negative for down) of a reference's value away from it.

        Raises ValueError where `change` or the value is 0 or not finite: then there is no such limit.

        >>> Limit.changed_by(0.8, -0.15)
        Limit(value=0.68, wrong_side='below', reference_value=0.8, reference=None)
        """
        if not change or not reference_value or not math.isfinite(change * reference_value):
            raise ValueError(f"no limit is {change:+.0%} from {reference_value}")
        value = reference_value + change * abs(reference_value)
        return cls(value, "above" if change > 0 else "below", reference_value)


def reference_figure(points: ArrayLike, figure: Figure, q: float = 0.5) -> float:
    """Return a reference's own mean, rate or quantile, counted as `FixedLimit` counts a window's.

    Of a reference that keeps points of more raw values (`quantisation_bound`) a mean is approximate, and a quantile's
    rank off by that bound. Raises ValueError where there is no finite value.

    >>> reference_figure([1.0, 2.0, 4.0], "quantile", 0.5), reference_figure([0.0, 1.0, 1.0, 1.0], "rate")
    (2.0, 0.75)
    """
    values = sample(points).values
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ValueError("the reference has no finite value")
    if figure == "quantile":
        return float(values[math.floor(q * (values.size - 1))])
    return float(np.mean(finite != 0.0) if figure == "rate" else np.mean(finite))


@dataclass(frozen=True)
class FixedLimit:
    """Judges one figure of one field.

    `mean`: of the finite values (`Moments`); infinities are counted apart. `rate`: the share of values that are not 0,
    for fields of 0 and 1 (`OutsideCounts`). `quantile`: of rank floor(q (n - 1)), within 1 % of it (`LogSketch`); where
    it is infinite the status is `invalid`. Verdicts speak of `mean(FIELD)`, `rate(FIELD)` or `p50(FIELD)`.

    Evidence holds how sure the figure is: the standard error of a mean or a rate, or the 95 % confidence interval of a
    quantile. The verdict itself asks only on which side of the limit the figure lies, as the published rules do, with
    at least `min_samples` values. Without a limit it never says drifted, has no threshold, and its evidence says
    `measured_only`. Of a field that `is_boolean` true counts as 1, false as 0.
    """

    frame: Frame
    field: str
    figure: Figure
    limit: Limit | None
    min_samples: int
    q: float = 0.5
    relative_accuracy: float = 0.01
    is_boolean: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.q <= 1.0:
            raise ValueError(f"q must be from 0 to 1, not {self.q}")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number; true and false come by name."""
        return (Input(self.field, InputKind.TEXT if self.is_boolean else InputKind.NUMBER),)

    @property
    def name(self) -> str:
        """What is judged: `mean`, `rate`, `p50`, `p99.9`."""
        return f"p{round(100.0 * self.q, 9):g}" if self.figure == "quantile" else self.figure

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's sketch. O(n log n)."""
        (values,) = columns
        if self.is_boolean:
            values = np.array([_TRUTHS.get(value, math.nan) for value in values], dtype=np.float64)
        if self.figure == "quantile":
            return LogSketch.from_values(values, self.relative_accuracy).to_bytes()
        if self.figure == "mean":
            return Moments.from_values(values).to_bytes()
        return OutsideCounts.from_values(values, 0.0, 0.0).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window. O(total bytes).

        >>> frame = Frame("chat", "factuality", (), 60_000, 30_000, "sha256:c", None, "sha256:m")
        >>> judge = FixedLimit(frame, "is_consistent", "rate", Limit(0.85, "below"), min_samples=3)
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch([1.0, 1.0, 0.0]), judge.sketch([1.0, None])])
        >>> verdict.feature, verdict.statistic, verdict.threshold, verdict.drifted, verdict.n_window
        ('rate(is_consistent)', 0.75, 0.85, True, 4)
        """
        figures = {"mean": self._mean, "rate": self._rate, "quantile": self._quantile}
        measured = figures[self.figure](sketches)
        frame = self.frame.about(f"{self.name}({self.field})")
        method = METHODS[self.figure]
        verdict = measured_verdict(frame, labels, window_end_ms, measured, test=self.figure, method=method)
        return [verdict if self.limit is not None else replace(verdict, threshold=None)]

    def _rate(self, sketches: Iterable[bytes]) -> Measured:
        counts = OutsideCounts.merge_all(sketches)
        rate = counts.share if counts.n >= self.min_samples else None
        error = None if rate is None else math.sqrt(rate * (1.0 - rate) / counts.n)
        return self._measured(rate, (counts.n, counts.n_null, counts.n_infinite), {"standard_error": error})

    def _mean(self, sketches: Iterable[bytes]) -> Measured:
        moments = Moments.merge_all(sketches)
        statistic = moments.mean if moments.n >= self.min_samples else None
        variance = moments.variance()
        is_sure = statistic is not None and variance is not None and math.isfinite(variance)
        error = math.sqrt(variance / moments.n) if is_sure and variance is not None else None
        counts = (moments.n, moments.n_null, moments.n_infinite)
        return self._measured(statistic, counts, {"standard_error": error})

    def _quantile(self, sketches: Iterable[bytes]) -> Measured:
        window = LogSketch.merge_all(sketches, self.relative_accuracy)
        statistic = window.quantile(self.q) if window.n >= self.min_samples else None
        reach = float(ndtri(0.5 + CONFIDENCE / 2)) * math.sqrt(self.q * (1.0 - self.q) / max(window.n, 1))
        ends = (window.quantile(min(1.0, max(0.0, self.q + side * reach))) for side in (-1.0, 1.0))
        interval = [end if end is not None and math.isfinite(end) else None for end in ends]
        counts = (window.n, window.n_null, window.n_infinite)
        return self._measured(statistic, counts, {"confidence_interval": interval})

    def _measured(self, statistic: float | None, counts: tuple[int, int, int], evidence: dict[str, Any]) -> Measured:
        status = Status.INSUFFICIENT_DATA if statistic is None else Status.OK
        if statistic is not None and not math.isfinite(statistic):
            statistic, status = None, Status.INVALID
        n, n_null, n_infinite = counts
        known = None if self.limit is None else self.limit.reference_value
        return Measured(
            statistic,
            threshold=math.inf if self.limit is None else self.limit.value,
            wrong_side="above" if self.limit is None else self.limit.wrong_side,
            status=status,
            n_window=n,
            n_window_null=n_null,
            n_infinite=n_infinite,
            effect=None if statistic is None or known is None else _change(statistic, known),
            evidence={} if statistic is None else evidence | self._reference_evidence(),
        )

    def _reference_evidence(self) -> dict[str, Any]:
        if self.limit is None:
            return {"measured_only": True}
        known, figures = self.limit.reference_value, self.limit.reference
        evidence: dict[str, Any] = {} if known is None else {"reference_value": known}
        return evidence if figures is None or self.figure == "rate" else evidence | {"reference": asdict(figures)}


def _change(statistic: float, reference_value: float) -> float | None:
    """Return by what share of the reference's value the figure moved; None where that is beyond float64."""
    change = (statistic - reference_value) / abs(reference_value)
    return change if math.isfinite(change) else None
