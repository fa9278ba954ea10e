"""A score and a decision as they stand on their topics: the contract, the golden payloads, and what is refused."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from schemas.decisions import Action, Decision
from schemas.judge_report import JudgeReport
from schemas.requests import request_fields
from schemas.scores import REQUEST_LABELS, RequestScore, UnreadableScoreError, decode_score

GOLDEN = Path(__file__).parent.parent / "golden" / "scores"
SCORES, DECISIONS = (
    Draft202012Validator(orjson.loads(files("schemas").joinpath(f"{name}.schema.json").read_bytes()))
    for name in ("scores", "decisions")
)
DIGEST = "sha256:" + "ab" * 32
REPORT = JudgeReport(0.94, 512, "2026-11-30", "sha256:" + "cd" * 32, DIGEST)


def score(**changes: Any) -> RequestScore:
    facts: dict[str, Any] = {
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
        "event_time_ms": 1_764_500_000_123,
        "labels": {"service_name": "chat", "model": "m-1", "tenant": "acme"},
        "scorer": "factuality",
        "scorer_version": "1",
        "model_digest": DIGEST,
        "score": "factuality",
        "value": 0.123456789,
        "status": "ok",
        "sampling_rate": 0.01,
        "label": "inconsistent",
        "truncated": True,
        "judge": REPORT,
        "evidence": {"truncated_tokens": 40},
    }
    return RequestScore(**(facts | changes))


def decision(**changes: Any) -> Decision:
    facts: dict[str, Any] = {
        "action": Action.REVIEW,
        "subject": score().trace_id,
        "subject_type": "request",
        "rule": "low_score(factuality)",
        "reason": "factuality 0.12346 is below 0.5",
        "cause_id": score().score_id,
        "event_time_ms": score().event_time_ms,
        "labels": {"service_name": "chat", "model": "m-1"},
        "inputs": {"value": 0.12346, "below": 0.5, "scorer": "factuality"},
        "config_digest": DIGEST,
    }
    return Decision(**(facts | changes))


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("score", score().to_json()),
        ("score_without_value", score(value=None, status="no_data", label=None, judge=None).to_json()),
        ("decision", decision().to_json()),
    ],
)
def test_payloads_as_committed(name: str, payload: bytes) -> None:
    assert payload + b"\n" == (GOLDEN / f"{name}.json").read_bytes()
    contract = DECISIONS if name == "decision" else SCORES
    assert list(contract.iter_errors(orjson.loads(payload))) == []


def test_labels_are_fields_of_a_request() -> None:
    assert [field.name for field in request_fields(REQUEST_LABELS)] == list(REQUEST_LABELS)


def test_the_same_score_has_the_same_id_whatever_its_figure() -> None:
    assert score().score_id == score(value=0.9, sampling_rate=1.0, labels={}).score_id
    others = [score(scorer_version="2"), score(model_digest=None), score(span_id="0" * 16), score(score="other")]
    assert len({each.score_id for each in [score(), *others]}) == 5


def test_a_decision_is_of_its_rule_and_cause() -> None:
    assert decision().decision_id == decision(reason="other words", inputs={}).decision_id
    others = [decision(cause_id="0" * 32), decision(rule="r"), decision(config_digest="sha256:" + "0" * 64)]
    assert len({each.decision_id for each in [decision(), *others]}) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"value": float("nan")},
        {"value": float("inf")},
        {"value": None},
        {"status": "no_data"},
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.5},
    ],
)
def test_no_score_contradicts_itself(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="factuality: "):
        score(**changes)


def test_no_decision_has_a_figure_that_is_none() -> None:
    with pytest.raises(ValueError, match=r"inputs\.value must be finite"):
        decision(inputs={"value": float("nan")})


def test_what_is_written_is_read_back() -> None:
    for each in (score(value=0.25), score(value=None, status="invalid", label=None, judge=None, model_digest=None)):
        assert decode_score(each.to_json()) == each


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schema_version": 2}, "schema_version is not 1"),
        ({"trace_id": 7}, "trace_id is not a text"),
        ({"event_time_ms": True}, "event_time_ms is not a whole number"),
        ({"event_time_ms": 1.5}, "event_time_ms is not a whole number"),
        ({"value": "0.5"}, "value is not a number or null"),
        ({"value": None}, "a value stands exactly where status is ok"),
        ({"status": "fine"}, "status is not one of ok, no_data"),
        ({"sampling_rate": 0}, "sampling_rate must be above 0"),
        ({"truncated": None}, "truncated is not true or false"),
        ({"model": 5}, "model is not a text"),
        ({"judge": {"f1": 2}}, "judge is not a validation report"),
        ({"judge": {"f1": 2, "n": 1, "date": "2026-11-30", "digest": DIGEST}}, "judge is not a validation report"),
        ({"evidence": []}, "evidence is not an object"),
    ],
)
def test_what_is_no_score_is_refused_with_its_field(changes: dict[str, Any], problem: str) -> None:
    body = orjson.loads(score().to_json()) | changes
    with pytest.raises(UnreadableScoreError, match=problem):
        decode_score(orjson.dumps(body))
    # The contract refuses it too. (JSON Schema takes no offence at a report's impossible day: format is a remark.)
    assert list(SCORES.iter_errors(body))


@pytest.mark.parametrize("payload", [None, b"", b"\xff", b"[]", b"{", b'{"value": NaN}', b'{"a": 1, "a": 2}'])
def test_bytes_that_are_no_score(payload: bytes | None) -> None:
    with pytest.raises(UnreadableScoreError):
        decode_score(payload)
