"""A monitors file edited while its job runs: which edits keep the state, and what is said of the others beforehand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infra import submit
from infra.cli import main
from infra.errors import StackError
from infra.flink_home import FlinkHome
from infra.kept_state import advice_on_running, note_plan, noted_plan, plan_of_savepoint
from infra.submit import JobRequest
from jobs.kafka_client import ConfigurationError
from jobs.monitor_judges import FINDINGS
from jobs.monitor_state import hindrances, layout_of, plan_of_state
from jobs.monitors import load_monitors
from tests.drift_files import monitor, write_files
from tests.judges import FRAME, LIVE_FRAME
from tests.unit.test_monitor_judges import ALL_TESTS
from udfs.judging.range import Range
from udfs.judging.two_streams import TwoStreams
from udfs.references.embedding_reference import build_embedding_reference
from udfs.references.profile import ReferenceProfile

JOB = "923a17" + "0" * 26
SAVEPOINT = "file:/x/run/flink/savepoints/savepoint-923a17-487716b47641"
FEATURES = ["input_tokens", "finish_reason"]
ALL: dict[str, Any] = {
    "features": FEATURES,
    "findings": ["null_rate", "range"],
    "tests": [
        {"test": "psi", "field": "input_tokens", "threshold": 0.25},
        {"test": "limit", "field": "output_tokens", "figure": "mean", "above": 3.0},
        {"test": "two_streams", "field": "queue_seconds", "split_by": "arm", "baseline": "control"},
    ],
    "signals": [{"signal": "baseline_drop", "feature": "mean(output_tokens)"}],
}


def file_of(folder: Path, *monitors: dict[str, Any], **job_wide: Any) -> Path:
    folder.mkdir(parents=True)
    return write_files(folder, [monitor(**fields) for fields in monitors], **job_wide)


def hindered(tmp_path: Path, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, str]:
    old, new = (
        plan_of_state(load_monitors(file_of(tmp_path / name, *monitors)))
        for name, monitors in (("old", before), ("new", after))
    )
    return dict(hindrances(old, new))


@pytest.mark.parametrize(
    "edit",
    [
        {},
        {"alpha": 0.001, "min_effect": 0.2, "min_samples": 7, "method": "auto", "category_test": "g_test"},
        {"slice_shards": 3, "max_series": 5},
        {"findings": ["range"]},  # nulls are told from the main test's sketch
        {"signals": [{"signal": "baseline_drop", "feature": "mean(output_tokens)", "learn_windows": 9}]},
        {"tests": [ALL["tests"][0] | {"threshold": 0.1}, ALL["tests"][1] | {"above": 4.0}, ALL["tests"][2]]},
    ],
)
def test_limits_may_change_and_the_state_is_kept(tmp_path: Path, edit: dict[str, Any]) -> None:
    assert hindered(tmp_path, [ALL], [ALL | edit]) == {}


@pytest.mark.parametrize(
    ("edit", "field", "problem"),
    [
        ({"window_seconds": 120}, "chat.window_seconds", "is 120, was 60"),
        ({"slide_seconds": 30}, "chat.slide_seconds", "is 30, was 20"),
        ({"group_by": ["model"]}, "chat.group_by", "service_name is gone"),
        ({"group_by": ["model", "service_name"]}, "chat.group_by", "the order is another"),
        ({"features": [*FEATURES, "queue_seconds"]}, "chat.features, tests, findings", "queue_seconds) is new"),
        ({"features": FEATURES[:1]}, "chat.features, tests, findings", "(finish_reason) is gone"),
        ({"features": FEATURES[::-1]}, "chat.features, tests, findings", "the order is another"),
        ({"findings": []}, "chat.features, tests, findings", "ReferenceKs(input_tokens) is new"),
        ({"findings": ["range", "transform_mismatch"]}, "chat.features, tests, findings", "is new"),
        ({"tests": ALL["tests"][1:]}, "chat.features, tests, findings", "ReferenceDivergence(input_tokens) is gone"),
        ({"signals": []}, "signals", "the last of signals was taken out"),
        ({"name": "talk"}, "monitors", "talk is new; chat is gone"),
        ({"slices": ["model"], "group_by": []}, "monitors", "chat/model is new"),
    ],
)
def test_what_the_state_is_made_of_may_not(tmp_path: Path, edit: dict[str, Any], field: str, problem: str) -> None:
    found = hindered(tmp_path, [ALL], [ALL | edit])
    assert problem in found[field]


def test_another_baseline(tmp_path: Path) -> None:
    """Where there are more labels than are kept apart it was pooled with the others before."""
    tests = [ALL["tests"][2], ALL["tests"][2] | {"baseline": "other"}]
    found = hindered(tmp_path, *([monitor(tests=[test])] for test in tests))["chat.features, tests, findings"]
    assert "TwoStreams(queue_seconds, arm against other) is new" in found


def test_what_sketches_the_same_values_otherwise_is_another_layout() -> None:
    """As a budget makes of `two_streams`, which keeps only as many labels apart as it was divided among."""
    layouts = {layout_of(TwoStreams(LIVE_FRAME, "f", "arm", max_labels=most)) for most in (3, 16)}
    layouts |= {layout_of(Range(FRAME, "f", 0.0, maximum, 100, 0.01, 10)) for maximum in (1.0, 1000.0)}
    assert len(layouts) == 4
    assert layout_of(Range(FRAME, "f", 0.0, 1.0, 100, 0.05, 99)) in layouts


def test_a_monitor_more_or_less_or_in_another_place(tmp_path: Path) -> None:
    two = [ALL, ALL | {"name": "second"}]
    assert hindered(tmp_path / "1", two, two[:1]) == {"monitors": "second is gone"}
    assert hindered(tmp_path / "2", two[:1], two) == {"monitors": "second is new"}
    found = hindered(tmp_path / "3", two, two[::-1])["monitors"]
    assert found == "the order is another: second, chat; it was chat, second"


def test_windows_by_count_of_another_count(tmp_path: Path) -> None:
    by_count = {"window_seconds": None, "window_requests": 100, "features": ["input_tokens"]}
    found = hindered(tmp_path, [by_count], [by_count | {"window_requests": 200}])
    assert list(found) == ["chat.window_requests, same_hour"]


def test_another_reference(tmp_path: Path) -> None:
    file = file_of(tmp_path / "m", {"features": ["input_tokens"]})
    before = plan_of_state(load_monitors(file))
    other = ReferenceProfile.build("chat", {"input_tokens": [1.0, 2.0]}, source="a test", created_at_ms=0)
    path = other.save(file.parent / "references")
    lines = [
        line if "reference:" not in line else f"{line.partition('reference:')[0]}reference: references/{path.name}"
        for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join(lines))
    ((field, problem),) = hindrances(before, plan_of_state(load_monitors(file)))
    assert field == "chat.reference"
    assert "ReferenceKs(input_tokens)" in problem


def test_every_kind_of_judge_says_what_its_state_is_made_of(tmp_path: Path) -> None:
    vectors = np.array([[1.0, float(number % 3)] for number in range(300)])
    every = {
        "features": ["input_tokens", "attributes.temperature", "finish_reason", "is_error"],
        "findings": list(FINDINGS),
        "tests": [*ALL_TESTS, {"test": "embedding", "field": "prompt_embedding", "reference": ""}],
    }
    plans = []
    for name, vector in (("one", vectors), ("same", vectors), ("other", vectors * [1.0, 2.0])):
        folder = tmp_path / name
        folder.mkdir()
        embedding = build_embedding_reference(vector, name="chat", source="a test").save(folder)
        every["tests"][-1]["reference"] = embedding.name
        plans.append(plan_of_state(load_monitors(write_files(folder, [monitor(**every)]))))
    assert hindrances(plans[0], plans[1]) == []
    ((field, problem),) = hindrances(plans[0], plans[2])
    assert (field, problem.endswith("for EmbeddingJudge(prompt_embedding)")) == ("chat.reference", True)


def test_the_watermarks_bound_may_change(tmp_path: Path) -> None:
    old, new = (
        plan_of_state(load_monitors(file_of(tmp_path / str(bound), {}, watermark_bound_seconds=bound)))
        for bound in (5, 50)
    )
    assert hindrances(old, new) == []


def test_the_state_of_another_version_is_not_taken_over(tmp_path: Path) -> None:
    plan = plan_of_state(load_monitors(file_of(tmp_path / "m", {})))
    ((field, problem),) = hindrances(plan | {"version": 0}, plan)
    assert (field, "another version" in problem) == ("(file)", True)


# What the user meets.


def request_of(file: Path) -> JobRequest:
    return JobRequest("drift", "kafka:9092", "flink:8081", args=("--monitors", str(file)))


def test_a_resume_with_an_edited_file_is_refused_before_anything_is_submitted(tmp_path: Path) -> None:
    home = FlinkHome(tmp_path / "home")
    old = request_of(file_of(tmp_path / "old", {}))
    plan = submit.state_plan(old)
    assert plan is not None
    note_plan(home, JOB, plan)
    assert submit.check_state(old, home, SAVEPOINT) == ""
    new = request_of(file_of(tmp_path / "new", {"window_seconds": 120, "group_by": ["model"]}))
    with pytest.raises(ConfigurationError) as caught:
        submit.check_state(new, home, SAVEPOINT)
    assert (caught.value.file, caught.value.field) == (new.args[1], "chat.window_seconds")
    assert "is 120, was 60; chat.group_by service_name is gone" in caught.value.problem
    assert SAVEPOINT in caught.value.problem
    assert "start fresh" in caught.value.remedy
    assert "up to 60 s of requests a series" in caught.value.remedy


def test_a_state_that_nothing_is_noted_of_is_taken_with_a_note(tmp_path: Path) -> None:
    request = request_of(file_of(tmp_path / "m", {}))
    assert "nothing is noted here" in submit.check_state(request, FlinkHome(tmp_path), SAVEPOINT)
    assert "nothing is noted here" in submit.check_state(request, FlinkHome(tmp_path), "s3://elsewhere/moved")


@pytest.mark.parametrize(
    "path", [SAVEPOINT, SAVEPOINT + "/", f"file:/x/checkpoints/{JOB}/chk-77", f"/x/checkpoints/{JOB}/chk-7/"]
)
def test_the_job_that_wrote_a_savepoint_is_told_by_its_path(tmp_path: Path, path: str) -> None:
    home = FlinkHome(tmp_path)
    note_plan(home, JOB, {"version": 1})
    assert plan_of_savepoint(home, path) == noted_plan(home, JOB) == {"version": 1}


def test_while_the_old_job_runs_the_way_on_is_told(tmp_path: Path) -> None:
    plans = [
        plan_of_state(load_monitors(file_of(tmp_path / str(window), {"window_seconds": window}))) for window in (60, 80)
    ]
    kept, lost = (advice_on_running(plans[0], after, "drift") for after in plans)
    with pytest.raises(StackError) as caught:
        submit.refuse_running(
            [{"name": "slacktide-drift", "jid": JOB}], "slacktide-drift", "flink:8081", lambda _: lost
        )
    assert "`slacktide down drift`, then submit without --resume" in caught.value.remedy
    assert "chat.window_seconds is 80, was 60" in caught.value.remedy
    assert kept == "then `slacktide submit drift ... --resume` goes on from its state"


def test_a_fresh_start_says_what_it_leaves_behind(tmp_path: Path) -> None:
    home, request = FlinkHome(tmp_path / "home"), request_of(file_of(tmp_path / "m", {}))
    assert submit.note_on_fresh_start(request, home) == ""
    plan = submit.state_plan(request)
    assert plan is not None
    note_plan(home, JOB, plan)
    (home.folder / "jobs").mkdir()
    (home.folder / "jobs" / request.name).write_text(f"{JOB}\n")
    assert submit.note_on_fresh_start(request, home) == ""  # nothing is kept of it
    savepoint = home.folder / "savepoints" / SAVEPOINT.rpartition("/")[2]
    savepoint.mkdir(parents=True)
    (savepoint / "_metadata").touch()
    said = submit.note_on_fresh_start(request, home)
    assert savepoint.as_uri() in said
    assert "up to 60 s of requests a series" in said


def test_a_job_that_does_not_tell_is_not_checked(tmp_path: Path) -> None:
    request = JobRequest("ingest", "kafka:9092", "flink:8081")
    assert submit.check_state(request, FlinkHome(tmp_path), SAVEPOINT) == ""


def test_from_the_console_an_edited_file_is_refused_and_nothing_is_submitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [
        "--state-folder",
        str(tmp_path / "state"),
        "--jobmanager",
        "flink:8081",
        "--bootstrap-servers",
        "kafka:9092",
    ]
    line += ["--from-savepoint", SAVEPOINT, "--dry-run"]
    old, new = (file_of(tmp_path / str(slide), {"slide_seconds": slide}) for slide in (20, 30))
    plan = submit.state_plan(request_of(old))
    assert plan is not None
    note_plan(FlinkHome(tmp_path / "state" / "client"), JOB, plan)
    with pytest.raises(SystemExit) as ended:
        main(["submit", "drift", *line, "--monitors", str(new)])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert (
        f"{new}: chat.slide_seconds: is 30, was 20, with which the state in {SAVEPOINT} can't be taken over" in said.err
    )
    with pytest.raises(SystemExit) as ended:
        main(["submit", "drift", *line, "--monitors", str(old)])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert f" -s {SAVEPOINT} " in said.out
