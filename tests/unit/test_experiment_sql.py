"""The experiment job's SQL as committed, the plan that Flink makes of it, and its functions without an engine."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from infra.paths import CONF, jars
from jobs.experiment import build, front_statements, slicer_of, statements, validate
from jobs.flink_environment import open_environment
from jobs.kafka_client import ConfigurationError
from jobs.request_slices import OPTIONS
from udfs.experiments.arm_sketch import ALL_USERS, ArmSketch
from udfs.experiments.flink_windows import USERS, GatherWindows, SketchArm, window_of
from udfs.experiments.window import ArmCount
from udfs.slicing.packets import pack

GOLDEN = Path(__file__).parent.parent / "golden" / "experiments"
ARGUMENTS = ["--bootstrap-servers", "kafka.example:9092", "--topic-prefix", "eu-"]
ARGUMENTS += ["--experiments", str(CONF / "experiments.yaml")]


def test_statements_as_committed() -> None:
    _, settings, experiments = validate(ARGUMENTS)
    found = ";\n\n".join(statements(settings, experiments)) + ";\n"
    assert found == (GOLDEN / "statements.sql").read_text()


def test_the_front_is_that_of_the_job() -> None:
    _, settings, experiments = validate(ARGUMENTS)
    (source, *_) = front_statements(settings, experiments)
    assert "'properties.group.id' = 'slacktide-experiment'" in source
    assert "'topic' = 'eu-requests'" in source
    assert "INTERVAL '0 00:00:10.000'" in source
    assert "'scan.bounded.mode' = 'latest-offset'" in front_statements(settings, experiments, until_now=True)[0]


def test_requests_are_cut_by_experiment_epoch_and_arm() -> None:
    _, settings, experiments = validate(ARGUMENTS)
    slicer = slicer_of(settings, experiments)
    assert (slicer.job, slicer.topic) == ("experiment", "eu-requests")
    (plan,) = slicer.plans
    assert (plan.group_by, plan.slide_ms) == (("experiment", "assignment_epoch", "arm"), 30_000)
    assert plan.inputs == USERS


def test_a_wrong_file_is_refused_before_submission(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("experiments: []")
    with pytest.raises(ConfigurationError, match="Add at least one experiment"):
        validate([*ARGUMENTS[:-1], str(tmp_path / "none.yaml")])


def sketched(series: str, *packets: list[str | None]) -> bytes:
    slices = pd.Series([np.array([pack(USERS, [users]) for users in packets], dtype=object)])
    (sketch,) = SketchArm(3).eval(pd.Series([series]), slices)
    return sketch


def test_a_slice_is_sketched_from_its_packets() -> None:
    sketch = ArmSketch.from_bytes(sketched('["e","2","a"]', ["u1", None, "u2"], ["u1"]))
    assert (sketch.experiment, sketch.epoch, sketch.arm) == ("e", "2", "a")
    assert (sketch.n, sketch.n_without_user, sketch.users.size, sketch.below) == (4, 1, 2, ALL_USERS)
    many = ArmSketch.from_bytes(sketched('["e","","a"]', [f"u{number}" for number in range(9)]))
    assert (many.n, many.users.size, many.below < ALL_USERS) == (9, 3, True)


def test_each_experiment_has_a_window_also_without_traffic() -> None:
    sketches = [
        sketched('["e","1","a"]', ["u1"]),
        sketched('["other","",""]', [None]),
        sketched('["e","1","b"]', [None]),
    ]
    ends = pd.Series([pd.Timestamp("2026-01-01T00:00:30")])
    (gathered,) = GatherWindows(["e", "f"]).eval(ends, pd.Series([np.array(sketches, dtype=object)]))
    (name, window), (other, empty) = (window_of(data) for data in gathered)
    assert (name, other, empty.n, window.end_ms, empty.end_ms) == ("e", "f", 0, 1_767_225_630_000, 1_767_225_630_000)
    assert window.counts == {("1", "a"): ArmCount(1, 0), ("1", "b"): ArmCount(1, 1)}


@pytest.mark.engine
def test_one_copy_of_everything_shared() -> None:
    """The planner could take the requests apart, or gather the windows, once for each sink."""
    _, settings, experiments = validate(ARGUMENTS)
    connectors = ";".join(jar.as_uri() for jar in jars("flink"))
    environment, table_env = open_environment(settings, "experiment", OPTIONS | {"pipeline.jars": connectors})
    build(table_env, settings, experiments).attach_as_datastream()
    nodes = [node["type"] for node in json.loads(environment.get_execution_plan())["nodes"]]
    kinds = Counter(re.sub(r"\[\d+\]", "", node) for node in nodes)
    assert (kinds["Source: requests"], kinds["OverAggregate"]) == (1, 1)
    assert kinds["PythonCalc"] == 3  # take, sketch, gather
    assert kinds["GlobalWindowAggregate"] == 2  # slices, windows
    assert kinds["traffic split"] == 1
    assert [kinds[f"{sink}: Writer"] for sink in ("verdicts", "dead_letters", "books")] == [1, 1, 1]
