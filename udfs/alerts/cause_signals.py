"""What a verdict says of a root-cause signal, and how unusual that is, as a level from 0 to 1 (spec A6).

An *observation* is one verdict on a signal's field, of one of two kinds:

- `mean(FIELD)` or `p50(FIELD)` of test `limit`: the window's own value, held against the reference's figures, which
  the verdict brings where its limit is a `change` from the reference;
- the KS verdict of `FIELD`: its D, as the shift of a normal distribution that has this D,
  z = 2 q((1 + D) / 2) with q the normal quantile, signed by the side of the largest gap. It needs no figures of the
  reference: in units of its standard deviation about its mean, mean = 0, p1 = q(0.01), p99 = q(0.99).

With x the value, the level is

- `reference_range`: (x - p1) / (p99 - p1), clipped to 0..1 (min-max);
- `z_score`: min(3, z) / 3, with z = (x - mean) / sd towards the wrong side, or |z| where either side is wrong;
- `logistic`: 1 / (1 + exp(-(x - mean) / sd)).

A reference without spread gives 0 or 1, and its neutral level at its own value: nothing is ever NaN or infinite.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

from schemas.status import Status
from schemas.times import epoch_ms
from udfs.references.figures import ReferenceFigures
from udfs.signals.follow import field_of

Normalisation = Literal["reference_range", "z_score", "logistic"]
WrongSide = Literal["above", "below", "both"]
_NORMAL = NormalDist()
_KS, _CENTRES = "ks_two_sample", ("mean", "p50")
_MOST_D = 1.0 - 1e-9  # D = 1 would be an infinite shift


STANDARD = ReferenceFigures(0.0, 1.0, _NORMAL.inv_cdf(0.01), _NORMAL.inv_cdf(0.99))
"""The standard normal's: what a shift found by KS is held against."""


@dataclass(frozen=True, slots=True)
class CauseSignal:
    """One signal: the field of a request, how its level is made, and its weight in the confidence (0: none)."""

    field: str
    normalisation: Normalisation
    wrong_side: WrongSide
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """What one judged window says of a field. Exactly one of `value` and `shift` is there, and it is finite.

    `value` is the window's mean or median; `shift` is in standard deviations, from KS. `reference` are the figures that
    the verdict itself brought; `drifted` is the verdict's own.
    """

    field: str
    series_key: str
    verdict_id: str
    window_end_ms: int
    drifted: bool
    value: float | None = None
    shift: float | None = None
    reference: ReferenceFigures | None = None

    def to_dict(self) -> dict[str, Any]:
        """The observation as JSON values, for a state; `from_dict` reads it back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "Observation":
        """Read back what `to_dict` wrote."""
        found = body["reference"]
        return cls(**{**body, "reference": None if found is None else ReferenceFigures(**found)})


def observation_of(verdict: Mapping[str, Any]) -> Observation | None:
    """Return what a verdict (the decoded JSON of topic `verdicts`) says of its field.

    None where it was not judged, speaks of something else, or is not readable: a root cause is advice and must never
    stop an alert. O(1).

    >>> body = {"status": "ok", "test": "mean", "feature": "mean(prompt_entropy)", "statistic": 5.5, "drifted": True,
    ...         "series_key": "k", "verdict_id": "v", "window_end": "2026-01-01T00:00:00Z", "evidence": {}}
    >>> observation_of(body).value, observation_of({**body, "status": "no_data"})
    (5.5, None)
    """
    try:
        return _observed(verdict)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _observed(verdict: Mapping[str, Any]) -> Observation | None:
    statistic, feature = verdict["statistic"], verdict["feature"]
    if verdict["status"] != Status.OK or isinstance(statistic, bool) or not math.isfinite(statistic):
        return None
    common = {
        "field": field_of(feature),
        "series_key": verdict["series_key"],
        "verdict_id": verdict["verdict_id"],
        "window_end_ms": epoch_ms(verdict["window_end"]),
        "drifted": bool(verdict["drifted"]),
    }
    evidence = verdict.get("evidence") or {}
    if verdict["test"] == _KS and feature == common["field"]:
        return Observation(**common, shift=_shift(statistic, evidence["largest_gap"]))
    if feature in {f"{centre}({common['field']})" for centre in _CENTRES}:
        found = evidence.get("reference")
        reference = None if found is None else ReferenceFigures(**found)
        return Observation(**common, value=float(statistic), reference=reference)
    return None


def _shift(statistic: float, gap: Mapping[str, float]) -> float:
    """The normal shift with this D, above 0 where the window's values are larger than the reference's."""
    size = 2.0 * _NORMAL.inv_cdf((1.0 + min(max(statistic, 0.0), _MOST_D)) / 2.0)
    return size if gap["window_share"] < gap["reference_share"] else -size


@dataclass(frozen=True, slots=True)
class Level:
    """How unusual an observation is: `level` as the published formula has it, 0 to 1, and `z`, signed, from the mean.

    `unusual` is how much of the way from the reference's own mean (0) to the largest level (1) it went.
    """

    level: float
    unusual: float
    z: float


def level_of(signal: CauseSignal, value: float, reference: ReferenceFigures) -> Level:
    """Return the level of a finite value. O(1).

    >>> figures = ReferenceFigures(mean=5.0, standard_deviation=0.5, p1=4.0, p99=6.0)
    >>> level_of(CauseSignal("prompt_entropy", "reference_range", "above"), 5.5, figures)
    Level(level=0.75, unusual=0.5, z=1.0)
    """
    level, neutral = _level(signal, value, reference), _level(signal, reference.mean, reference)
    room = 1.0 - neutral
    unusual = max(0.0, (level - neutral) / room) if room > 0 else float(level > neutral)
    return Level(level, unusual, _z(value, reference))


MOST_Z = 3.0
_LARGEST_Z = 1e6  # finite also where the reference has next to no spread


def _z(value: float, reference: ReferenceFigures) -> float:
    gone = value - reference.mean
    if not gone:
        return 0.0
    if not reference.standard_deviation:
        return math.copysign(_LARGEST_Z, gone)
    return max(-_LARGEST_Z, min(_LARGEST_Z, gone / reference.standard_deviation))


def _level(signal: CauseSignal, value: float, reference: ReferenceFigures) -> float:
    if signal.normalisation == "reference_range":
        width = reference.p99 - reference.p1
        if not width > 0:
            return 0.5 if value == reference.p1 else float(value > reference.p1)
        return min(1.0, max(0.0, (value - reference.p1) / width))
    z = _z(value, reference)
    if signal.normalisation == "logistic":
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, z))))
    wrong = {"above": z, "below": -z, "both": abs(z)}[signal.wrong_side]
    return min(MOST_Z, max(0.0, wrong)) / MOST_Z
