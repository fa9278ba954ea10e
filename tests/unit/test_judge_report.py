"""A judge's validation report: what can't be one is refused, and what it takes to count is spec S1's."""

import math
from pathlib import Path

import orjson
import pytest

from schemas.judge_report import JudgeReport, judge_status, load_judge_report
from schemas.status import Status

DIGEST = "sha256:" + "ab" * 32
GOOD = {"f1": 0.92, "n": 300, "date": "2026-11-30", "digest": DIGEST, "model_digest": DIGEST}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"f1": 1.2}, "f1"),
        ({"f1": math.nan}, "f1"),
        ({"f1": True}, "f1"),
        ({"f1": "0.9"}, "f1"),
        ({"n": 0}, "n"),
        ({"n": 2.5}, "n"),
        ({"date": "yesterday"}, "date"),
        ({"date": 20261130}, "date"),
        ({"digest": "ab"}, "digest"),
        ({"digest": None}, "digest"),
        ({"model_digest": "sha256:" + "G" * 64}, "model_digest"),
    ],
)
def test_what_is_no_report_is_refused(change: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be"):
        JudgeReport(**{**GOOD, **change})  # type: ignore[arg-type]


def test_who_qualifies() -> None:
    """Spec S1: an F1 of at least 0.92; and it must have been taken with this model."""
    report = JudgeReport(**GOOD)  # type: ignore[arg-type]
    assert judge_status(report, DIGEST) is Status.OK
    assert judge_status(report, "sha256:" + "0" * 64) is Status.JUDGE_UNQUALIFIED
    assert judge_status(None) is Status.JUDGE_UNQUALIFIED
    low = JudgeReport(**{**GOOD, "f1": 0.9199})  # type: ignore[arg-type]
    assert judge_status(low, DIGEST) is Status.JUDGE_UNQUALIFIED


def test_a_file_of_a_report(tmp_path: Path) -> None:
    file = tmp_path / "judge.json"
    file.write_bytes(orjson.dumps(GOOD))
    assert load_judge_report(file).to_dict() == GOOD
    for body, message in (
        ({"f1": 1}, "date is missing"),
        ({**GOOD, "F1": 1}, "F1 is no field"),
        ([], "one JSON object"),
    ):
        file.write_bytes(orjson.dumps(body))
        with pytest.raises(ValueError, match=message):
            load_judge_report(file)
