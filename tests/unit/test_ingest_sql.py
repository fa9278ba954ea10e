"""The ingest job's command line, its SQL as committed, and the plan that Flink makes of it.

After a change on purpose: python -m tests.unit.test_ingest_sql writes the statements anew; read the difference.
"""

from pathlib import Path

import pytest

from infra.paths import jars
from jobs.flink_environment import open_environment
from jobs.ingest import build, statements, validate
from jobs.kafka_client import ConfigurationError

GOLDEN = Path(__file__).parent.parent / "golden" / "ingest" / "statements.sql"
ARGUMENTS = ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-"]


def found() -> str:
    return ";\n\n".join(statements(*validate(ARGUMENTS))) + ";\n"


def test_statements_as_committed() -> None:
    assert found() == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--encoding", "avro"], "--encoding: 'avro' is none of ours"),
        (["--allowed-lateness-seconds", "0"], "--allowed-lateness-seconds: is not positive"),
        (["--deduplicate-seconds", "599"], "--deduplicate-seconds: is below --allowed-lateness-seconds"),
        (["--max-skew-seconds", "-1"], "--max-skew-seconds: is not positive"),
        (["--join-seconds", "-1"], "--join-seconds: is negative"),
    ],
)
def test_what_makes_no_sense_starts_nothing(options: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        validate([*ARGUMENTS, *options])


def test_no_join_is_no_mistake() -> None:
    assert validate([*ARGUMENTS, "--join-seconds", "0"])[0].join_seconds == 0


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
