"""Transform mismatch: the feature is the same, but training and serving scale it differently (spec D1).

The published case: a feature drifted because a new version scaled it otherwise than training had. KS says that
something changed; this finding says that a fitted map a x + b explains the change, and what the map looks like.

What it can't tell. A service that became slower by a third shifts or stretches its latencies without any fault: a pure
shift, and a pure scale by no known factor, are what ordinary drift of a location or scale family looks like. They are
reported as `shift` and `scale` and are no finding unless `claimed` says so. A normal feature whose mean and deviation
both drift is affine as well, and will be claimed: look at the feature's shape. Maps that are not affine (a logarithm),
or turn the order round (1 - x), are not sought.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame, Policy
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.affine_fit import SHARES, AffineFit, Floats, fit_affine, quantiles
from udfs.sketches.log import LogSketch
from udfs.statistics.judgement import is_drifted
from udfs.statistics.ks import ks_from_statistic
from udfs.statistics.result import TestResult

TEST, METHOD = "affine_fit", "asymptotic"
UNIT_FACTORS = (1000.0, 1e6, 1e9, 60.0, 3600.0, 100.0, 1024.0, 1024.0**2)
"""Kilo, mega, giga, minutes, hours, per cent, kibi, mebi; each also the other way round. Of two that fit, the first."""


@dataclass(frozen=True, slots=True)
class MismatchPolicy:
    """When a map is a finding.

    The window must differ from the reference (p < `alpha` and D >= `min_distance`); the map must explain at least
    `min_explained` of D and leave at most `max_residual`, or no more than chance at `alpha`; and it must look like one
    of `claimed`. Factor and offset count as equal to a known one within `tolerance` (for the offset, of a quarter of
    the 95 % range, a deviation if it were normal), or three standard errors where that is more. None of these figures
    is published; they are ours.
    """

    alpha: float = 0.01
    min_distance: float = 0.05
    min_explained: float = 0.5
    max_residual: float = 0.05
    tolerance: float = 0.05
    max_blur: float = 0.25
    min_samples: int = 100
    claimed: tuple[str, ...] = ("unit", "min_max", "standardised", "not_min_max", "not_standardised", "affine")


@dataclass(frozen=True, eq=False)
class TransformMismatch:
    """Judges whether an affine map explains how one numeric field differs from its reference.

    `points` are the reference's, ascending. The verdict's feature is `transform_mismatch(FIELD)`; its statistic is D of
    window and reference as far as the sketch can tell (values within 2 % count as equal), with its p; the effect is the
    share of D that the map explains; evidence has the map. `inconclusive` with a reason where nothing can be fitted: a
    constant reference or window, or values that lie closer together than the sketch can resolve.
    """

    frame: Frame
    field: str
    points: Floats
    policy: MismatchPolicy = MismatchPolicy()
    relative_accuracy: float = 0.01

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `LogSketch`. O(n log n)."""
        (values,) = columns
        return LogSketch.from_values(values, self.relative_accuracy).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window. O(total bytes + points).

        >>> frame = Frame("chat", "queue_seconds", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> seconds = np.arange(1.0, 201.0) ** 2 / 1000.0
        >>> judge = TransformMismatch(frame, "queue_seconds", seconds)
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch(1000.0 * seconds)])
        >>> verdict.drifted, verdict.evidence["looks_like"], verdict.evidence["factor_of"], verdict.effect > 0.95
        (True, 'unit', 1000.0, True)
        """
        merged = LogSketch.merge_all(sketches, self.relative_accuracy)
        result, drifted, evidence = self._judged(merged)
        verdict = self.frame.about(f"transform_mismatch({self.field})", VerdictKind.FINDING).verdict(
            labels,
            window_end_ms,
            replace(
                result,
                n_reference=self.points.size,
                n_window=merged.n,
                n_window_null=merged.n_null,
                n_infinite=merged.n_infinite,
            ),
            test=TEST,
            drifted=drifted,
            policy=Policy(alpha=self.policy.alpha, min_effect=self.policy.min_explained),
            evidence=evidence,
        )
        return [verdict]

    def _judged(self, merged: LogSketch) -> tuple[TestResult, bool | None, dict[str, Any]]:
        if merged.n < self.policy.min_samples:
            return self._unknown(Status.INSUFFICIENT_DATA), None, {}
        fit = fit_affine(self.points, merged)
        if isinstance(fit, AffineFit) and fit.blur > self.policy.max_blur:
            fit = "the values lie closer together than the sketch can resolve"
        if isinstance(fit, str):
            return self._unknown(Status.INCONCLUSIVE), None, {"reason": fit}
        explained = max(0.0, 1.0 - fit.residual / fit.distance) if fit.distance else 0.0
        result = replace(ks_from_statistic(fit.distance, self.points.size, merged.n), effect=explained)
        residual = ks_from_statistic(fit.residual, self.points.size, merged.n)
        evidence = {
            "factor": fit.factor,
            "offset": fit.offset,
            "residual": fit.residual,
            "residual_p_value": residual.p_value,
            **self._looks(fit, merged.n),
        }
        is_left_small = fit.residual <= self.policy.max_residual or not is_drifted(residual, alpha=self.policy.alpha)
        is_mismatch = (
            bool(is_drifted(result, alpha=self.policy.alpha, min_effect=self.policy.min_explained))
            and fit.distance >= self.policy.min_distance
            and is_left_small
            and evidence["looks_like"] in self.policy.claimed
        )
        return result, is_mismatch, evidence

    def _unknown(self, status: Status) -> TestResult:
        return TestResult.without_figures(status, method=METHOD, n_reference=0, n_window=0)

    def _looks(self, fit: AffineFit, n: int) -> dict[str, Any]:
        effective = self.points.size * n / (self.points.size + n)
        tolerance = max(self.policy.tolerance, 3.0 / math.sqrt(2.0 * effective))
        return looks_like(fit.factor, fit.offset, self.points, tolerance)


def looks_like(factor: float, offset: float, points: Floats, tolerance: float) -> dict[str, Any]:
    """Name the map from a reference with these points: what is known of it goes first, `affine` is the rest.

    `unit` has its factor beside it. `min_max` and `standardised`: the window is the reference brought to 0..1, or to
    mean 0 and deviation 1; `not_...`: the reference is, and the window isn't.

    >>> looks_like(0.1, -0.2, np.linspace(2.0, 12.0, 11), 0.05)
    {'looks_like': 'min_max'}
    >>> looks_like(1001.0, 0.0, np.linspace(2.0, 12.0, 11), 0.05)
    {'looks_like': 'unit', 'factor_of': 1000.0}
    """
    finite = points[np.isfinite(points)]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high, mean, deviation = (float(f) for f in (finite[0], finite[-1], finite.mean(), finite.std()))
    usual = float(np.diff(quantiles(finite, SHARES[[0, -1]]))[0]) / 4.0
    has_factor_one = abs(factor - 1.0) <= tolerance
    has_no_offset = abs(offset) <= tolerance * factor * usual
    units = [unit for known in UNIT_FACTORS for unit in (known, 1.0 / known) if _near(factor / unit, 1.0, tolerance)]
    was_min_max = _near(low, 0.0, tolerance) and _near(high, 1.0, tolerance)
    was_standardised = _near(mean, 0.0, tolerance) and _near(deviation, 1.0, tolerance)
    is_min_max = _near(factor * low + offset, 0.0, tolerance) and _near(factor * high + offset, 1.0, tolerance)
    is_standardised = _near(factor * mean + offset, 0.0, tolerance) and _near(factor * deviation, 1.0, tolerance)
    named = {
        "none": has_factor_one and has_no_offset,
        "min_max": is_min_max and not was_min_max,
        "standardised": is_standardised and not was_standardised,
        "unit": has_no_offset and bool(units),
        "shift": has_factor_one,
        "not_min_max": was_min_max and factor >= 2.0,
        "not_standardised": was_standardised and factor >= 2.0,
        "scale": has_no_offset,
        "affine": True,
    }
    name = next(name for name, holds in named.items() if holds)
    return {"looks_like": name} | ({"factor_of": units[0]} if name == "unit" else {})


def _near(value: float, target: float, tolerance: float) -> bool:
    return abs(value - target) <= tolerance
