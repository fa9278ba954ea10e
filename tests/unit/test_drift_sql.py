"""The drift job's SQL as committed, and the plan that Flink makes of it."""

from pathlib import Path

import pytest

from infra.paths import jars
from jobs.drift import OPTIONS, build, validate
from jobs.drift_sql import drift_statements
from jobs.flink_environment import open_environment
from tests.drift_files import monitor, write_files

GOLDEN = Path(__file__).parent.parent / "golden" / "drift"
MONITORS = [
    monitor(name="chat"),
    monitor(
        name="it's all; {one}",
        group_by=[],
        features=["time_to_first_token_seconds", "attributes.temperature"],
        window_seconds=86_400,
        slide_seconds=1.5,
        slice_shards=8,
    ),
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    file = write_files(tmp_path, MONITORS, watermark_bound_seconds=2.5, idle_timeout_seconds=60)
    return ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-", "--monitors", str(file)]


def test_statements_as_committed(arguments: list[str]) -> None:
    _, settings, monitors = validate(arguments)
    found = ";\n\n".join(drift_statements(settings, monitors)) + ";\n"
    assert found == (GOLDEN / "statements.sql").read_text()


def test_until_now_bounds_the_source_alone(arguments: list[str]) -> None:
    _, settings, monitors = validate(arguments)
    endless, bounded = drift_statements(settings, monitors), drift_statements(settings, monitors, until_now=True)
    changed = [statement for statement in bounded if statement not in endless]
    assert len(changed) == 1
    assert "'scan.bounded.mode' = 'latest-offset'" in changed[0]


@pytest.mark.engine
def test_one_source_and_one_copy_of_everything_shared(arguments: list[str]) -> None:
    """The planner could read the topic once a sink, or ask for the watermark where it is that of one source task."""
    _, settings, monitors = validate(arguments)
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    _, table_env = open_environment(settings, "drift", OPTIONS | {"pipeline.jars": connectors})
    plan = build(table_env, settings, monitors).explain().split("== Optimized Execution Plan ==")[1]
    for shared in ("TableSourceScan(", "OverAggregate(", "fetch_lost(", "sketch_0_0(", "judge_0(", "judge_1("):
        assert plan.count(shared) == 1, shared
    assert "CURRENT_WATERMARK" in plan
    below_arrival = plan.split("OverAggregate(")[1].split("\n\n")[0]
    assert "CURRENT_WATERMARK" not in below_arrival
    assert plan.count("Sink(") == 3
