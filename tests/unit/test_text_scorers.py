"""Scorers without a model: repetition, BLEU and refusal by phrases, against authorities and by hand."""

import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_scorers.bleu import Bleu
from gpu_scorers.phrases import RefusalPhrases
from gpu_scorers.refusal import Refusal
from gpu_scorers.repetition import Repetition, words
from gpu_scorers.scorer import Request, Score, Scorer
from schemas.status import Status

HOSTILE = ["", " ", "\x00" * 10, "\ud800", "\U0001f600" * 50, "x" * 1_000_000, "مرحبا 你好 мир", "\x7fELF\x00\x01"]
SCORERS = [Repetition(), Bleu(), Refusal(RefusalPhrases.load())]


def one(scorer: Scorer, **fields: object) -> Score:
    (scores,) = scorer.score([Request("t", **fields)])
    return scores[0]


def test_repetition_by_hand() -> None:
    """Of "a b c d a b c d", 8 words, the n-grams of 4 are abcd bcda cdab dabc abcd: 5, of which 4 differ."""
    score = one(Repetition(), response="A b, c d a b, c d".replace(",", ""))
    assert score.value == pytest.approx(1 - 4 / 5)
    assert score.evidence == {"n": 4, "n_grams": 5}
    assert one(Repetition(), response="one two three four").value == 0.0
    assert one(Repetition(), response="one two three").status is Status.INSUFFICIENT_DATA
    loop = one(Repetition(), response="ha " * 1000).value
    assert loop == pytest.approx(1 - 1 / 997)


def test_words_of_many_scripts() -> None:
    assert words("Ünïcode-Test 3x 你好 カナ \U0001f600\U0001f600 الله") == [
        *("ünïcode", "-", "test", "3x", "你", "好", "カ", "ナ", "\U0001f600", "\U0001f600", "الله"),
    ]


@settings(max_examples=100)
@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_repetition_is_a_count_of_distinct_n_grams(said: list[str]) -> None:
    score = one(Repetition(n=2), response=" ".join(said))
    grams = [tuple(said[i : i + 2]) for i in range(len(said) - 1)]
    if grams:
        assert score.value == pytest.approx(1 - len(set(grams)) / len(grams))
    else:
        assert score.value is None


def test_bleu_by_hand() -> None:
    """Response of 6 words, golden of 7: 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, 0 of 3 fours (smoothed: 1/2)."""
    score = one(Bleu(), response="the cat sat on the mat", golden="the cat is on the mat today")
    precisions = [5 / 6, 3 / 5, 1 / 4, 1 / (2 * 3)]
    brevity = math.exp(1 - 7 / 6)
    assert score.value == pytest.approx(brevity * math.prod(precisions) ** 0.25, abs=1e-9)
    assert score.evidence == {"tokenizer": "13a"}


def test_bleu_is_sacrebleus_sentence_bleu() -> None:
    from sacrebleu import sentence_bleu

    for response, golden, tokenizer in (
        ("It isn't so, is it?", "It is not so, is it?", "13a"),
        ("法国的首都是巴黎。", "巴黎是法国的首都。", "zh"),
        ("Paris", "Paris is the capital of France", "13a"),
    ):
        expected = sentence_bleu(response, [golden], tokenize=tokenizer).score / 100
        score = one(Bleu(), response=response, golden=golden)
        assert score.value == pytest.approx(expected, abs=1e-12)
        assert score.evidence["tokenizer"] == tokenizer
    assert one(Bleu(), response="equal texts are one", golden="equal texts are one").value == 1.0


def test_bleu_says_what_it_did_not_read() -> None:
    score = one(Bleu(max_characters=10), response="a" * 30, golden="a" * 10)
    assert score.truncated
    assert score.evidence == {"tokenizer": "13a", "response_characters_read": 10, "response_characters": 30}
    assert one(Bleu(), response="a").status is Status.NO_DATA


REFUSED = [
    "I'm sorry, but I can't help with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "Sorry -- I  CANNOT\nprovide instructions for this.",
    "As an AI language model, I am not able to do this.",
    "I must decline.",
    "抱歉，我无法提供这方面的信息。",
    "对不起，我不能协助您完成此请求。",
    "很抱歉，我無法回答。",
]
ANSWERED = [
    "I'm sorry for the confusion. Here is the list you asked for.",
    "I can't believe how well this works! First, open the file.",
    "As an AI, I find this easy: 42.",
    "Sorry to hear that. Restart the router.",
    "抱歉让您久等了，答案是四十二。",
    "我不能更同意了：先打开文件。",
    "Yes. " * 60 + "He said: I can't help with that.",
]


@pytest.mark.parametrize("response", REFUSED)
def test_refusals_are_told(response: str) -> None:
    score = one(Refusal(RefusalPhrases.load()), response=response)
    assert (score.value, score.label) == (1.0, "refused")
    assert score.evidence["language"] in ("en", "zh")


@pytest.mark.parametrize("response", ANSWERED)
def test_answers_are_no_refusals(response: str) -> None:
    score = one(Refusal(RefusalPhrases.load()), response=response)
    assert (score.value, score.label) == (0.0, "answered")


def test_the_version_of_the_scorer_changes_with_its_phrases(tmp_path: Path) -> None:
    file = tmp_path / "phrases.yaml"
    file.write_text("within_characters: 20\nphrases: {de: [Das kann ich nicht]}\n")
    mine = RefusalPhrases.load(file)
    assert Refusal(mine).version != Refusal(RefusalPhrases.load()).version
    assert one(Refusal(mine), response="DAS kann ich nicht tun").evidence["language"] == "de"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "phrases must name"),
        ("within_characters: 5", "phrases must name"),
        ("phrases: {en: [1]}\nwithin_characters: 5", r"phrases\.en must be a list of texts"),
        ("phrases: {en: [no]}\nwithin_characters: 5", r"phrases\.en must be a list of texts"),  # YAML's no is false
        ("phrases: {en: ['no']}", "within_characters must be a whole number"),
        ("phrases: [", "it is not YAML"),
    ],
)
def test_a_wrong_file_of_phrases_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "phrases.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        RefusalPhrases.load(file)


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.name)
def test_hostile_texts_have_a_figure_or_a_status_soon(scorer: Scorer) -> None:
    start = time.process_time()
    found = scorer.score([Request("t", response=text, golden=text) for text in HOSTILE])
    assert time.process_time() - start < 10  # the lot takes under a second: this is for what explodes
    assert [scores[0].status for scores in found[:2]] == [Status.NO_DATA] * 2
    assert all((s.value is None) == (s.status is not Status.OK) for scores in found for s in scores)


@settings(max_examples=60)
@given(st.text(st.characters(), max_size=300))
def test_any_text_has_a_figure_or_a_status(text: str) -> None:
    for scorer in SCORERS:
        score = one(scorer, response=text, golden=text)
        assert score.value is None or 0 <= score.value <= 1
