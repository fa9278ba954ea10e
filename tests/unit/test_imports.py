"""The layers: schemas <- udfs, gpu_scorers <- jobs <- infra, and which engine may be imported where."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "schemas": {"schemas"},
    "udfs": {"schemas", "udfs"},
    "gpu_scorers": {"schemas", "gpu_scorers"},
    "jobs": {"schemas", "udfs", "gpu_scorers", "jobs"},
    "infra": {"schemas", "udfs", "gpu_scorers", "jobs", "infra"},
}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import anywhere in `source`, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def may_import_engine(file: Path, engine: str) -> bool:
    """Whether `file` (relative to the root) may import `engine`."""
    package, name = file.parts[0], file.name
    if engine == "pyflink":
        return package == "jobs" or name.startswith("flink_")
    if engine in ("pyspark", "delta"):
        return package == "infra" or (package == "jobs" and name.startswith("audit"))
    if engine in ("torch", "transformers", "sentence_transformers"):
        return package == "gpu_scorers"
    return True


def faults(file: Path, source: str) -> list[str]:
    """Return each import of `file` (relative to the root) that points up or reaches an engine it must not."""
    found = []
    for line, name in imported(source):
        top = name.split(".")[0]
        if name.startswith("."):
            found.append(f"{file}:{line}: relative import; write the whole name")
        elif (top in MAY_IMPORT and top not in MAY_IMPORT[file.parts[0]]) or top == "tests":
            found.append(f"{file}:{line}: {file.parts[0]} imports {name}, which lies above it")
        elif not may_import_engine(file, top):
            found.append(f"{file}:{line}: {top} must not be imported here")
    return found


FILES = sorted(f.relative_to(ROOT) for package in MAY_IMPORT for f in (ROOT / package).rglob("*.py"))


def test_every_package_has_files() -> None:
    assert {file.parts[0] for file in FILES} == set(MAY_IMPORT)


def test_imports_point_one_way() -> None:
    assert [fault for file in FILES for fault in faults(file, (ROOT / file).read_text())] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("schemas/ids.py", "from udfs.statistics import ks"),
        ("udfs/x.py", "def f():\n    import jobs.settings"),
        ("udfs/x.py", "from infra import paths"),
        ("gpu_scorers/x.py", "import udfs"),
        ("jobs/x.py", "import infra.stack"),
        ("infra/x.py", "import tests.otlp"),
        ("udfs/x.py", "from pyflink.table import udf"),
        ("infra/x.py", "import pyflink"),
        ("udfs/x.py", "import pyspark.sql"),
        ("jobs/drift.py", "from pyspark.sql import SparkSession"),
        ("jobs/score.py", "import torch"),
        ("udfs/x.py", "from . import y"),
    ],
)
def test_an_arrow_that_points_up_is_found(file: str, source: str) -> None:
    assert faults(Path(file), source)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("jobs/drift.py", "from pyflink.table import udf\nfrom udfs.statistics import ks"),
        ("udfs/flink_ingest.py", "import pyflink"),
        ("udfs/alerts/flink_lifecycle.py", "import pyflink"),
        ("jobs/audit_tables.py", "import pyspark"),
        ("infra/sql.py", "import pyspark, delta"),
        ("gpu_scorers/embedding.py", "import torch"),
    ],
)
def test_what_is_allowed_is_left_alone(file: str, source: str) -> None:
    assert faults(Path(file), source) == []
