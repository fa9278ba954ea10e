"""The ingest job's command line, its SQL as committed, and the plan that Flink makes of it.

After a change on purpose: python -m tests.unit.test_ingest_sql writes the statements anew; read the difference.
"""

import os
import pickle
from pathlib import Path

import pytest

from infra.paths import jars
from jobs.flink_environment import open_environment
from jobs.ingest import build, ingest_privacy, statements, validate
from jobs.kafka_client import ConfigurationError
from jobs.mask_key import VARIABLE

GOLDEN = Path(__file__).parent.parent / "golden" / "ingest" / "statements.sql"
MASKED = ("verdicts", "ledger_lines", "masked_minutes", "INSERT")  # the statements of masking
ARGUMENTS = ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-"]


def found() -> str:
    return ";\n\n".join(statements(*validate(ARGUMENTS))) + ";\n"


def test_statements_as_committed() -> None:
    assert found() == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--encoding", "avro"], "--encoding: `avro` is not one of: auto, otlp_proto, otlp_json"),
        (["--allowed-lateness-seconds", "0"], "--allowed-lateness-seconds: is not positive"),
        (["--deduplicate-seconds", "599"], "--deduplicate-seconds: is below --allowed-lateness-seconds"),
        (["--max-skew-seconds", "-1"], "--max-skew-seconds: is not positive"),
        (["--join-seconds", "-1"], "--join-seconds: is negative"),
        (["--text", "raw"], "--text: `raw` is not one of: none, masked"),
        (["--text", "masked", "--text-max-characters", "0"], "--text-max-characters: is out of range"),
        (["--masking-verdict-seconds", "0"], "--masking-verdict-seconds: is not positive"),
        (["--name-model", "names:load"], "--name-model: is given, but no text is carried"),
    ],
)
def test_what_makes_no_sense_starts_nothing(options: list[str], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "a key for tests only")
    with pytest.raises(ConfigurationError, match=problem):
        validate([*ARGUMENTS, *options])


def test_no_join_is_no_mistake() -> None:
    assert validate([*ARGUMENTS, "--join-seconds", "0"])[0].join_seconds == 0


def test_masking_is_judged_only_where_text_is_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "a key for tests only")
    arguments, settings = validate([*ARGUMENTS, "--text", "masked"])
    with_text = statements(arguments, settings)
    assert with_text[: -len(MASKED)] == statements(*validate(ARGUMENTS))
    assert ";\n\n".join(with_text[-len(MASKED) :]) + ";\n" == GOLDEN.with_name("masking.sql").read_text()


@pytest.mark.parametrize(("secret", "problem"), [("", "is not set"), ("hunter2", "fewer than 16 characters")])
def test_text_is_carried_under_a_key_only_and_the_key_is_never_shown(
    secret: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, secret)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        validate([*ARGUMENTS, "--text", "masked"])
    assert caught.value.field == "SLACKTIDE_MASK_KEY"
    assert "hunter2" not in str(caught.value)
    monkeypatch.setenv(VARIABLE, "a key for tests only")
    privacy = ingest_privacy(validate([*ARGUMENTS, "--text", "masked"])[0])
    assert "key" not in repr(privacy)
    assert b"a key for tests only" not in pickle.dumps(privacy)


@pytest.mark.engine
def test_the_plan_with_text_has_one_sink_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "a key for tests only")
    arguments, settings = validate([*ARGUMENTS, "--text", "masked"])
    _, table_env = open_environment(settings, "ingest", {"pipeline.jars": ";".join(j.as_uri() for j in jars("flink"))})
    plan = build(table_env, arguments, settings).explain().split("== Optimized Execution Plan ==")[1]
    assert plan.count("Sink(") == 4
    assert plan.count("TableSourceScan(table=[[default_catalog, default_database, judged") == 1


@pytest.mark.engine
def test_one_source_and_one_copy_of_everything_shared() -> None:
    """The planner could keep decode, de-duplication or the join once a sink, and lose the watermark on the way."""
    arguments, settings = validate(ARGUMENTS)
    _, table_env = open_environment(settings, "ingest", {"pipeline.jars": ";".join(j.as_uri() for j in jars("flink"))})
    plan = build(table_env, arguments, settings).explain().split("== Optimized Execution Plan ==")[1]
    for stream in ("judged", "numbered", "joined"):
        assert plan.count(f"TableSourceScan(table=[[default_catalog, default_database, {stream}") == 1, stream
    assert plan.count("watermark=[SOURCE_WATERMARK()]") == 2
    assert plan.count("OverAggregate(") == 0
    assert plan.count("Sink(") == 3


if __name__ == "__main__":
    GOLDEN.write_text(found())
    os.environ[VARIABLE] = "a key for tests only"
    made = statements(*validate([*ARGUMENTS, "--text", "masked"]))[-len(MASKED) :]
    GOLDEN.with_name("masking.sql").write_text(";\n\n".join(made) + ";\n")
