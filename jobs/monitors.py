"""The monitors file: YAML to validated monitors, or a ConfigurationError before anything is submitted.

docs/monitors.md describes every field and why its default is what it is. Paths in the file are relative to it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson

from jobs.followed_features import check_followed
from jobs.monitor_budget import DividedBudget, budgeted_tests, divided_budget
from jobs.monitor_judges import (
    CATEGORY_TEST_NAMES,
    MonitorContext,
    judges_of,
)
from jobs.monitor_signals import feedback_of, followers_of
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    at_least_one,
    fields_of,
    list_of_texts,
    milliseconds,
    nearest,
    one_of,
    optional,
    parsed_yaml,
    some_list,
    strictly_between_0_and_1,
    text,
    zero_up_to_1,
)
from schemas.field_types import FieldType
from schemas.ids import content_digest
from schemas.model_card import ModelCardError, load_model_card
from schemas.requests import request_fields
from udfs.judging.frame import Frame
from udfs.judging.reference_ks import TEST
from udfs.judging.series_capped import SeriesCapped
from udfs.judging.slice_machine import SliceMachine
from udfs.judging.window_judge import Input, WindowJudge
from udfs.references.profile import ReferenceProfile, ReferenceProfileError
from udfs.signals.feedback import FeedbackScore
from udfs.signals.follow import Follower
from udfs.slicing.fields import ATTRIBUTE, field_of
from udfs.slicing.slicer import MAX_SERIES
from udfs.statistics.ks import Method

# They name one request or person: a series for each would never fill a window.
_NO_LABELS = frozenset({"trace_id", "span_id", "parent_span_id", "user_hash"})
_INSTANTS = frozenset({"event_time_ms", "start_time_ms"})
FEATURES = tuple(
    field.name
    for field in request_fields()
    if field.type in {FieldType.INT64, FieldType.FLOAT64, FieldType.STRING, FieldType.BOOL}
    and field.name not in _INSTANTS | _NO_LABELS
)
LABELS = tuple(f.name for f in request_fields() if f.type is FieldType.STRING and f.name not in _NO_LABELS)

_FILE_FIELDS = {
    "monitors": (some_list, REQUIRED),
    "watermark_bound_seconds": (milliseconds, 10),
    "idle_timeout_seconds": (milliseconds, 30),
}
_MONITOR_FIELDS = {
    "name": (text, REQUIRED),
    "group_by": (list_of_texts, []),
    "features": (list_of_texts, []),
    "window_seconds": (optional(milliseconds), None),
    "window_requests": (optional(at_least_one), None),
    "slide_seconds": (milliseconds, REQUIRED),
    "alpha": (strictly_between_0_and_1, 0.01),
    "min_effect": (zero_up_to_1, 0.05),
    "min_samples": (at_least_one, 100),
    "method": (one_of(get_args(Method)), "asymptotic"),
    "category_test": (one_of(CATEGORY_TEST_NAMES), CATEGORY_TEST_NAMES[0]),
    "findings": (some_list, []),
    "tests": (some_list, []),
    "signals": (some_list, []),
    "slices": (list_of_texts, []),
    "false_alarms": (optional(text), None),
    "expected_samples": (at_least_one, 1000),
    "expected_series": (optional(at_least_one), None),
    "expected_slice_values": (at_least_one, 20),
    "autocorrelation": (optional(zero_up_to_1), None),
    "slice_shards": (at_least_one, 1),
    "max_series": (at_least_one, MAX_SERIES),
    "reference": (text, REQUIRED),
    "model_card": (text, REQUIRED),
}
_BUDGET = ("false_alarms", "expected_samples", "autocorrelation", "features")
_POLICY = ("alpha", "min_effect", "min_samples", "method")


@dataclass(frozen=True)
class Monitor:
    """One monitor, checked: what judges its windows, and how requests are cut into slices and windows.

    `machines` judge slices one after the other: windows by count, and hours against earlier ones.

    `shards` is over how many parts the requests of one series and slice are spread. Of more than `max_series` series
    the others are pooled, and `capped` says so. `budget` says how its false-alarm budget was divided, where it has one.
    """

    name: str
    group_by: tuple[str, ...]
    window_ms: int
    slide_ms: int
    shards: int
    judges: tuple[WindowJudge, ...]
    followers: tuple[Follower, ...] = ()
    feedback: tuple[FeedbackScore, ...] = ()
    machines: tuple[SliceMachine, ...] = ()
    max_series: int = MAX_SERIES
    capped: tuple[WindowJudge, ...] = ()
    budget: DividedBudget | None = None

    @property
    def budget_shares(self) -> int | None:
        """Among how many parts its false-alarm budget is divided; None where it has none."""
        return None if self.budget is None else self.budget.shares

    @property
    def window_judges(self) -> tuple[WindowJudge, ...]:
        """All that judge its windows: those of the file, and what tells of the cap on series."""
        return self.judges + self.capped

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What the judges collect, each once."""
        wanted = [given for judge in self.judges for given in judge.inputs]
        wanted += (given for machine in self.machines for given in machine.inputs)
        return tuple(dict.fromkeys(wanted))


