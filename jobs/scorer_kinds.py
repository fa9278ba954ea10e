"""The kinds of scorers that a scorers file may name: which fields each has, and how it is made of them.

Fields are checked, and the files they name are read, before a job is submitted and without torch; scorers are made in
the worker, which loads the models.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_scorers.model_files import ModelSource
from gpu_scorers.phrases import PHRASES, RefusalPhrases
from gpu_scorers.scorer import Scorer
from jobs.yaml_fields import (
    REQUIRED,
    Check,
    Place,
    at_least_one,
    list_of_texts,
    optional,
    strictly_between_0_and_1,
    text,
)
from schemas.judge_report import JudgeReport
from schemas.version_graph import VersionGraph, VersionGraphError, load_version_graph
from udfs.references.embedding_reference import EmbeddingReference
from udfs.references.errors import ReferenceProfileError
from udfs.versions.diffusion_embedding import EmbeddingPolicy

if TYPE_CHECKING:
    from gpu_scorers.loaded_models import LoadedModels

NO_MODEL, MAY_HAVE_MODEL, NEEDS_MODEL = "no", "may", "needs"


@dataclass(frozen=True)
class Settings:
    """What one scorer is made of: its name, its model, the checked values of its kind's fields, its judge's report."""

    name: str
    model: ModelSource | None
    options: Mapping[str, Any]
    judge: JudgeReport | None = None

    @property
    def needed_model(self) -> ModelSource:
        """The model of a kind that needs one."""
        if self.model is None:
            raise ValueError(f"scorer {self.name} has no model")
        return self.model


@dataclass(frozen=True)
class Kind:
    """One kind. `fields`: name -> (check, default), as in `jobs.yaml_fields`.

    `files`: fields that name a file, each with what reads it, or what stands for it where the field is left out.
    `judges`: it says what a model or a list believes, so it may carry a validation report.
    """

    make: Callable[[Settings, "LoadedModels"], Scorer]
    model: str = NO_MODEL
    fields: Mapping[str, tuple[Check, Any]] = field(default_factory=dict)
    files: Mapping[str, Callable[[Place, Path | None], Any]] = field(default_factory=dict)
    judges: bool = False


def _reference(place: Place, path: Path | None) -> EmbeddingReference | None:
    if path is None:
        return None
    try:
        return EmbeddingReference.load(path)
    except ReferenceProfileError as error:
        place.refuse(f"{path}: {error.field}: {error.problem}", error.remedy)


def _graph(place: Place, path: Path | None) -> VersionGraph:
    try:
        graph = load_version_graph(str(path))
    except VersionGraphError as error:
        place.refuse(str(error), error.remedy)
    if not graph.node_ids:
        place.refuse(f"{path} has no nodes", "Give the snapshot of a version with nodes")
    return graph


def _phrases(place: Place, path: Path | None) -> RefusalPhrases:
    try:
        return RefusalPhrases.load(path)
    except OSError as error:
        place.refuse(f"{path} can't be read ({error.strerror})", "Give the path of a file of phrases, or leave it out")
    except ValueError as error:
        place.refuse(f"{path}: {error}", f"Write it as {PHRASES} is written")


def _embedding_similarity(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.embedding_similarity import Centroid, EmbeddingSimilarity

    reference = settings.options["reference"]
    centroid = None if reference is None else Centroid(reference.direction, reference.digest)
    return EmbeddingSimilarity(models.encoder(settings.needed_model), centroid, name=settings.name)


def _groundedness(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.groundedness import Groundedness, GroundednessPolicy

    policy = GroundednessPolicy(max_sentences=settings.options["max_sentences"])
    return Groundedness(models.encoder(settings.needed_model), policy, name=settings.name, judge=settings.judge)


def _factuality(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.factuality import Factuality, FactualityPolicy

    policy = FactualityPolicy(**settings.options)
    return Factuality(models.classifier(settings.needed_model), policy, name=settings.name, judge=settings.judge)


def _refusal(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.refusal import Refusal

    classifier = models.classifier(settings.model) if settings.model else None
    phrases, label = settings.options["phrases"], settings.options["refusal_label"]
    return Refusal(phrases, classifier, label, name=settings.name, judge=settings.judge)


def _toxicity(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.toxicity import Toxicity

    classifier, labels = models.classifier(settings.needed_model), settings.options["toxic_labels"]
    return Toxicity(classifier, labels, name=settings.name, judge=settings.judge)


def _repetition(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.repetition import Repetition

    return Repetition(n=settings.options["n"], name=settings.name)


def _bleu(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.bleu import Bleu

    return Bleu(settings.options["max_characters"], name=settings.name)


def _softmax_comparison(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.softmax_comparison import SoftmaxComparison

    return SoftmaxComparison(models.device, name=settings.name)


def _version_graph_distance(settings: Settings, models: "LoadedModels") -> Scorer:
    from gpu_scorers.diffusion_embedding import VersionGraphDistance

    return VersionGraphDistance(settings.options["baseline"], EmbeddingPolicy(), models.device, name=settings.name)


KINDS: Mapping[str, Kind] = {
    "embedding_similarity": Kind(
        _embedding_similarity, NEEDS_MODEL, {"reference": (optional(text), None)}, {"reference": _reference}
    ),
    "groundedness": Kind(_groundedness, NEEDS_MODEL, {"max_sentences": (at_least_one, 64)}, judges=True),
    "factuality": Kind(
        _factuality,
        NEEDS_MODEL,
        {
            "entailment_above": (strictly_between_0_and_1, 0.85),
            "max_tokens": (at_least_one, 512),
            "hypothesis": (text, "The response is factually consistent with the prompt."),
        },
        judges=True,
    ),
    "refusal": Kind(
        _refusal,
        MAY_HAVE_MODEL,
        {"phrases": (optional(text), None), "refusal_label": (text, "refusal")},
        {"phrases": _phrases},
        judges=True,
    ),
    "toxicity": Kind(_toxicity, NEEDS_MODEL, {"toxic_labels": (list_of_texts, REQUIRED)}, judges=True),
    "repetition_rate": Kind(_repetition, fields={"n": (at_least_one, 4)}),
    "bleu_4": Kind(_bleu, fields={"max_characters": (at_least_one, 65_536)}),
    "softmax_comparison": Kind(_softmax_comparison),
    "version_graph_distance": Kind(
        _version_graph_distance, fields={"baseline": (text, REQUIRED)}, files={"baseline": _graph}
    ),
}
