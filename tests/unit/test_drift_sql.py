"""The drift job's SQL as committed, and the plan that Flink makes of it."""

from pathlib import Path

import pytest

from infra.paths import jars
from jobs.drift import build, validate
from jobs.drift_sql import front_statements, sink_statements, view_statements
from jobs.flink_environment import open_environment
from jobs.request_slices import OPTIONS
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
    statements = front_statements(settings, monitors) + view_statements(monitors) + sink_statements(settings, monitors)
    found = ";\n\n".join(statements) + ";\n"
    assert found == (GOLDEN / "statements.sql").read_text()


def test_until_now_bounds_the_source_alone(arguments: list[str]) -> None:
    _, settings, monitors = validate(arguments)
    endless, bounded = front_statements(settings, monitors), front_statements(settings, monitors, until_now=True)
    changed = [statement for statement in bounded if statement not in endless]
    assert len(changed) == 1
    assert "'scan.bounded.mode' = 'latest-offset'" in changed[0]


@pytest.mark.engine
def test_one_source_and_one_copy_of_everything_shared(arguments: list[str]) -> None:
    """The planner could read the topic once a sink, or ask for the watermark where it is that of one source task."""
    _, settings, monitors = validate(arguments)
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    _, table_env = open_environment(settings, "drift", OPTIONS | {"pipeline.jars": connectors})
    plan = optimized(build(table_env, settings, monitors).explain())
    assert plan.count("TableSourceScan(") == 1
    # One of each for each slide, and each slide and window.
    assert (plan.count("sketch_slices("), plan.count("judge_windows(")) == (2, 2)
    assert plan.count("Sink(") == 3
    # Up to here it passes through a DataStream, which readers share.
    taken = optimized(table_env.from_path("taken_once").explain())
    for once in ("TableSourceScan(", "OverAggregate(", "take_requests("):
        assert taken.count(once) == 1, once
    assert "CURRENT_WATERMARK" in taken
    assert "CURRENT_WATERMARK" not in taken.split("OverAggregate(")[1]


def optimized(explained: str) -> str:
    return explained.split("== Optimized Execution Plan ==")[1]
