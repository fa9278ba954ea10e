"""Factuality in the job, from the scorers file to the decision, with a tiny cross-encoder trained in the tests."""

from typing import Any

import orjson
import pandas as pd
import pytest
import yaml

from gpu_scorers.model_files import files_digest
from jobs.score_function import ScoreRequests
from jobs.scorers import load_scorers
from schemas.judge_report import JudgeReport
from schemas.scores import decode_score
from tests.tiny_models import nli_folder

DATA_DIGEST = "sha256:" + "ab" * 32


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """What a worker answers to a request that is true and to one that is false."""
    folder = tmp_path_factory.mktemp("factuality")
    digest, _ = files_digest(nli_folder())
    report = {"f1": 0.95, "n": 400, "date": "2026-11-30", "digest": DATA_DIGEST, "model_digest": digest}
    (folder / "report.json").write_bytes(orjson.dumps(report))
    scorer = {
        "name": "factuality",
        "kind": "factuality",
        "model": {"path": str(nli_folder()), "digest": digest},
        "judge": "report.json",
        "sampling": {"rate": 1.0},
        "review": {"score": "factuality", "below": 0.5},
    }
    file = folder / "scorers.yaml"
    file.write_text(yaml.safe_dump({"device": "cpu", "scorers": [scorer]}))
    function = ScoreRequests(load_scorers(str(file)), "requests")
    function.open(None)
    return function.eval(*columns(["it is true", "it is false"]))


def columns(responses: list[str]) -> list["pd.Series[Any]"]:
    ids = [f"{number:032x}" for number in range(len(responses))]
    common = {"span_id": "0" * 16, "event_time_ms": 1_764_500_000_000, "model": "m", "prompt": "the sky is blue"}
    values = [orjson.dumps({"trace_id": i, "response": r} | common) for i, r in zip(ids, responses, strict=True)]
    ones = [1] * len(ids)
    return [pd.Series(values, dtype=object), pd.Series(ids, dtype=object), *(pd.Series(ones) for _ in range(4))]


def test_a_false_response_asks_for_a_review_and_a_true_one_does_not(rows: pd.DataFrame) -> None:
    assert [len(decisions) for decisions in rows.decisions] == [0, 1]
    decision = orjson.loads(rows.decisions[1][0])
    assert (decision["action"], decision["subject"], decision["rule"]) == (
        "review",
        f"{1:032x}",
        "low_score(factuality)",
    )
    assert decision["inputs"]["value"] < decision["inputs"]["below"] == 0.5
    assert "blue" not in rows.decisions[1][0].decode()


def test_a_judges_scores_carry_its_report_and_its_model(rows: pd.DataFrame) -> None:
    true, false = (decode_score(next(iter(scores))) for scores in rows.scores)
    assert (true.label, false.label) == ("consistent", "inconsistent")
    assert true.value is not None
    assert true.value > 0.85
    digest, _ = files_digest(nli_folder())
    assert true.judge == false.judge == JudgeReport(0.95, 400, "2026-11-30", DATA_DIGEST, digest)
    assert true.model_digest == digest
