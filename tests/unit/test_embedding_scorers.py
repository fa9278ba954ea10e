"""Scorers by MiniLM: embeddings are sentence-transformers' own, and every text has a figure or a status."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpu_scorers.batches import BatchPolicy
from gpu_scorers.cosines import row_cosines
from gpu_scorers.devices import CPU, Device
from gpu_scorers.embedding_similarity import Centroid, EmbeddingSimilarity
from gpu_scorers.groundedness import Groundedness, GroundednessPolicy
from gpu_scorers.model_files import ModelError, ModelSource, find_model
from gpu_scorers.scorer import Request, Score, Scorer
from gpu_scorers.sentences import sentences
from gpu_scorers.text_encoder import TextEncoder
from gpu_scorers.texts import clean, tokenize
from schemas.status import Status
from tests.tiny_models import minilm, nli_folder
from udfs.statistics.cosine import cosine_similarity

TEXTS = [
    "The capital of France is Paris.",
    "hello",
    "法国的首都是巴黎。Paris, да! \U0001f600 mixed скрипт",
    "word " * 300,
    "\x00\x01\x7fELF\x02 \ufffd binary \ud800 looking",
    "a" * 90 + " unbelievably " * 40,
]
HOSTILE = ["", " \n\t", "\x00" * 1_000_000, "x" * 1_000_000, "\U0001f600" * 5000, "\ud800", "é" * 300_000, " " * 10**6]


def test_embeddings_are_those_of_sentence_transformers() -> None:
    ours = minilm().encode(TEXTS)
    peer = minilm().model.encode([clean(text) for text in TEXTS], show_progress_bar=False)
    for embedding, expected in zip(ours, peer, strict=True):
        assert embedding.vector == pytest.approx(expected, abs=1e-5)


def test_order_repeats_and_batch_size_change_nothing() -> None:
    some = [*TEXTS[:3], TEXTS[0]]
    one_by_one = TextEncoder(minilm().files, CPU, minilm().model, BatchPolicy(max_items=1))
    for a, b in zip(minilm().encode(some), one_by_one.encode(some[::-1])[::-1], strict=True):
        assert a.vector == pytest.approx(b.vector, abs=1e-5)


def test_what_was_not_read_is_said() -> None:
    long = minilm().encode(["word " * 3000])[0]
    assert long.tokens.n_tokens == minilm().max_tokens == 254
    assert long.evidence("prompt_") == {"prompt_characters_read": 254 * 5 - 1, "prompt_characters": 15_000}
    same = minilm().encode(["word " * 254])[0]
    assert not same.tokens.truncated
    assert same.vector == pytest.approx(long.vector, abs=1e-5)


@settings(max_examples=60)
@given(st.text(st.characters(), max_size=200), st.integers(1, 40))
def test_tokens_of_any_text_are_the_tokenizers_first(text: str, limit: int) -> None:
    tokenizer = minilm().model.tokenizer
    whole = tokenizer(clean(text), add_special_tokens=False, return_offsets_mapping=True)
    tokens = tokenize(tokenizer, [text], limit)[0]
    assert list(tokens.ends) == [end for _, end in whole["offset_mapping"][:limit]]
    assert tokens.truncated == (len(whole["input_ids"]) > limit)
    assert tokens.first(1).n_tokens == min(1, tokens.n_tokens)


@settings(max_examples=100)
@given(*[arrays(np.float64, 3, elements=st.floats(-1e300, 1e300) | st.just(0.0))] * 2)
def test_cosines_are_those_of_udfs(a: np.ndarray, b: np.ndarray) -> None:
    found, expected = row_cosines(a, b)[0], cosine_similarity(a, b)
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, abs=1e-12)


def test_cosines_of_unusable_rows_are_none() -> None:
    assert row_cosines([[math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0]], [[1.0, 0.0]]) == [None, None, None]


def one(scorer: Scorer, **fields: object) -> Score:
    (scores,) = scorer.score([Request("t", **fields)])
    return scores[0]


def test_a_prompt_is_nearer_to_its_answer_than_to_another() -> None:
    scorer = EmbeddingSimilarity(minilm())
    asked = "What is the capital of France?"
    near, far = (one(scorer, prompt=asked, response=r) for r in ("Paris is the capital.", "Boil the egg for long."))
    assert near.value is not None
    assert far.value is not None
    assert near.value > far.value + 0.3
    peer = minilm().model.encode([asked, "Paris is the capital."], show_progress_bar=False)
    assert near.value == pytest.approx(float(minilm().model.similarity(peer[0], peer[1])), abs=1e-5)


def test_similarity_to_a_centroid() -> None:
    centre = np.mean([e.vector for e in minilm().encode(["a cat", "a kitten", "a tomcat"])], axis=0)
    scorer = EmbeddingSimilarity(minilm(), Centroid(centre.astype(np.float64), "sha256:c"))
    (scores,) = scorer.score([Request("t", prompt="my cat", response="interest rates")])
    by_name = {score.name: score for score in scores}
    assert list(by_name) == ["prompt_response_similarity", "prompt_centroid_similarity", "response_centroid_similarity"]
    prompt, response = by_name["prompt_centroid_similarity"], by_name["response_centroid_similarity"]
    assert prompt.value == pytest.approx(cosine_similarity(minilm().encode(["my cat"])[0].vector, centre), abs=1e-6)
    assert prompt.value > response.value + 0.3  # type: ignore[operator]
    assert prompt.evidence["reference_digest"] == "sha256:c"
    zero = EmbeddingSimilarity(minilm(), Centroid(np.zeros(384), ""))
    assert zero.score([Request("t", prompt="a", response="b")])[0][1].status is Status.INVALID
    with pytest.raises(ValueError, match="384 numbers"):
        EmbeddingSimilarity(minilm(), Centroid(np.ones(3), ""))


@pytest.mark.parametrize("kind", [EmbeddingSimilarity, Groundedness])
def test_hostile_texts_have_a_status_and_leave_the_others_alone(kind: Callable[[TextEncoder], Scorer]) -> None:
    scorer = kind(minilm())
    fine = Request("t", prompt="The sky is blue.", response="It is blue.")
    batch = [fine, *(Request("t", prompt=text, response="It is blue.") for text in HOSTILE), Request("t"), fine]
    found = scorer.score(batch)
    assert len(found) == len(batch)
    assert found[0][0].value == pytest.approx(scorer.score([fine])[0][0].value, abs=1e-5)
    assert found[0][0].value == found[-1][0].value
    for scores in found:
        assert all(score.value is None or -1 <= score.value <= 1 for score in scores)
    assert found[1][0].status is Status.NO_DATA
    assert found[-2][0].status is Status.NO_DATA


def test_nothing_but_unknown_tokens_is_no_similarity_of_1() -> None:
    score = one(EmbeddingSimilarity(minilm()), prompt="\U0001f600", response="\U0001f680")
    assert (score.value, score.status) == (None, Status.INVALID)
    assert "no token that the model knows" in str(score.evidence["reason"])


def test_an_overflow_in_the_model_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """As half precision may give: the model's own figures are infinite."""
    encoder = TextEncoder(minilm().files, CPU, minilm().model)
    monkeypatch.setattr(encoder, "_forward", lambda texts, device: np.full((len(texts), 384), np.inf, np.float32))
    assert one(EmbeddingSimilarity(encoder), prompt="a", response="b").status is Status.INVALID