@dataclass(frozen=True)
class Monitors:
    """A whole monitors file. `watermark_bound_ms` and `idle_timeout_ms` hold for the job."""

    monitors: tuple[Monitor, ...]
    watermark_bound_ms: int
    idle_timeout_ms: int

    @property
    def followers(self) -> tuple[Follower, ...]:
        """All signals of all monitors."""
        return tuple(follower for monitor in self.monitors for follower in monitor.followers)

    @property
    def feedback(self) -> tuple[FeedbackScore, ...]:
        """What follows labels, of all monitors."""
        return tuple(score for monitor in self.monitors for score in monitor.feedback)

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields of a request that the monitors need, in the order of the schema."""
        wanted = {label for m in self.monitors for label in m.group_by}
        wanted |= {field_of(given.field) for m in self.monitors for given in m.inputs}
        return tuple(field.name for field in request_fields() if field.name in wanted)


def load_monitors(path: str | Path) -> Monitors:
    """Read and check a monitors file and all that it points to: references, model cards.

    Raises ConfigurationError naming file, field, problem and remedy of the first thing that is wrong.
    """
    root = Place(str(path))
    values = fields_of(root, parsed_yaml(root), _FILE_FIELDS)
    if not values["monitors"]:
        root.field("monitors").refuse("is empty", "Add at least one monitor")
    monitors: list[Monitor] = []
    for number, body in enumerate(values["monitors"]):
        place = root.field(f"monitors[{number}]")
        fields = fields_of(place, body, _MONITOR_FIELDS)
        _check_fields(place, fields, taken={m.name for m in monitors})
        monitors.append(_monitor(place, fields, values["watermark_bound_seconds"]))
        monitors += (_monitor(place, part, values["watermark_bound_seconds"]) for part in _slices(fields))
    return Monitors(tuple(monitors), values["watermark_bound_seconds"], values["idle_timeout_seconds"])


def _check_fields(place: Place, fields: dict[str, Any], taken: Collection[str]) -> None:
    """Refuse what each field alone could not show."""
    names = {fields["name"], *(part["name"] for part in _slices(fields))}
    if not names.isdisjoint(taken):
        place.field("name").refuse(f"{fields['name']!r} stands twice", "Give each monitor a name of its own")
    for name in ("group_by", "features", "slices"):
        repeated = next((entry for entry in fields[name] if fields[name].count(entry) > 1), None)
        if repeated is not None:
            place.field(name).refuse(f"{repeated!r} stands twice", "Name it once")
    if not fields["features"] and not fields["tests"]:
        place.field("features").refuse("is empty", "Name at least one field of a request, here or under tests")
    for name in ("group_by", "slices"):
        for number, label in enumerate(fields[name]):
            _check_label(place.field(f"{name}[{number}]"), label)
    repeated = next((label for label in fields["slices"] if label in fields["group_by"]), None)
    if repeated is not None:
        place.field("slices").refuse(f"{repeated} is a label of every series already", "Leave it out of one of them")
    for number, feature in enumerate(fields["features"]):
        _check_feature(place.field(f"features[{number}]"), feature)
    window_ms, slide_ms = fields["window_seconds"], fields["slide_seconds"]
    if (window_ms is None) == (fields["window_requests"] is None):
        remedy = "Give window_seconds, or window_requests for windows of so many requests"
        place.field("window_seconds").refuse("needs exactly one of window_seconds and window_requests", remedy)
    if window_ms is None and fields["slice_shards"] > 1:
        place.field("slice_shards").refuse("can't be with window_requests, which need whole slices", "Leave it out")
    if window_ms is not None and window_ms % slide_ms:
        problem = f"{slide_ms / 1000:g} s does not divide the window of {window_ms / 1000:g} s"
        place.field("slide_seconds").refuse(problem, "Choose a slide of which a window holds a whole number")


def _slices(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The monitors beside a monitor: the same, for each value of a declared label (spec D11)."""
    for label in fields["slices"]:
        name = f"{fields['name']}/{label}"
        yield fields | {"name": name, "group_by": [*fields["group_by"], label], "slice_of": label}


