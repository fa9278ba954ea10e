"""Submission: the exact `flink run` line, secrets kept off it, a second copy refused, the newest checkpoint found."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra import submit
from infra.errors import StackError
from infra.flink_home import CLIENT_CONFIG, FlinkHome
from infra.flink_run import Submission, flink_run
from infra.stack import Stack
from infra.stack_settings import load_settings
from infra.submit import JobRequest
from jobs.kafka_client import ConfigurationError

KAFKA, CLUSTER = "kafka:9092", "flink:8081"


def test_the_line_has_addresses_code_and_both_pythons(tmp_path: Path) -> None:
    request = JobRequest("drift", KAFKA, CLUSTER, args=("--monitors", "m.yaml"))
    home = FlinkHome(tmp_path)
    line = Submission("jobs.drift", request.argv, "file:/sp", python="/opt/python").command(home, CLUSTER)
    assert line == [
        str(home.flink), "run", "-d", "-m", CLUSTER, "-s", "file:/sp", "-pym", "jobs.drift",
        "-pyfs", str(tmp_path / "dist" / "slacktide-jobs.zip"),
        "-pyexec", "/opt/python", "-pyclientexec", sys.executable,
        "--bootstrap-servers", KAFKA, "--monitors", "m.yaml",
    ]  # fmt: skip


def test_a_file_is_submitted_as_a_file(tmp_path: Path) -> None:
    line = Submission("mine.py").command(FlinkHome(tmp_path), CLUSTER)
    assert line[line.index("-py") + 1] == "mine.py"
    assert "-s" not in line


def test_a_secret_is_never_on_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "top-secret")
    file = tmp_path / "kafka.yaml"
    file.write_text("sasl.password: ${KAFKA_PASSWORD}\n")
    request = JobRequest("ingest", KAFKA, CLUSTER, kafka_config=file)
    submit.validate(request)
    line = Submission("jobs.ingest", request.argv).command(FlinkHome(tmp_path), CLUSTER)
    assert str(file) in line
    assert "top-secret" not in " ".join(line)


def test_a_missing_secret_is_refused_before_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    file = tmp_path / "kafka.yaml"
    file.write_text("sasl.password: ${KAFKA_PASSWORD}\n")
    with pytest.raises(ConfigurationError) as caught:
        submit.validate(JobRequest("ingest", KAFKA, CLUSTER, kafka_config=file))
    assert (caught.value.file, caught.value.field) == (str(file), "sasl.password")


@pytest.mark.parametrize(("args", "name"), [((), "slacktide-ingest"), (("--name-suffix=-b",), "slacktide-ingest-b")])
def test_the_name_is_the_one_the_job_gives_itself(args: tuple[str, ...], name: str) -> None:
    assert JobRequest("ingest", KAFKA, CLUSTER, args=args).name == name


def test_a_second_copy_is_refused_with_the_remedy() -> None:
    with pytest.raises(StackError, match="slacktide-drift already runs on flink:8081 as job abc") as caught:
        submit.refuse_running([{"name": "slacktide-drift", "jid": "abc"}], "slacktide-drift", CLUSTER)
    assert "slacktide down drift" in caught.value.remedy
    assert "--name-suffix" in caught.value.remedy


def test_another_name_is_no_second_copy() -> None:
    submit.refuse_running([{"name": "slacktide-drift-b", "jid": "abc"}], "slacktide-drift", CLUSTER)


def test_audit_takes_the_places_of_the_stack_where_none_are_named(tmp_path: Path) -> None:
    stack = Stack(tmp_path, load_settings(environment={}))
    request = JobRequest("audit", KAFKA, CLUSTER, args=("--warehouse=/data/audit", "--trigger-seconds", "2"))
    service = submit.audit_service(submit.with_audit_defaults(request, stack), stack, tmp_path)
    line = " ".join(service.argv)
    assert f"-m jobs.audit --bootstrap-servers {KAFKA} --jars " in line
    assert f"--status-file {stack.audit_status_file} --warehouse=/data/audit --trigger-seconds 2" in line
    assert line.count("--warehouse") == 1
    assert (service.name, service.folder) == ("audit", tmp_path)


def test_resume_finds_the_newest_of_the_last_run(tmp_path: Path) -> None:
    first, second = "a" * 32, "b" * 32
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "slacktide-drift").write_text(f"{first}\n{second}\n")
    for age_seconds, place in enumerate(
        [f"savepoints/savepoint-{second[:6]}-1", f"checkpoints/{second}/chk-7", f"checkpoints/{first}/chk-99"]
    ):
        metadata = tmp_path / place / "_metadata"
        metadata.parent.mkdir(parents=True)
        metadata.touch()
        os.utime(metadata, (1_700_000_000 - age_seconds, 1_700_000_000 - age_seconds))
    # A checkpoint that was never completed has no metadata.
    (tmp_path / "checkpoints" / second / "chk-8").mkdir()
    found = submit.newest_checkpoint(FlinkHome(tmp_path), "slacktide-drift")
    assert found == (tmp_path / "savepoints" / f"savepoint-{second[:6]}-1").as_uri()


def test_resume_without_anything_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no checkpoint of slacktide-drift"):
        submit.newest_checkpoint(FlinkHome(tmp_path), "slacktide-drift")


def test_a_client_of_another_cluster_brings_no_settings_of_ours(tmp_path: Path) -> None:
    home = FlinkHome(tmp_path)
    home.prepare({}, CLIENT_CONFIG)
    assert {key.split(".")[0] for key in home.settings} == {"python", "env"}
    assert any(jar.name.startswith("flink-sql-connector-kafka") for jar in home.lib.iterdir())


def test_every_job_has_the_contract() -> None:
    module = "importlib.import_module('jobs.' + job.replace('-', '_'))"
    code = f"import importlib\nfor job in {{}}:\n m = {module}; m.main; m.validate"
    done = subprocess.run([sys.executable, "-c", code.format(submit.JOBS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("job", "args", "said"),
    [
        ("drift", (), "--monitors: is missing. Add it, as in `slacktide submit drift --monitors monitors.yaml`"),
        ("slo", (), "--slos: is missing. Add it, as in `slacktide submit slo --slos slos.yaml`"),
        ("audit", (), "--warehouse: is missing. Add it, as in `python -m jobs.audit "),
        ("ingest", ("--nosuch=1",), "--nosuch=1: is no option of the ingest job. `slacktide submit ingest -- --help`"),
        ("ingest", ("--parallelism", "two"), "--parallelism: `two` is not a whole number. Give a whole number"),
        ("ingest", ("--encoding",), "--encoding: has no value. Write the value behind it"),
        ("ingest", ("--encoding", "avro"), "--encoding: `avro` is not one of: auto, otlp_proto, otlp_json. Write one"),
        ("ingest", ("--te", "masked"), "--te: may be any of --text, --text-max-characters. Write it out"),
    ],
)
def test_a_wrong_command_line_is_one_sentence(
    job: str, args: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        submit.validate(JobRequest(job, KAFKA, CLUSTER, args=args))
    assert str(caught.value).startswith(f"command line: {said}")
    assert capsys.readouterr().err == ""  # argparse would print its usage here


def test_a_state_of_another_shape_is_told_by_flinks_reason(tmp_path: Path) -> None:
    """Not by the error of the Python client, which only says that it ended."""
    home = FlinkHome(tmp_path)
    home.prepare({}, CLIENT_CONFIG)
    reason = (
        "Failed to rollback to checkpoint/savepoint file:/sp. Cannot map checkpoint/savepoint state for operator 61"
    )
    client = tmp_path / "client"
    client.write_text(
        "#!/bin/sh\n"
        "echo 'org.apache.flink.client.program.ProgramAbortException: java.lang.RuntimeException: exits with code: 1'\n"
        f"echo 'Caused by: java.lang.IllegalStateException: {reason}'\n"
        "echo 'Caused by: java.lang.RuntimeException: Python process exits with code: 1'\nexit 1\n"
    )
    client.chmod(0o755)
    submission = Submission("jobs.drift", (), "file:/sp")
    line = submission.command(home, CLUSTER)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Submission, "command", lambda *_: [str(client), *line[1:]])
        with pytest.raises(StackError, match="Cannot map checkpoint/savepoint state for operator 6"):
            flink_run(submission, home, CLUSTER)
