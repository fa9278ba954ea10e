"""A batch through the scorers without an engine: sampling, poison, failing scorers, reviews, reports of judges."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_scorers.scorer import Request, Score, Scorer, unscored
from jobs.score_batch import SampledRecord, ScoreBatch, ScorerInJob, scores_or_error
from schemas.books import ScoreKind
from schemas.judge_report import JudgeReport
from schemas.scores import decode_score
from schemas.status import Status
from udfs.sampling.hash_fraction import hash_fraction
from udfs.sampling.review import ReviewRule
from udfs.sampling.rule import SampleRule

DIGEST = "sha256:" + "ab" * 32
ALL = SampleRule(1.0, 0)
REPORT = JudgeReport(0.95, 400, "2026-11-30", DIGEST)


class Figures:
    """A scorer made of a function from a request to scores; counts its calls."""

    def __init__(self, name: str, figure: Callable[[Request], list[Score]], judge: JudgeReport | None = None) -> None:
        self.name, self.version, self.model_digest, self.judge = name, "1", None, judge
        self.figure, self.calls = figure, 0

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        self.calls += 1
        return [self.figure(request) for request in batch]


def length(request: Request) -> list[Score]:
    """Words of the response; raises on what it doesn't like."""
    if request.response and "poison" in request.response:
        raise RuntimeError(f"can't take {request.response}")
    return [Score("length", len(request.response or "") / 7)]


def record(number: int, place: int = 1, **changes: Any) -> SampledRecord:
    trace_id = f"{number:032x}"
    body = {"trace_id": trace_id, "span_id": f"{number:016x}", "event_time_ms": 1_764_500_000_000 + number}
    body |= {"service_name": "chat", "model": "m", "prompt": "What is it?", "response": "It is." * number}
    body |= {"input_tokens": 5, "attributes": {"a": 1.0}} | changes
    return SampledRecord(orjson.dumps(body), trace_id, place, number % 2, number, 1_764_500_000_000)


def batch(*scorers: Scorer, rule: SampleRule = ALL, review: ReviewRule | None = None) -> ScoreBatch:
    return ScoreBatch([ScorerInJob(scorer, rule, review) for scorer in scorers], "requests", DIGEST)


def test_every_request_gets_its_scores() -> None:
    outcomes = batch(Figures("words", length)).score([record(number) for number in range(1, 6)])
    assert [outcome.kind for outcome in outcomes] == [ScoreKind.SCORED] * 5
    found = [decode_score(payload) for outcome in outcomes for payload in outcome.scores]
    assert [score.value for score in found] == [round(6 * number / 7, 5) for number in range(1, 6)]
    assert {score.trace_id for score in found} == {f"{number:032x}" for number in range(1, 6)}
    assert found[0].labels == {"service_name": "chat", "model": "m"}
    assert (found[0].scorer, found[0].sampling_rate, found[0].judge) == ("words", 1.0, None)
    assert not any(outcome.letters or outcome.decisions for outcome in outcomes)


def test_no_text_of_a_request_is_in_what_goes_out() -> None:
    review = ReviewRule("length", 1e9)
    (outcome,) = batch(Figures("words", length), review=review).score([record(1, response="a secret of ours")])
    assert outcome.scores
    assert outcome.decisions
    assert b"secret" not in b"".join([*outcome.scores, *outcome.decisions])


@pytest.mark.parametrize("poisoned", [{3}, {0, 9}, {4, 5, 6}, set(range(10))])
def test_a_record_that_a_scorer_raises_on_is_a_dead_letter_and_the_others_are_scored(poisoned: set[int]) -> None:
    other = Figures("other", lambda _: [Score("one", 1.0)])
    words = Figures("words", length)
    records = [record(number, response="poison, secret" if number in poisoned else "fine") for number in range(10)]
    outcomes = batch(words, other).score(records)
    for number, outcome in enumerate(outcomes):
        scorers = [orjson.loads(score)["scorer"] for score in outcome.scores]
        if number in poisoned:
            assert (outcome.kind, scorers) == (ScoreKind.DEAD, ["other"])
            letter = orjson.loads(outcome.letters[0])
            assert (letter["reason"], letter["detail"]) == ("scorer_failed", "scorer words raised RuntimeError")
            assert (letter["topic"], letter["partition"], letter["offset"]) == ("requests", number % 2, number)
            assert letter["event_time_ms"] == 1_764_500_000_000 + number
        else:
            assert (outcome.kind, scorers, outcome.letters) == (ScoreKind.SCORED, ["words", "other"], [])
    assert other.calls == 1
    if len(poisoned) == 1:
        assert words.calls <= 1 + 2 * 4  # halved: not one call a request


def test_one_letter_says_all_scorers_that_failed() -> None:
    (outcome,) = batch(Figures("a", length), Figures("b", length)).score([record(1, response="poison")])
    (letter,) = outcome.letters
    assert orjson.loads(letter)["detail"] == "scorer a raised RuntimeError; scorer b raised RuntimeError"


def test_a_scorer_that_answers_for_too_few_is_at_fault() -> None:
    class Short(Figures):
        def score(self, batch: Sequence[Request]) -> list[list[Score]]:
            return super().score(batch)[1:]

    outcomes = batch(Short("short", length)).score([record(1), record(2)])
    assert [outcome.kind for outcome in outcomes] == [ScoreKind.DEAD] * 2