def test_lower_precision_is_near_and_only_where_asked() -> None:
    half = TextEncoder(minilm().files, Device("cpu", "bfloat16"), minilm().model)
    full, asked = minilm().encode(TEXTS[:1])[0].vector, half.encode(TEXTS[:1])[0].vector
    assert asked == pytest.approx(full, abs=0.02)
    assert not np.array_equal(asked, full)


def test_a_response_from_its_prompt_is_grounded() -> None:
    scorer = Groundedness(minilm())
    prompt = "The tower is 330 metres high. It was built in 1889. Answer from this text: how high is it?"
    said, made_up = (one(scorer, prompt=prompt, response=r) for r in ("It is 330 metres high.", "I like green tea."))
    assert said.value is not None
    assert made_up.value is not None
    assert said.value > made_up.value + 0.4
    assert said.name == "groundedness"


def test_groundedness_by_hand() -> None:
    prompt, response = ["A cat sat.", "Rain fell."], ["A dog sat.", "It rained."]
    cosines = [
        [cosine_similarity(a.vector, b.vector) for b in minilm().encode(prompt)] for a in minilm().encode(response)
    ]
    score = one(Groundedness(minilm()), prompt=" ".join(prompt), response=" ".join(response))
    best = [max(row) for row in cosines]  # type: ignore[type-var]
    assert score.value == pytest.approx(sum(best) / 2, abs=1e-6)
    assert score.evidence["lowest"] == pytest.approx(min(best), abs=1e-6)


def test_more_sentences_than_are_read_are_said() -> None:
    score = one(Groundedness(minilm(), GroundednessPolicy(max_sentences=3)), prompt="A. B. C. D.", response="A.")
    assert score.truncated
    assert score.evidence["prompt_sentences"] == 3
    assert not one(Groundedness(minilm()), prompt="A. B. C. D.", response="A.").truncated


def test_sentences() -> None:
    assert sentences("Version 2.5 is out! See example.com now? 好的。再见\n- one\n- two\n...\n") == [
        *("Version 2.5 is out!", "See example.com now?", "好的。", "再见", "- one", "- two"),
    ]


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(nli_folder(), tmp_path / "model"))
    (folder / "config.json").write_text('{"model_type": "no such type"}')
    with pytest.raises(ModelError, match="can't be loaded as a sentence-transformers model"):
        TextEncoder.load(find_model(ModelSource("m", path=str(folder))))
