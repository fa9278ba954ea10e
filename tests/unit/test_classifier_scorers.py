"""Factuality, toxicity and refusal by classifiers trained in the tests; labels are read from the model's config."""

import json
import shutil
from pathlib import Path

import pytest

from gpu_scorers.factuality import Factuality, FactualityPolicy, shared
from gpu_scorers.model_files import ModelError, ModelSource, find_model
from gpu_scorers.refusal import Refusal, RefusalPhrases
from gpu_scorers.scorer import Request, Score, Scorer
from gpu_scorers.sequence_classifier import SequenceClassifier
from gpu_scorers.texts import Tokens
from gpu_scorers.toxicity import Toxicity
from schemas.judge_report import JudgeReport
from schemas.status import Status
from tests.tiny_models import HYPOTHESIS, nli, nli_folder, toxicity_model

ORDERS = [
    ("contradiction", "entailment", "neutral"),  # cross-encoder/nli-deberta-v3-small
    ("entailment", "neutral", "contradiction"),  # as many other NLI models have it
]
PROMPT = "the sky is blue"


def one(scorer: Scorer, **fields: object) -> Score:
    (scores,) = scorer.score([Request("t", **fields)])
    return scores[-1]


def with_config(folder: Path, **config: object) -> SequenceClassifier:
    """The model of `folder`, changed in place, with another config."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    return SequenceClassifier.load(find_model(ModelSource("m", path=str(folder))))


@pytest.mark.parametrize("order", ORDERS)
def test_entailment_is_found_wherever_its_label_stands(order: tuple[str, ...]) -> None:
    scorer = Factuality(nli(order))
    true, false, unclear = (one(scorer, prompt=PROMPT, response=f"it is {w}") for w in ("true", "false", "unclear"))
    assert (true.label, false.label, unclear.label) == ("consistent", "inconsistent", "inconsistent")
    assert true.value is not None
    assert true.value > 0.85
    assert max(false.value or 0, unclear.value or 0) < 0.15
    assert (scorer.name, true.name, scorer.model_digest) == ("factuality", "factuality", nli(order).files.digest)


def test_the_figure_is_sentence_transformers_own() -> None:
    from sentence_transformers import CrossEncoder

    peer = CrossEncoder(str(nli_folder()), local_files_only=True, device="cpu")
    responses = ["it is true", "it is false", "deep blue sea", "true and unclear"]
    pairs = [(f"{PROMPT}\n{response}", HYPOTHESIS) for response in responses]
    expected = peer.predict(pairs, apply_softmax=True, show_progress_bar=False)[:, 1]
    scores = Factuality(nli()).score([Request("t", prompt=PROMPT, response=r) for r in responses])
    assert [s[0].value for s in scores] == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_limit_of_entailment_is_exclusive_and_policy() -> None:
    value = one(Factuality(nli()), prompt=PROMPT, response="it is true").value
    assert value is not None
    at_limit = Factuality(nli(), FactualityPolicy(entailment_above=value))
    assert one(at_limit, prompt=PROMPT, response="it is true").label == "inconsistent"


def test_a_config_without_names_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(nli_folder(), tmp_path / "nli"))
    names = {str(i): f"LABEL_{i}" for i in range(3)}
    model = with_config(folder, id2label=names, label2id={name: int(i) for i, name in names.items()})
    with pytest.raises(ModelError, match=r"names the labels LABEL_0, LABEL_1, LABEL_2 and none is entailment\. Write"):
        Factuality(model)


def test_not_entailment_is_no_entailment(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(nli_folder(ORDERS[1]), tmp_path / "nli"))
    names = ["not_entailment", "ENTAILMENT", "neutral"]
    model = with_config(folder, id2label=dict(enumerate(names)), label2id={n: i for i, n in enumerate(names)})
    assert model.position_of("entailment") == 1


def test_a_model_that_was_not_trained_to_classify_is_refused(tmp_path: Path) -> None:
    """transformers makes the missing head up of random numbers, with no more than a warning."""
    from transformers import AutoModel

    folder = Path(shutil.copytree(nli_folder(), tmp_path / "nli"))
    AutoModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(ModelError, match="lack the weights classifier"):
        SequenceClassifier.load(find_model(ModelSource("m", path=str(folder))))


def test_a_long_prompt_leaves_the_response_in_sight() -> None:
    score = one(Factuality(nli()), prompt="sky " * 5000, response="it is true")
    assert score.label == "consistent"
    assert score.truncated
    # 512 tokens: 12 of hypothesis and special ones, 3 of the response; each "sky " is one and 4 characters long.
    assert score.evidence == {"prompt_characters_read": (512 - 12 - 3) * 4 - 1, "prompt_characters": 20_000}


def test_both_long_share_the_room() -> None:
    long = Tokens("a " * 900, tuple(range(1, 1800, 2)), (False,) * 900, 1800, True)
    short = long.first(10)
    for prompt, response, expected in (
        (long, long, (250, 250)),
        (short, long, (10, 490)),
        (long, short, (490, 10)),
        (short, short, (10, 10)),
    ):
        assert tuple(part.n_tokens for part in shared(prompt, response, 500)) == expected


@pytest.mark.parametrize("prompt", ["", None, "\U0001f600 \U0001f680"])
def test_what_can_t_be_judged_has_a_status(prompt: str | None) -> None:
    judged = Request("t", prompt=PROMPT, response="it is true")
    found = Factuality(nli()).score([judged, Request("t", prompt=prompt, response="true"), Request("t"), judged])
    assert found[1][0].status is (Status.INVALID if prompt else Status.NO_DATA)
    assert found[2][0].status is Status.NO_DATA
    assert found[0][0].value == pytest.approx(found[3][0].value, abs=1e-6)
    assert Factuality(nli()).score([]) == []


def test_half_precision_overflow_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SequenceClassifier.load(nli().files)
    with_nan = model._forward
    monkeypatch.setattr(model, "_forward", lambda rows, device: with_nan(rows, device) * float("nan"))
    assert one(Factuality(model), prompt=PROMPT, response="true").status is Status.INVALID


def test_a_judge_carries_its_report() -> None:
    report = JudgeReport(0.95, 200, "2026-11-30", "sha256:" + "0" * 64, nli().files.digest)
    assert Factuality(nli(), judge=report).judge == report


def test_toxic_labels_may_both_hold() -> None:
    scorer = Toxicity(toxicity_model(), ["insult", "threat"])
    insult, threat, clean = (one(scorer, response=t) for t in ("the sky insult", "threat of sea", "the deep sea"))
    assert (insult.label, threat.label) == ("insult", "threat")
    assert min(insult.value or 0, threat.value or 0) > 0.9
    assert clean.value is not None
    assert clean.value < 0.1
    both = toxicity_model().classify(["insult and threat"])[0].probabilities
    assert both is not None
    assert min(both) > 0.9
    assert one(Toxicity(toxicity_model(), ["threat"]), response="the sky insult").value == pytest.approx(0, abs=0.1)
    assert one(scorer, response="sea " * 3000).truncated
    assert one(scorer, response=" ").status is Status.NO_DATA
    with pytest.raises(ModelError, match="none is hate"):
        Toxicity(toxicity_model(), ["hate"])
    with pytest.raises(ValueError, match="at least one label"):
        Toxicity(toxicity_model(), [])


def test_refusal_may_be_asked_of_a_classifier_too() -> None:
    scorer = Refusal(RefusalPhrases.load(), nli(), "contradiction")
    by_phrase, by_model = scorer.score([Request("t", response="I can't help with that, it is false")])[0]
    assert (by_phrase.value, by_phrase.label) == (1.0, "refused")
    assert by_model.name == "refusal_probability"
    assert by_model.label == "contradiction"
    assert scorer.model_digest == nli().files.digest
    with pytest.raises(ModelError, match="none is refusal"):
        Refusal(RefusalPhrases.load(), nli())