def test_evidence_that_is_no_json_is_the_scorers_fault() -> None:
    odd = Figures("odd", lambda _: [Score("fine", 1.0), Score("odd", 1.0, evidence={"x": object()})])  # type: ignore[dict-item]
    (outcome,) = batch(odd).score([record(1)])
    assert (outcome.kind, outcome.scores) == (ScoreKind.DEAD, [])
    assert orjson.loads(outcome.letters[0])["detail"].startswith("scorer odd raised ")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no_value"),
        (b"", "no_value"),
        (b"\xff\xfe garbage", "malformed_json"),
        (b'{"trace_id": "a', "malformed_json"),
        (b'{"x": ' + b"[" * 100_000, "malformed_json"),
        (b'{"prompt": "\xff"}', "malformed_json"),
        (b"[]", "bad_value"),
        (b"{}", "bad_value"),
        (record(1, prompt=7).value, "bad_value"),
        (record(1, model={"secret": 1}).value, "bad_value"),
        (record(1, event_time_ms=0).value, "bad_time"),
        (record(1, event_time_ms="soon").value, "bad_value"),
        (record(2).value, "bad_id"),
    ],
)
def test_what_is_no_request_is_a_dead_letter(value: bytes | None, reason: str) -> None:
    poisoned = SampledRecord(value, f"{1:032x}", 1, 0, 7, 1)
    first, second = batch(Figures("words", length)).score([poisoned, record(3)])
    assert (first.kind, second.kind) == (ScoreKind.DEAD, ScoreKind.SCORED)
    letter = orjson.loads(first.letters[0])
    assert letter["reason"] == reason
    assert "secret" not in letter["detail"]


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_no_bytes_raise(value: bytes) -> None:
    (outcome,) = batch(Figures("words", length)).score([SampledRecord(value, "0" * 32, 1, 0, 0, 0)])
    assert outcome.kind == ScoreKind.DEAD
    assert len(outcome.letters) == 1


def test_a_request_without_text_is_counted_and_not_scored() -> None:
    words = Figures("words", length)
    outcomes = batch(words).score([record(1, prompt=None, response=None), record(2, response=None), record(3)])
    assert [outcome.kind for outcome in outcomes] == [ScoreKind.NO_TEXT, ScoreKind.SCORED, ScoreKind.SCORED]
    assert outcomes[0].scores == []
    assert outcomes[1].scores


def test_a_text_that_ingest_cut_is_truncated_whatever_the_scorer_says() -> None:
    outcomes = batch(Figures("words", length)).score([record(1, is_text_cut=True), record(2, is_text_cut=False)])
    cut, whole = (decode_score(outcome.scores[0]) for outcome in outcomes)
    assert (cut.truncated, cut.evidence) == (True, {"text_cut_by_ingest": True})
    assert (whole.truncated, whole.evidence) == (False, {})


def test_each_scorer_samples_by_its_own_rule() -> None:
    often, seldom = SampleRule(0.5, 0), SampleRule(0.01, 3)
    scorers = [ScorerInJob(Figures("often", length), often), ScorerInJob(Figures("seldom", length), seldom)]
    records = [record(number, place=number) for number in range(1, 1001)]
    outcomes = ScoreBatch(scorers, "requests", DIGEST).score(records)
    found = {(s.trace_id, s.scorer): s for o in outcomes for s in map(decode_score, o.scores)}
    for each in records:
        for scorer, rule in (("often", often), ("seldom", seldom)):
            chosen = rule.includes(hash_fraction(each.trace_id), each.place)
            assert ((each.trace_id, scorer) in found) == chosen
            if chosen:
                assert found[each.trace_id, scorer].sampling_rate == rule.rate_at(each.place)
    counts = Counter(scorer for _, scorer in found)
    assert counts["often"] == pytest.approx(500, abs=70)
    assert 10 < counts["seldom"] < 60
    kinds = Counter(outcome.kind for outcome in outcomes)
    assert kinds[ScoreKind.SCORED] == len({trace for trace, _ in found})
    assert kinds[ScoreKind.UNSAMPLED] == 1000 - kinds[ScoreKind.SCORED]


def test_a_low_score_asks_for_a_review() -> None:
    review = ReviewRule("length", 2.0)
    outcomes = batch(Figures("words", length), review=review).score([record(1), record(5)])
    assert outcomes[1].decisions == []
    (payload,) = outcomes[0].decisions
    decision = orjson.loads(payload)
    assert (decision["action"], decision["subject"], decision["subject_type"]) == ("review", f"{1:032x}", "request")
    assert decision["reason"] == "length 0.85714 is below 2"
    assert (decision["inputs"]["value"], decision["inputs"]["below"]) == (0.85714, 2.0)
    assert decision["cause_id"] == decode_score(outcomes[0].scores[0]).score_id
    assert decision["config_digest"] == DIGEST


def test_a_score_without_a_figure_asks_for_nothing() -> None:
    blind = Figures("words", lambda _: [unscored("length", Status.NO_DATA, "nothing there")])
    (outcome,) = batch(blind, review=ReviewRule("length", 2.0)).score([record(1)])
    assert outcome.decisions == []
    assert decode_score(outcome.scores[0]).status == "no_data"


def test_a_score_of_a_judge_carries_its_report() -> None:
    (outcome,) = batch(Figures("judge", length, REPORT)).score([record(1)])
    assert decode_score(outcome.scores[0]).judge == REPORT


def test_the_same_batch_in_other_company_gives_the_same_bytes() -> None:
    records = [record(number, response="poison" if number == 4 else "fine") for number in range(8)]
    together = batch(Figures("words", length)).score(records)
    alone = [batch(Figures("words", length)).score([each])[0] for each in records]
    assert together == alone


def test_nothing_to_score_calls_nothing() -> None:
    words = Figures("words", length)
    assert scores_or_error(words, []) == []
    assert batch(words).score([]) == []
    assert words.calls == 0
