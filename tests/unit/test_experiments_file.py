"""The experiments file: what it means, what changes a verdict's id, and every refusal with its remedy."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.paths import CONF
from jobs.experiments import load_experiments
from jobs.kafka_client import ConfigurationError
from schemas.model_card import CARDS_FOLDER, load_model_card
from udfs.experiments.plan import SplitPlan

CARD = "azure_llm_conversation_2023.json"
BODY: dict[str, Any] = {"name": "e", "arms": {"a": 95, "b": 5}, "model_card": CARD}


def write(folder: Path, *experiments: dict[str, Any], **job_wide: Any) -> Path:
    shutil.copy(CARDS_FOLDER / CARD, folder / CARD)
    file = folder / "experiments.yaml"
    file.write_text(yaml.safe_dump(job_wide | {"experiments": list(experiments)}))
    return file


def test_the_example_is_valid() -> None:
    found = load_experiments(CONF / "experiments.yaml")
    canary, prompt = (experiment.plan for experiment in found.experiments)
    assert canary.shares_of("1") == {"canary": 0.05, "stable": 0.95}
    assert canary.shares_of("2") == {"canary": 0.5, "stable": 0.5}
    assert (prompt.tolerance, prompt.alpha, prompt.max_switched_share) == (0.03, 0.01, 0.01)
    assert (found.window_ms, found.watermark_bound_ms, found.idle_timeout_ms) == (30_000, 10_000, 30_000)
    assert found.epoch_field == "assignment_epoch"


def test_defaults_are_those_of_the_plan(tmp_path: Path) -> None:
    (experiment,) = load_experiments(write(tmp_path, BODY)).experiments
    assert experiment.plan == SplitPlan("e", (("a", 95.0), ("b", 5.0)))
    frame = experiment.frame
    assert (frame.monitor, frame.window_ms, frame.slide_ms) == ("e", 30_000, 30_000)
    assert frame.model_card_digest == load_model_card(CARDS_FOLDER / CARD).digest


def test_the_test_is_tuned_for_the_tolerance(tmp_path: Path) -> None:
    (experiment,) = load_experiments(write(tmp_path, BODY | {"tolerance": 0.01})).experiments
    assert experiment.plan.concentration == 2500


def digest(folder: Path, body: dict[str, Any], **job_wide: Any) -> str:
    return load_experiments(write(folder, body, **job_wide)).experiments[0].frame.config_digest


def test_what_a_verdict_depends_on_changes_its_id_and_nothing_else(tmp_path: Path) -> None:
    first = digest(tmp_path, BODY)
    assert digest(tmp_path, BODY | {"arms": {"b": 5, "a": 95}, "tolerance": 0.03}, idle_timeout_seconds=99) == first
    ramp = {"epochs": {"2": {"a": 1, "b": 1}}}
    changes = [{"name": "f"}, {"arms": {"a": 90, "b": 10}}, {"alpha": 0.02}, ramp]
    others = [digest(tmp_path, BODY | change) for change in changes]
    others += [digest(tmp_path, BODY, window_seconds=60), digest(tmp_path, BODY, epoch_field="model_version")]
    assert len({first, *others}) == 7


@pytest.mark.parametrize(
    ("change", "field", "problem", "remedy"),
    [
        ({"arms": {"a": 1}}, "arms", "has fewer than two arms", "one arm is no experiment"),
        ({"arms": {}}, "arms", "has fewer than two arms", "Name every arm"),
        ({"arms": {"a": 1, "b": 0}}, "arms", "the weight of b is 0, no number above 0", "such as 95"),
        ({"arms": {"a": 1, "b": -1}}, "arms", "the weight of b is -1", "such as 95"),
        ({"arms": {"a": 1, "b": float("nan")}}, "arms", "the weight of b is nan", "such as 95"),
        ({"arms": {"a": 1, "b": float("inf")}}, "arms", "the weight of b is inf", "such as 95"),
        ({"arms": {"a": 1, "b": True}}, "arms", "the weight of b is True", "such as 95"),
        ({"arms": {"a": 1, "b": "5%"}}, "arms", "the weight of b is '5%'", "such as 95"),
        ({"arms": {True: 1, False: 1}}, "arms", "the arm False is no text", "in quotes"),
        ({"arms": ["a", "b"]}, "arms", "is no mapping", "arm: weight"),
        ({"arms": {f"a{n}": 1 for n in range(64)}}, "arms", "has 64 arms", "at most 63"),
        ({"epochs": {2: {"a": 1, "b": 1}}}, "epochs", "the epoch 2 is no text", '"2" in quotes'),
        ({"epochs": {"2": {"a": 1}}}, "epochs", "fewer than two arms", "one arm"),
        ({"epochs": [1]}, "epochs", "is no mapping", "epoch"),
        ({"tolerance": 0}, "tolerance", "is not between 0 and 1", "such as 0.01"),
        ({"tolerance": 3}, "tolerance", "is not between 0 and 1", "such as 0.01"),
        ({"alpha": 1}, "alpha", "is not between 0 and 1", "such as 0.01"),
        ({"min_samples": 0}, "min_samples", "no whole number above 0", "from 1"),
        ({"concentration": 0}, "concentration", "no number from 1", "Leave it out"),
        ({"max_switched_share": 1}, "max_switched_share", "is not between 0 and 1", "below 1"),
        ({"users_remembered": 10**7}, "users_remembered", "above 1000000", "sample"),
        ({"no_data_windows": 1.5}, "no_data_windows", "no whole number above 0", "from 1"),
        ({"tolerence": 0.1}, "tolerence", "is not a known field", "Did you mean tolerance?"),
        ({"name": ""}, "name", "is no text", "Write a name"),
        ({"arms": None}, "arms", "is missing", "no default"),
        ({"model_card": "none.json"}, "model_card", "none.json", ""),
    ],
)
def test_what_is_wrong_is_refused_with_the_remedy(
    tmp_path: Path, change: dict[str, Any], field: str, problem: str, remedy: str
) -> None:
    file = write(tmp_path, BODY | change)
    with pytest.raises(ConfigurationError) as caught:
        load_experiments(file)
    error = caught.value
    assert (error.file, error.field) == (str(file), f"experiments[0].{field}")
    assert problem in error.problem
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("job_wide", "field", "problem"),
    [
        ({"window_seconds": 0}, "window_seconds", "is not above 0"),
        ({"window_seconds": 0.0001}, "window_seconds", "no whole number of milliseconds"),
        ({"epoch_field": "trace_id"}, "epoch_field", "is no text field of a request"),
        ({"windows": 3}, "windows", "is not a known field"),
    ],
)
def test_what_is_wrong_of_the_whole_file(tmp_path: Path, job_wide: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_experiments(write(tmp_path, BODY, **job_wide))
    assert (caught.value.field, problem in caught.value.problem) == (field, True)


def test_names_are_unique_and_there_is_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_experiments(write(tmp_path, BODY, BODY))
    assert (caught.value.field, caught.value.problem) == ("experiments[1].name", "'e' stands twice")
    with pytest.raises(ConfigurationError) as caught:
        load_experiments(write(tmp_path))
    assert caught.value.field == "experiments"
