"""The set-up script names what a machine lacks, with how to get it; run on a PATH of our own making."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "infra" / "setup.sh"
TOOLS = ("bash", "dirname", "sed", "env", "rm", "mv", "mkdir")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with a Python 3.11, a Java 17 and a Maven, and the few tools the script itself takes."""
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (tmp_path / tool).symlink_to(found)
    program(tmp_path / "python3.11", f'exec {sys.executable} "$@"')
    program(tmp_path / "java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2")
    program(tmp_path / "mvn", "echo Apache Maven 3.8.7")
    return tmp_path


def program(file: Path, body: str) -> None:
    file.write_text(f"#!{shutil.which('bash')}\n{body}\n")
    file.chmod(0o755)


def check(path: Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [path / "bash", SCRIPT, "check"],
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_nothing_missing_is_silent(path: Path) -> None:
    assert check(path) == (0, "")


def test_everything_missing_is_named_at_once(path: Path) -> None:
    for tool in ("python3.11", "java", "mvn"):
        (path / tool).unlink()
    status, said = check(path)
    assert status == 1
    for what in ("Python 3.11 is missing", "Java 17 is missing", "Maven is missing"):
        assert what in said
    assert said.count("apt-get install") == 3


def test_another_python_is_named_with_its_version(path: Path) -> None:
    (path / "python3.11").unlink()
    program(path / "python3", "echo 3.12")
    status, said = check(path)
    assert status == 1
    assert "Python 3.11 is missing (python3 is 3.12)" in said
    assert "make PYTHON=" in said


def test_python_may_be_called_python3(path: Path) -> None:
    (path / "python3.11").rename(path / "python3")
    assert check(path) == (0, "")


def test_python_may_be_chosen(path: Path) -> None:
    (path / "python3.11").rename(path / "my-python")
    assert check(path)[0] == 1
    assert check(path, PYTHON=str(path / "my-python")) == (0, "")


def test_another_java_is_named_with_its_version(path: Path) -> None:
    program(path / "java", "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2")
    status, said = check(path)
    assert status == 1
    assert "Java 17 is needed; java is Java 21." in said


def test_java_home_wins_over_the_path(path: Path, tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    program(home / "bin" / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    status, said = check(path, JAVA_HOME=str(home))
    assert status == 1
    assert f"{home}/bin/java is Java 11." in said


def test_a_java_home_that_holds_no_java_is_named(path: Path) -> None:
    status, said = check(path, JAVA_HOME="/nowhere")
    assert status == 1
    assert "Java 17 is missing (JAVA_HOME is /nowhere)" in said


def test_every_target_is_listed_in_a_line_of_help() -> None:
    root = SCRIPT.parents[1]
    # Under `make test` an inner make would say which directory it enters.
    help_command = ["make", "--no-print-directory", "help"]
    listed = subprocess.run(help_command, cwd=root, capture_output=True, text=True, check=True).stdout
    makefile = (root / "Makefile").read_text()
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY")).split(":")[1].split()
    assert [line.split()[1] for line in listed.splitlines()] == phony
    assert all(len(line.split(maxsplit=2)[2]) > 10 for line in listed.splitlines())


def fetch_jars(path: Path, maven: str) -> subprocess.CompletedProcess[str]:
    program(path / "mvn", maven)
    environment = {"PATH": str(path), "JARS": str(path / "jars")}
    return subprocess.run([path / "bash", SCRIPT, "jars"], env=environment, capture_output=True, text=True, check=False)


def test_maven_leaves_no_escapes_in_the_log(path: Path) -> None:
    done = fetch_jars(path, r"printf '\033[0m\033[1;31mwarned\033[m of a jar\n\033[0m'")
    assert done.returncode == 0
    assert done.stdout == "warned of a jar\n" * 3  # a profile each
    assert "\033" not in done.stderr


def test_what_maven_fails_of_is_shown_and_ends_the_set_up(path: Path) -> None:
    done = fetch_jars(path, "echo 'no such jar' >&2; exit 1")
    assert done.returncode == 1
    assert done.stdout == "no such jar\n"


def test_packages_are_compiled_ahead() -> None:
    """A Python worker of Flink imports these whenever it starts, also where Python may write no bytecode."""
    for name in ("apache_beam", "pandas", "pyflink"):
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        assert Path(importlib.util.cache_from_source(found.origin)).exists(), name
