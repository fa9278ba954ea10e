"""The experiments file: YAML to validated experiments, or a ConfigurationError before anything is submitted.

docs/experiments.md describes every field and why its default is what it is. Paths in the file are relative to it.
"""

from collections.abc import Collection
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import orjson

from jobs.monitors import LABELS
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    milliseconds,
    nearest,
    parsed_yaml,
    some_list,
    strictly_between_0_and_1,
    text,
    zero_up_to_1,
)
from schemas.ids import content_digest
from schemas.model_card import ModelCardError, load_model_card
from schemas.verdicts import VerdictKind
from udfs.experiments.plan import MAX_ARMS, SplitPlan, Weights, tuned_concentration
from udfs.experiments.split import TEST
from udfs.experiments.step import Experiment
from udfs.judging.frame import Frame

# 9 bytes each, read and written with every window.
MAX_USERS_REMEMBERED = 1_000_000

_DEFAULT = {field.name: field.default for field in fields(SplitPlan) if field.default is not MISSING}


def weights(value: Any) -> Weights:
    """Arm -> weight above 0, at least two; returned sorted by arm.

    >>> weights({"stable": 95, "canary": 5})
    (('canary', 5.0), ('stable', 95.0))
    """
    if not isinstance(value, dict):
        raise WrongValueError(f"{value!r} is no mapping", "Write `arm: weight`, one a line, such as `canary: 5`")
    for arm, weight in value.items():
        if not isinstance(arm, str) or not arm.strip():
            remedy = "Write it in quotes: YAML takes on, off, yes, no and numbers for something else"
            raise WrongValueError(f"the arm {arm!r} is no text", remedy)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < 1e15:
            raise WrongValueError(
                f"the weight of {arm} is {weight!r}, no number above 0", "Give its share of the traffic, such as 95"
            )
    if len(value) < 2:
        raise WrongValueError("has fewer than two arms", "Name every arm with its weight; one arm is no experiment")
    if len(value) > MAX_ARMS:
        raise WrongValueError(f"has {len(value)} arms", f"An experiment has at most {MAX_ARMS}")
    return tuple(sorted((arm, float(weight)) for arm, weight in value.items()))


def weights_by_epoch(value: Any) -> tuple[tuple[str, Weights], ...]:
    """Epoch -> arm -> weight; returned sorted by epoch."""
    if not isinstance(value, dict):
        raise WrongValueError(f"{value!r} is no mapping", 'Write `"epoch": {arm: weight, ...}`, one a line')
    for epoch in value:
        if not isinstance(epoch, str):
            raise WrongValueError(f"the epoch {epoch!r} is no text", f'Write "{epoch}" in quotes')
    return tuple(sorted((epoch, weights(arms)) for epoch, arms in value.items()))


def _epoch_field(value: Any) -> str:
    if value not in LABELS:
        raise WrongValueError(f"{value!r} is no text field of a request", nearest(str(value), LABELS))
    return str(value)


def _concentration(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1e9:
        raise WrongValueError(f"{value!r} is no number from 1 to 1e9", "Leave it out: the tolerance gives a good one")
    return float(value)


def _users_remembered(value: Any) -> int:
    number = at_least_one(value)
    if number > MAX_USERS_REMEMBERED:
        raise WrongValueError(f"{number} is above {MAX_USERS_REMEMBERED}", "A sample of fewer users says as much")
    return number


_FILE_FIELDS = {
    "experiments": (some_list, REQUIRED),
    "window_seconds": (milliseconds, 30),
    "watermark_bound_seconds": (milliseconds, 10),
    "idle_timeout_seconds": (milliseconds, 30),
    "epoch_field": (_epoch_field, "assignment_epoch"),
}
_EXPERIMENT_FIELDS = {
    "name": (text, REQUIRED),
    "arms": (weights, REQUIRED),
    "epochs": (weights_by_epoch, {}),
    "tolerance": (strictly_between_0_and_1, _DEFAULT["tolerance"]),
    "alpha": (strictly_between_0_and_1, _DEFAULT["alpha"]),
    "min_samples": (at_least_one, _DEFAULT["min_samples"]),
    "concentration": (_concentration, None),
    "silent_probability": (strictly_between_0_and_1, _DEFAULT["silent_probability"]),
    "max_unplanned_share": (zero_up_to_1, _DEFAULT["max_unplanned_share"]),
    "max_switched_share": (zero_up_to_1, _DEFAULT["max_switched_share"]),
    "users_remembered": (_users_remembered, _DEFAULT["users_remembered"]),
    "epochs_remembered": (at_least_one, _DEFAULT["epochs_remembered"]),
    "no_data_windows": (at_least_one, _DEFAULT["no_data_windows"]),
    "model_card": (text, REQUIRED),
}


@dataclass(frozen=True)
class Experiments:
    """A whole experiments file. Window, bound, timeout and the field of the assignment epoch hold for the job."""

    experiments: tuple[Experiment, ...]
    window_ms: int
    watermark_bound_ms: int
    idle_timeout_ms: int
    epoch_field: str

    @property
    def by_name(self) -> dict[str, Experiment]:
        """The experiments by their names."""
        return {experiment.plan.experiment: experiment for experiment in self.experiments}

    @property
    def users_remembered(self) -> int:
        """Of so many users a slice must tell."""
        return max(experiment.plan.users_remembered for experiment in self.experiments)


def load_experiments(path: str | Path) -> Experiments:
    """Read and check an experiments file and the model cards it points to.

    Raises ConfigurationError naming file, field, problem and remedy of the first thing that is wrong.
    """
    root = Place(str(path))
    values = fields_of(root, parsed_yaml(root), _FILE_FIELDS)
    if not values["experiments"]:
        root.field("experiments").refuse("is empty", "Add at least one experiment")
    job_wide = {
        "window_ms": values["window_seconds"],
        "watermark_bound_ms": values["watermark_bound_seconds"],
        "epoch_field": values["epoch_field"],
    }
    found: list[Experiment] = []
    for number, body in enumerate(values["experiments"]):
        place = root.field(f"experiments[{number}]")
        found.append(_experiment(place, body, job_wide, taken={e.plan.experiment for e in found}))
    return Experiments(tuple(found), **job_wide, idle_timeout_ms=values["idle_timeout_seconds"])


def _experiment(place: Place, body: object, job_wide: dict[str, Any], taken: Collection[str]) -> Experiment:
    values = fields_of(place, body, _EXPERIMENT_FIELDS)
    name = values.pop("name")
    if name in taken:
        place.field("name").refuse(f"{name!r} stands twice", "Give each experiment a name of its own")
    card_digest = _card_digest(place.field("model_card"), values.pop("model_card"))
    if values["concentration"] is None:
        values["concentration"] = tuned_concentration(values["tolerance"])
    plan = SplitPlan(name, values.pop("arms"), **values)
    # What a verdict depends on, and nothing else: the order of arms, the file and its path leave the ids as they are.
    effective = asdict(plan) | job_wide | {"test": TEST}
    frame = Frame(
        monitor=name,
        feature="",
        group_by=("experiment",),
        window_ms=job_wide["window_ms"],
        slide_ms=job_wide["window_ms"],
        config_digest=content_digest(orjson.dumps(effective, option=orjson.OPT_SORT_KEYS)),
        reference_digest=None,
        model_card_digest=card_digest,
        kind=VerdictKind.SPLIT,
    )
    return Experiment(plan, frame)


def _card_digest(place: Place, path: str) -> str:
    try:
        return load_model_card(place.relative(path)).digest
    except ModelCardError as error:
        place.refuse(f"{path}: {error.field}: {error.problem}", error.remedy)
