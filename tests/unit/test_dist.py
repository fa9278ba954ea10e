"""What `make dist` hands out: everything the packages read, importable from the zip alone, the same bytes each time."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from infra import dist

# Takes the checkout away from Python and leaves the zip: all that a cluster has of us.
FROM_THE_ZIP = """
import importlib, pkgutil, sys
checkout, archive = sys.argv[1], sys.argv[2]
sys.meta_path = [finder for finder in sys.meta_path if "__editable__" not in getattr(finder, "__module__", "")]
sys.path = [archive] + [entry for entry in sys.path if entry not in ("", checkout)]
sys.path_importer_cache.clear()
"""
IMPORT_ALL = """
names = []
for package in ("schemas", "udfs", "gpu_scorers", "jobs"):
    module = importlib.import_module(package)
    names += [m.name for m in pkgutil.walk_packages(module.__path__, package + ".")]
for name in names:
    module = importlib.import_module(name)
    assert module.__file__.startswith(archive), module.__file__
print(len(names))
"""
OTHERS = ["drift", "experiment", "slo", "score"]
VALIDATE = """
examples = {"drift": ["--monitors", "monitors.yaml"], "experiment": ["--experiments", "experiments.yaml"]}
examples["slo"] = ["--slos", "slos.yaml"]
examples["score"] = ["--scorers", "scorers.yaml"]
for job, arguments in ({"ingest": [], "ingest_metrics": [], "alert": []} | examples).items():
    importlib.import_module("jobs." + job).validate(["--bootstrap-servers", "kafka:9092", *arguments])
    print(job)
"""


def from_the_zip(code: str, archive: Path, folder: Path) -> str:
    """Run `code` with our packages from the zip alone and return what it prints."""
    line = [sys.executable, "-P", "-c", FROM_THE_ZIP + code, str(dist.CHECKOUT), str(archive)]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_every_module_imports_from_the_zip_alone(tmp_path: Path) -> None:
    assert int(from_the_zip(IMPORT_ALL, dist.jobs_zip(tmp_path), tmp_path)) > 20


def test_every_job_accepts_the_examples_from_the_zip_alone(tmp_path: Path) -> None:
    dist.build(tmp_path)
    home = tmp_path / f"slacktide-{dist.version()}"
    archive = home / f"slacktide-jobs-{dist.version()}.zip"
    assert from_the_zip(VALIDATE, archive, home).split() == ["ingest", "ingest_metrics", "alert", *OTHERS]


def test_the_zip_holds_code_and_data_and_nothing_compiled(tmp_path: Path) -> None:
    with zipfile.ZipFile(dist.jobs_zip(tmp_path)) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == set(dist.PACKAGES)
    assert "jobs/sql/ingest.sql" in names
    assert "schemas/requests.schema.json" in names
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_same_sources_give_the_same_bytes_and_are_not_written_again(tmp_path: Path) -> None:
    first = dist.jobs_zip(tmp_path)
    os.utime(first, (1, 1))
    assert dist.jobs_zip(tmp_path).stat().st_mtime == 1
    assert dist.jobs_zip(tmp_path / "other").read_bytes() == first.read_bytes()


def test_the_archive_has_zip_examples_and_the_lines_to_run(tmp_path: Path) -> None:
    number = dist.version()
    with tarfile.open(dist.build(tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"slacktide-jobs-{number}.zip", "RUN.md", "constraints.txt", "kafka.yaml"} <= names
    assert {"monitors.yaml", "experiments.yaml", "slos.yaml", "scorers.yaml"} <= names
    run = (tmp_path / f"slacktide-{number}" / "RUN.md").read_text()
    assert "VERSION" not in run
    for job in ("ingest", "drift", "experiment", "slo", "score", "alert"):
        assert f"flink run -d -m JOBMANAGER -pym jobs.{job} -pyfs slacktide-jobs-{number}.zip" in run
