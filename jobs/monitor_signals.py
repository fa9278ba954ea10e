"""From a monitor's `signals` to the followers of its verdicts. docs/signals.md has their formulas."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

import orjson

from jobs.yaml_fields import (
    REQUIRED,
    Check,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    finite_number,
    list_of_texts,
    milliseconds,
    nearest,
    one_of,
    optional,
    strictly_between_0_and_1,
    text,
    zero_up_to_1,
)
from schemas.ids import content_digest
from schemas.verdicts import VerdictKind
from udfs.judging.frame import Frame
from udfs.signals import feedback
from udfs.signals.baseline import BaselineDrop, BaselinePolicy
from udfs.signals.embedding_decay import DecayPolicy, EmbeddingDecay
from udfs.signals.feedback import FeedbackPolicy, FeedbackScore
from udfs.signals.follow import Follower
from udfs.signals.joint_confidence import JointConfidence, JointPolicy
from udfs.signals.seasonal_band import BandPolicy, Spread
from udfs.signals.seasonal_threshold import Figure, Scale, SeasonalPolicy, SeasonalThreshold, WrongSide
from udfs.signals.time_sensitive import TimeSensitive, TimeSensitivePolicy


def _yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError(f"{value!r} is neither true nor false", "Write true or false, without quotes")
    return value


_BAND, _SEASONAL = BandPolicy(), SeasonalPolicy()
_FEEDBACK = FeedbackPolicy(baseline=1.0)
_BAND_FIELDS: Mapping[str, tuple[Check, Any]] = {
    "period_seconds": (finite_number, _BAND.period_seconds),
    "slot_seconds": (finite_number, _BAND.slot_seconds),
    "periods": (at_least_one, _BAND.periods),
    "min_periods": (at_least_one, _BAND.min_periods),
    "residual_windows": (at_least_one, _BAND.residual_windows),
    "min_windows": (at_least_one, _BAND.min_windows),
    "spread": (one_of(get_args(Spread)), _BAND.spread),
    "min_spread": (finite_number, _BAND.min_spread),
    "min_relative_spread": (zero_up_to_1, _BAND.min_relative_spread),
    "max_gap_seconds": (finite_number, _BAND.max_gap_seconds),
}
SIGNALS: Mapping[str, Mapping[str, tuple[Check, Any]]] = {
    "embedding_decay": {
        "field": (text, REQUIRED),
        "tau_seconds": (finite_number, 7 * 86_400.0),
        "max_drop": (strictly_between_0_and_1, 0.03),
        "min_effective_n": (finite_number, 1000.0),
    },
    "time_sensitive_score": {
        "field": (text, REQUIRED),
        "alarm_threshold": (strictly_between_0_and_1, REQUIRED),
    },
    "baseline_drop": {
        "feature": (text, REQUIRED),
        "max_drop": (strictly_between_0_and_1, 0.15),
        "learn_windows": (at_least_one, 9),
        "reference": (optional(finite_number), None),
    },
    "dynamic_threshold": {
        "feature": (text, REQUIRED),
        "figure": (one_of(get_args(Figure)), _SEASONAL.figure),
        "wrong_side": (one_of(get_args(WrongSide)), _SEASONAL.wrong_side),
        "scale": (one_of(get_args(Scale)), _SEASONAL.scale),
        "enter_spreads": (finite_number, _SEASONAL.enter_spreads),
        "leave_spreads": (finite_number, _SEASONAL.leave_spreads),
        "relearn_after_seconds": (finite_number, _SEASONAL.relearn_after_seconds),
        "p90_gate": (_yes_or_no, _SEASONAL.p90_gate),
        **_BAND_FIELDS,
    },
    "feedback": {
        "score": (text, REQUIRED),
        "baseline": (zero_up_to_1, REQUIRED),
        "max_drop": (strictly_between_0_and_1, _FEEDBACK.max_drop),
        "half_life_seconds": (finite_number, _FEEDBACK.half_life_seconds),
        "min_effective_n": (finite_number, _FEEDBACK.min_effective_n),
        "max_labels": (at_least_one, _FEEDBACK.max_labels),
        "window_seconds": (milliseconds, 86_400),
        "slide_seconds": (milliseconds, 3600),
    },
    "joint_confidence": {
        "distribution_features": (list_of_texts, []),
        "embedding_field": (optional(text), None),
        "feedback_score": (optional(text), None),
        "threshold": (strictly_between_0_and_1, 0.5),
        "labelled_false_alarms_per_window": (optional(finite_number), None),
    },
}


def followers_of(place: Place, monitor: str, signals: list[Any]) -> tuple[Follower, ...]:
    """Return the followers of one monitor. Raises ConfigurationError naming file, field, problem and remedy."""
    found: list[Follower] = []
    for number, body in enumerate(signals):
        at = place.field(f"signals[{number}]")
        if not isinstance(body, dict) or body.get("signal") not in SIGNALS:
            name = body.get("signal") if isinstance(body, dict) else body
            at.field("signal").refuse(f"{name!r} is no signal", nearest(str(name), SIGNALS))
        name = str(body["signal"])
        if name == feedback.TEST:
            continue  # it follows labels, not verdicts: `feedback_of`
        given = fields_of(at, {key: value for key, value in body.items() if key != "signal"}, SIGNALS[name])
        try:
            follower = _BUILDERS[name](monitor, given)
        except ValueError as error:
            at.refuse(str(error), "See docs/signals.md for what this signal takes")
        if follower.uid in {other.uid for other in found}:
            at.refuse(f"{name} stands twice for the same field", "Name it once")
        found.append(follower)
    return tuple(found)


def feedback_of(place: Place, frame: Frame, signals: list[Any]) -> tuple[FeedbackScore, ...]:
    """Return what follows labels of one monitor, whose verdicts have `frame`. Raises ConfigurationError."""
    found: dict[str, FeedbackScore] = {}
    for number, body in enumerate(signals):
        if not isinstance(body, dict) or body.get("signal") != feedback.TEST:
            continue
        at = place.field(f"signals[{number}]")
        given = fields_of(at, {key: value for key, value in body.items() if key != "signal"}, SIGNALS[feedback.TEST])
        score, window_ms, slide_ms = given.pop("score"), given.pop("window_seconds"), given.pop("slide_seconds")
        if window_ms % slide_ms:
            at.field("slide_seconds").refuse(
                "does not divide window_seconds", "Choose a whole number of slides a window"
            )
        if score in found:
            at.refuse(f"feedback stands twice for score {score}", "Name it once")
        effective = {"monitor": frame.monitor, "group_by": sorted(frame.group_by), "score": score, **given}
        effective |= {"window_ms": window_ms, "slide_ms": slide_ms}
        about = replace(
            frame.about(f"{feedback.TEST}({score})", VerdictKind.SIGNAL),
            window_ms=window_ms,
            slide_ms=slide_ms,
            reference_digest=None,
            config_digest=content_digest(orjson.dumps(effective, option=orjson.OPT_SORT_KEYS)),
        )
        found[score] = FeedbackScore(about, score, FeedbackPolicy(**given))
    return tuple(found.values())


def _joint(monitor: str, given: dict[str, Any]) -> Follower:
    policy = given | {"distribution_features": tuple(given["distribution_features"])}
    return JointConfidence(monitor, JointPolicy(**policy))


def _seasonal(monitor: str, given: dict[str, Any]) -> Follower:
    """`period_seconds: 0` says that there is no season."""
    band = {name: given[name] for name in _BAND_FIELDS} | {"period_seconds": given["period_seconds"] or None}
    policy = {name: value for name, value in given.items() if name not in {*_BAND_FIELDS, "feature"}}
    return SeasonalThreshold(monitor, given["feature"], SeasonalPolicy(**policy, band=BandPolicy(**band)))


def _without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


_BUILDERS: Mapping[str, Callable[[str, dict[str, Any]], Follower]] = {
    "embedding_decay": lambda m, g: EmbeddingDecay(m, g["field"], DecayPolicy(**_without(g, "field"))),
    "time_sensitive_score": lambda m, g: TimeSensitive(m, g["field"], TimeSensitivePolicy(**_without(g, "field"))),
    "baseline_drop": lambda m, g: BaselineDrop(m, g["feature"], BaselinePolicy(**_without(g, "feature"))),
    "dynamic_threshold": _seasonal,
    "joint_confidence": _joint,
}
