"""The scorers file: YAML to validated scorers, or a ConfigurationError before anything is submitted.

`load_scorers` reads the file and checks all it names, models' files and digests too, without torch; `build_scorers`
loads the models where they are to run. docs/scorers.md describes every field. Paths in the file are relative to it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from gpu_scorers.model_files import ModelError, ModelSource, find_model
from gpu_scorers.scorer import Scorer
from jobs.scorer_kinds import KINDS, NEEDS_MODEL, NO_MODEL, Kind, Settings
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    finite_number,
    milliseconds,
    not_one_of,
    one_of,
    optional,
    parsed_yaml,
    some_list,
    text,
)
from schemas.ids import content_digest
from schemas.judge_report import JudgeReport, load_judge_report
from udfs.sampling.review import ReviewRule
from udfs.sampling.rule import SampleRule

if TYPE_CHECKING:
    from gpu_scorers.loaded_models import LoadedModels

DEVICES, PRECISIONS = ("auto", "cpu", "cuda"), ("float32", "bfloat16", "float16")


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError(f"{value!r} is no mapping", "Write `name: value`, one a line below it")
    return value


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        raise WrongValueError(
            f"{value!r} is no digest", "Write sha256: and 64 hex digits, as `slacktide models` prints"
        )
    return value


def _revision(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{40}", value):
        raise WrongValueError(f"{value!r} is no commit", "Write all 40 hex digits of a commit: a branch moves")
    return value


def _rate(value: Any) -> float:
    number = finite_number(value)
    if not 0 <= number <= 1:
        raise WrongValueError(f"{value} is not from 0 to 1", "Give a share of the requests, such as 0.01")
    return number


def _none_or_more(value: Any) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else at_least_one(value)


def _model_field(value: Any) -> str | dict[str, Any]:
    return text(value) if isinstance(value, str) else _mapping(value)


_FILE_FIELDS = {
    "device": (one_of(DEVICES), "auto"),
    "precision": (one_of(PRECISIONS), "float32"),
    "threads": (at_least_one, 1),
    "max_items": (at_least_one, 32),
    "max_tokens": (at_least_one, 16_384),
    "batch_records": (at_least_one, 256),
    "batch_wait_seconds": (milliseconds, 0.5),
    "models": (_mapping, {}),
    "scorers": (some_list, REQUIRED),
}
_MODEL_FIELDS = {
    "path": (optional(text), None),
    "package": (optional(text), None),
    "hub": (optional(text), None),
    "revision": (optional(_revision), None),
    "digest": (optional(_digest), None),
}
_SCORER_FIELDS = {
    "name": (text, REQUIRED),
    "kind": (one_of(tuple(KINDS)), REQUIRED),
    "model": (optional(_model_field), None),
    "sampling": (_mapping, {}),
    "review": (optional(_mapping), None),
    "judge": (optional(text), None),
}
_SAMPLING_FIELDS = {
    "rate": (_rate, SampleRule().rate),
    "at_least_per_minute": (_none_or_more, SampleRule().at_least_per_minute),
}
_REVIEW_FIELDS = {"score": (text, REQUIRED), "below": (finite_number, REQUIRED)}


@dataclass(frozen=True)
class ScorerSpec:
    """One scorer of the file, checked: what it is made of, what it samples, and which of its scores asks for a review.

    It can be pickled: the files it names are read already, but for its model's, which stay where they are.
    """

    kind: str
    settings: Settings
    sampling: SampleRule
    review: ReviewRule | None

    @property
    def name(self) -> str:
        """Unique within the file."""
        return self.settings.name

    @property
    def judge(self) -> JudgeReport | None:
        """The validation report of a scorer that judges."""
        return self.settings.judge


@dataclass(frozen=True)
class Scorers:
    """A whole scorers file. `digest` is that of all that its scores depend on; the file's path is not in it."""

    file: str
    scorers: tuple[ScorerSpec, ...]
    models: Mapping[str, ModelSource]
    device: str
    precision: str
    threads: int
    max_items: int
    max_tokens: int
    batch_records: int
    batch_wait_ms: int
    digest: str


def load_scorers(path: str) -> Scorers:
    """Read and check a scorers file and all it names, without torch.

    Raises ConfigurationError naming file, field, problem and remedy of the first thing that is wrong: a model that is
    missing, truncated or of another digest too. Reads the models' files once.
    """
    root = Place(str(path))
    values = fields_of(root, parsed_yaml(root), _FILE_FIELDS)
    if not values["scorers"]:
        root.field("scorers").refuse("is empty", "Add at least one scorer")
    models = {
        str(name): _model(root.field(f"models.{name}"), str(name), body) for name, body in values.pop("models").items()
    }
    specs: list[ScorerSpec] = []
    for number, body in enumerate(values.pop("scorers")):
        place = root.field(f"scorers[{number}]")
        spec = _scorer(place, body, models)
        if any(spec.name == other.name for other in specs):
            place.field("name").refuse(f"{spec.name!r} stands twice", "Give each scorer a name of its own")
        specs.append(spec)
    values["batch_wait_ms"] = values.pop("batch_wait_seconds")
    digest = _digest_of(specs, values["precision"])
    return Scorers(str(path), tuple(specs), models, digest=digest, **values)


def build_scorers(scorers: Scorers) -> list[Scorer]:
    """Load the models and make the scorers, in the order of the file; call it where they are to run, once.

    Raises ConfigurationError where a model has gone or changed since it was checked, or is of another kind, or where
    the device that is asked for is not there.
    """
    return build_with_models(scorers)[0]


