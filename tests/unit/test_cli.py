"""The console command: help is instant and has examples, and what the user can mend is said in a sentence."""

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from infra.cli import COMMANDS, main, slacktide
from infra.ports import free_ports
from infra.submit import JOBS


def run(*argv: str, state: Path) -> tuple[int, str, str]:
    """Run the command line in a process of its own: (exit status, stdout, stderr)."""
    line = [sys.executable, "-m", "infra.cli", *argv, "--state-folder", str(state)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    answer = CliRunner().invoke(slacktide, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert "xamples:" in answer.output
    assert f"slacktide {name}" in answer.output


def every_help(path: list[str], command: click.Command) -> Iterator[str]:
    """The help of a command and of all below it, at 80 columns."""
    yield CliRunner().invoke(slacktide, [*path, "--help"], env={"COLUMNS": "80"}).output
    for name, below in getattr(command, "commands", {}).items():
        yield from every_help([*path, name], below)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_breaks_no_word(name: str) -> None:
    command = slacktide.get_command(click.Context(slacktide), name)
    assert command is not None
    for text in every_help([name], command):
        assert not re.search(r"\S-$", text, re.MULTILINE), text


@pytest.mark.parametrize("job", JOBS)
def test_help_of_a_job_breaks_no_word(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    module = importlib.import_module("jobs." + ("audit_settings" if job == "audit" else job.replace("-", "_")))
    assert not re.search(r"\w-$", module.parser().format_help(), re.MULTILINE)


def test_help_lists_every_command_and_imports_no_engine() -> None:
    code = (
        "import sys\nfrom infra.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'pyflink', 'pyspark', 'confluent_kafka', 'numpy', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


def test_an_unknown_command_is_named() -> None:
    answer = CliRunner().invoke(slacktide, ["stauts"])
    assert answer.exit_code == 2
    assert "stauts" in answer.output


def test_status_without_a_stack_says_how_to_start_one(tmp_path: Path) -> None:
    assert run("status", state=tmp_path) == (1, "The stack is not up. Start it with `slacktide up`.\n", "")


def test_status_for_machines_without_a_stack(tmp_path: Path) -> None:
    assert run("status", "--json", state=tmp_path) == (1, '{"up":false}\n', "")


def test_down_without_a_stack_ends_nothing(tmp_path: Path) -> None:
    assert run("down", state=tmp_path) == (0, f"Nothing was started under {tmp_path}.\n", "")


def test_a_wrong_setting_is_a_sentence_and_not_a_traceback(tmp_path: Path) -> None:
    status, out, err = run("up", "--port", "kafak=1", state=tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("slacktide: --port: ports.kafak: is no port of the stack. The ports are kafka, ")
    assert len(err.splitlines()) == 1


def test_submit_where_no_cluster_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    line = ["submit", "ingest", "--jobmanager", nowhere, "--bootstrap-servers", nowhere]
    with pytest.raises(SystemExit) as caught:
        main([*line, "--state-folder", str(tmp_path)])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(f"slacktide: no Flink cluster answers at {nowhere}")
