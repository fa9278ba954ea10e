"""Where things are: the checkout, the state folder, the jars, Java and the installed Flink."""

import importlib.util
import os
import shutil
from pathlib import Path

from infra.errors import StackError

CHECKOUT = Path(__file__).resolve().parent.parent
CONF = Path(__file__).resolve().parent / "conf"


def state_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds jars and run state: `chosen`, else `SLACKTIDE_STATE`, else `.slacktide`.

    `.slacktide` lies in the checkout, or in the working folder where slacktide is installed without one.
    """
    if chosen := chosen or os.environ.get("SLACKTIDE_STATE"):
        return Path(chosen).resolve()
    home = CHECKOUT if (CHECKOUT / "pyproject.toml").exists() else Path.cwd()
    return home / ".slacktide"


def jars(group: str, state: Path | None = None) -> list[Path]:
    """Return the jars of `group` (`broker`, `flink` or `spark`), sorted.

    They lie under the state folder, or under the default one that all state folders of a checkout share. Raises
    StackError when they were never fetched.
    """
    for home in (state, state_folder(), CHECKOUT / ".slacktide"):
        if home and (found := sorted((home / "jars" / group).glob("*.jar"))):
            return found
    raise StackError(f"no jars of the {group} in {state_folder() / 'jars' / group}", "Run `make setup` first")


def class_path(files: list[Path]) -> str:
    """Return `files` as a Java class path."""
    return os.pathsep.join(map(str, files))


def java() -> str:
    """Return the Java to run: of JAVA_HOME where it is set, else of PATH. Raises StackError when there is none."""
    if home := os.environ.get("JAVA_HOME"):
        program = Path(home) / "bin" / "java"
        if program.exists():
            return str(program)
        raise StackError(f"JAVA_HOME is {home}, which holds no bin/java", "Point JAVA_HOME at a Java 17, or unset it")
    if program_on_path := shutil.which("java"):
        return program_on_path
    raise StackError("no java on PATH", "Install Java 17, or set JAVA_HOME")


def pyflink_home() -> Path:
    """Return the folder of the installed pyflink, which is a whole Flink distribution. pyflink is not imported."""
    spec = importlib.util.find_spec("pyflink")
    if spec is None or spec.origin is None:
        raise StackError("apache-flink is not installed", "Run `make setup` first")
    return Path(spec.origin).parent
