"""The metrics job's command line, its SQL as committed, and the plan that Flink makes of it.

After a change on purpose: python -m tests.unit.test_ingest_metrics_sql writes the statements anew; read the difference.
"""

import json
from pathlib import Path

import pytest

from infra.paths import jars
from jobs.flink_environment import open_environment
from jobs.ingest_metrics import build, policy_of, statements, validate
from jobs.kafka_client import ConfigurationError
from udfs.telemetry.flink_metrics import JOB
from udfs.telemetry.metric_family import FamilyPolicy

GOLDEN = Path(__file__).parent.parent / "golden" / "measurements" / "statements.sql"
ARGUMENTS = ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-"]


def found() -> str:
    return ";\n\n".join(statements(validate(ARGUMENTS)[1])) + ";\n"


def test_statements_as_committed() -> None:
    assert found() == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--encoding", "avro"], "--encoding: `avro` is not one of: auto, otlp_proto, otlp_json"),
        (["--allowed-lateness-seconds", "0"], "--allowed-lateness-seconds: is not positive"),
        (["--max-skew-seconds", "nan"], "--max-skew-seconds: is not positive"),
        (["--series-per-metric", "0"], "--series-per-metric: is not positive"),
        (["--forget-series-hours", "inf"], "--forget-series-hours: is not positive"),
        (["--forget-series-hours", "0.1"], "--forget-series-hours: is below --allowed-lateness-seconds"),
        (["--young-seconds", "-1"], "--young-seconds: is negative"),
    ],
)
def test_what_makes_no_sense_starts_nothing(options: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        validate([*ARGUMENTS, *options])


def test_the_command_line_is_the_policy() -> None:
    assert policy_of(validate(ARGUMENTS)[0]) == FamilyPolicy()
    options = ["--young-seconds", "0", "--series-per-metric", "7", "--forget-series-hours", "2"]
    policy = policy_of(validate([*ARGUMENTS, *options])[0])
    assert (policy.series.young_seconds, policy.most_series, policy.forget_seconds) == (0, 7, 7200)


@pytest.mark.engine
def test_one_source_one_decode_and_three_sinks() -> None:
    """The planner could keep the decode, or the series with their state, once a sink."""
    arguments, settings = validate(ARGUMENTS)
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    environment, table_env = open_environment(settings, JOB, {"pipeline.jars": connectors})
    build(table_env, arguments, settings).attach_as_datastream()
    types = [node["type"] for node in json.loads(environment.get_execution_plan())["nodes"]]
    counts = {
        word: sum(word in kind for kind in types) for word in ("Source: ", "PythonCalc", "metric series", "Committer")
    }
    assert counts == {"Source: ": 1, "PythonCalc": 1, "metric series": 1, "Committer": 3}


if __name__ == "__main__":
    GOLDEN.write_text(found())