def build_with_models(scorers: Scorers) -> "tuple[list[Scorer], LoadedModels]":
    """The same, and the models that were loaded for it."""
    from gpu_scorers.batches import BatchPolicy
    from gpu_scorers.devices import choose_device
    from gpu_scorers.loaded_models import LoadedModels

    root = Place(scorers.file)
    try:
        device = choose_device(scorers.device, scorers.precision, scorers.threads)
    except ModelError as error:
        root.field("device").refuse(error.problem, error.remedy)
    models = LoadedModels(device, BatchPolicy(scorers.max_items, scorers.max_tokens, device.pass_tokens))
    return [_built(root.field(f"scorers[{i}]"), spec, models) for i, spec in enumerate(scorers.scorers)], models


def _built(place: Place, spec: ScorerSpec, models: "LoadedModels") -> Scorer:
    try:
        return KINDS[spec.kind].make(spec.settings, models)
    except ModelError as error:
        place.field("model").refuse(f"{error.model}: {error.problem}", error.remedy)
    except ValueError as error:
        place.refuse(str(error), f"Mend the fields of {spec.name}, or name another model")


def _scorer(place: Place, body: object, models: Mapping[str, ModelSource]) -> ScorerSpec:
    if isinstance(body, dict) and body.get("kind") in tuple(KINDS):
        kind = KINDS[body["kind"]]
        values = fields_of(place, body, {**_SCORER_FIELDS, **kind.fields})
    else:
        fields_of(place, body, _SCORER_FIELDS)  # raises: the kind is missing or unknown
        raise AssertionError("a scorer without a kind was let through")
    source = _source(place, kind, values["model"], models, values["kind"])
    judge = _judge(place.field("judge"), values["judge"], kind, source)
    options = {name: values[name] for name in kind.fields}
    for name, read in kind.files.items():
        path = None if options[name] is None else place.relative(options[name])
        options[name] = read(place.field(name), path)
    sampling = SampleRule(**fields_of(place.field("sampling"), values["sampling"], _SAMPLING_FIELDS))
    review = None
    if values["review"] is not None:
        review = ReviewRule(**fields_of(place.field("review"), values["review"], _REVIEW_FIELDS))
    return ScorerSpec(values["kind"], Settings(values["name"], source, options, judge), sampling, review)


def _source(
    place: Place, kind: Kind, value: str | dict[str, Any] | None, models: Mapping[str, ModelSource], name: str
) -> ModelSource | None:
    here = place.field("model")
    if value is None and kind.model == NEEDS_MODEL:
        remedy = "Name one of `models`, or write {path: ..., digest: ...}"
        if name == "factuality":
            remedy += "; without an NLI model take kind groundedness, which is something else"
        here.refuse(f"is missing: {name} needs a model", remedy)
    if value is None:
        return None
    if kind.model == NO_MODEL:
        here.refuse(f"{name} takes no model", "Leave it out")
    if isinstance(value, str):
        if value not in models:
            here.refuse(*not_one_of(value, models))
        return models[value]
    return _model(here, str(value.get("package") or value.get("hub") or value.get("path")), value)


def _model(place: Place, name: str, body: object) -> ModelSource:
    """Check where a model comes from, and its files there."""
    values = fields_of(place, body, _MODEL_FIELDS)
    ways = [way for way in ("path", "package", "hub") if values[way] is not None]
    if len(ways) != 1:
        place.refuse(f"names {' and '.join(ways) or 'no place'}", "Write exactly one of path, package and hub")
    if (ways[0] == "hub") != (values["revision"] is not None):
        place.field("revision").refuse("goes with hub, and with hub alone", "Write hub and the commit's 40 hex digits")
    if values["path"] is not None:
        values["path"] = str(place.relative(values["path"]).absolute())
    values["digest"] = values["digest"] or known_digests().get(str(values["package"]))
    try:
        found = find_model(ModelSource(name, **values))
    except ModelError as error:
        place.refuse(error.problem, error.remedy)
    if values["digest"] is None:
        remedy = f"Once you trust the files in {found.folder}, write `digest: {found.digest}`"
        place.field("digest").refuse("is missing: a model is only loaded if its files are those you mean", remedy)
    return found.source


@cache
def known_digests() -> dict[str, str]:
    """Digests of the models inside packages that we pin: package -> digest."""
    data = files("gpu_scorers").joinpath("known_digests.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(data))


def _judge(place: Place, path: str | None, kind: Kind, source: ModelSource | None) -> JudgeReport | None:
    if path is None:
        return None
    if not kind.judges:
        place.refuse("this kind measures and doesn't judge", "Leave it out")
    try:
        report = load_judge_report(place.relative(path))
    except OSError as error:
        place.refuse(f"{path} can't be read ({error.strerror})", "Give the path of a validation report")
    except ValueError as error:
        place.refuse(f"{path}: {error}", "Write it as docs/scorers.md says")
    if report.model_digest is not None and (source is None or report.model_digest != source.digest):
        problem = f"{path} was taken with the model {report.model_digest}, which is not this scorer's"
        place.refuse(problem, "Validate the judge again with this model")
    return report


def _digest_of(specs: list[ScorerSpec], precision: str) -> str:
    """The digest of what scores, samples and reviews depend on."""
    body = [
        [
            *(spec.name, spec.kind, spec.settings.model and spec.settings.model.digest, precision),
            {name: getattr(value, "digest", value) for name, value in spec.settings.options.items()},
            *(spec.sampling, spec.review, spec.judge),
        ]
        for spec in specs
    ]
    return content_digest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