def _check_label(place: Place, label: str) -> None:
    if label in LABELS:
        return
    known = {field.name: field.type for field in request_fields()}
    if label in _NO_LABELS:
        place.refuse(
            f"{label} names one request or person, so no series would ever fill a window", f"Use {', '.join(LABELS)}"
        )
    if label in known:
        place.refuse(f"{label} is no text but {known[label].value.flink}", f"Use {', '.join(LABELS)}")
    place.refuse(f"{label!r} is no field of a request", nearest(label, LABELS))


def _check_feature(place: Place, feature: str) -> None:
    if feature in FEATURES or (feature.startswith(ATTRIBUTE) and feature != ATTRIBUTE):
        return
    remedy = f"Use {', '.join(FEATURES)} or {ATTRIBUTE}NAME"
    known = {field.name: field.type for field in request_fields()}
    if feature in _INSTANTS:
        place.refuse(f"{feature} is an instant, which always moves on", remedy)
    if feature in _NO_LABELS:
        place.refuse(f"{feature} names one request or person, so it has no distribution", remedy)
    if feature in known:
        place.refuse(f"{feature} is neither a number nor a category but {known[feature].value.flink}", remedy)
    place.refuse(f"{feature!r} is no field of a request", nearest(feature, FEATURES, f" and {ATTRIBUTE}NAME"))


def _monitor(place: Place, fields: dict[str, Any], watermark_bound_ms: int) -> Monitor:
    profile = _profile(place.field("reference"), fields["reference"])
    card_digest = _card_digest(place.field("model_card"), fields["model_card"])
    slide_ms, labels = fields["slide_seconds"], tuple(fields["group_by"])
    window_ms = fields["window_seconds"] or slide_ms
    # What a verdict depends on, and nothing else: another feature, path or shard count leaves the ids as they are.
    effective = {
        "monitor": fields["name"],
        "group_by": sorted(labels),
        "window_ms": window_ms,
        "slide_ms": slide_ms,
        "watermark_bound_ms": watermark_bound_ms,
        "test": TEST,
    } | {name: fields[name] for name in _POLICY}
    if fields["window_requests"]:
        effective |= {"window_requests": fields["window_requests"]}
    budget = divided_budget(fields)
    if budget is not None:
        effective |= {name: fields[name] for name in _BUDGET} | {"expected_series": fields["expected_series"] or 1}
        if budgeted_tests(fields) or fields["slices"]:  # else features and series say all, and ids stay as they were
            effective |= {"budget_shares": budget.shares}
    frame = Frame(
        monitor=fields["name"],
        feature="",
        group_by=labels,
        window_ms=window_ms,
        slide_ms=slide_ms,
        config_digest=content_digest(orjson.dumps(effective, option=orjson.OPT_SORT_KEYS)),
        reference_digest=profile.digest,
        model_card_digest=card_digest,
    )
    judges, machines = judges_of(MonitorContext(place, fields, profile, frame, effective))
    check_followed(place, fields["signals"], judges, len(labels))
    capped = _capped(frame, fields, budget, judges)
    return Monitor(
        name=fields["name"],
        group_by=labels,
        window_ms=window_ms,
        slide_ms=slide_ms,
        shards=fields["slice_shards"],
        judges=judges,
        followers=followers_of(place, fields["name"], fields["signals"]),
        feedback=feedback_of(place, frame, fields["signals"]),
        machines=machines,
        max_series=_most_series(fields, budget),
        capped=capped,
        budget=budget,
    )


def _most_series(fields: Mapping[str, Any], budget: DividedBudget | None) -> int:
    """The cap on series: no more than what the budget was divided among (spec D11)."""
    most: int = fields["max_series"]
    return most if budget is None or budget.most_series is None else min(most, budget.most_series)


def _capped(
    frame: Frame, fields: Mapping[str, Any], budget: DividedBudget | None, judges: tuple[WindowJudge, ...]
) -> tuple[SeriesCapped, ...]:
    """What tells of the cap on series, and how to raise it; nothing where there is but one series."""
    if not judges or not fields["group_by"]:
        return ()
    most = _most_series(fields, budget)
    is_by_budget = budget is not None and most == budget.most_series
    slices = " or expected_slice_values" if fields.get("slice_of") else ""
    raised = f"expected_series{slices}, which divides the false-alarm budget further" if is_by_budget else "max_series"
    return (SeriesCapped(frame, most, judges[0].inputs[0], f"group by fewer labels, or raise {raised}"),)


def _profile(place: Place, path: str) -> ReferenceProfile:
    """Read the reference profile, which checks its own digest."""
    try:
        return ReferenceProfile.load(place.relative(path))
    except ReferenceProfileError as error:
        place.refuse(f"{path}: {error.field}: {error.problem}", error.remedy)


def _card_digest(place: Place, path: str) -> str:
    try:
        return load_model_card(place.relative(path)).digest
    except ModelCardError as error:
        place.refuse(f"{path}: {error.field}: {error.problem}", error.remedy)
