"""The zip of our packages for `flink run -pyfs`, and the folder that `make dist` hands out."""

import os
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

from infra.paths import CHECKOUT, CONF

PACKAGES = ("schemas", "udfs", "gpu_scorers", "jobs")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def jobs_zip(folder: Path, name: str = "slacktide-jobs.zip") -> Path:
    """Write the packages that run on a cluster into `folder/name` and return it.

    The same sources give the same bytes, whenever and wherever it is made. Left alone when nothing changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / name, folder / f"{name}.{os.getpid()}.part"
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in package_files():
            entry = zipfile.ZipInfo(str(file.relative_to(CHECKOUT)), date_time=_EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, file.read_bytes())
    if target.exists() and target.read_bytes() == part.read_bytes():
        part.unlink()
    else:
        part.replace(target)
    return target


def package_files() -> list[Path]:
    """Return the files of the packages that run on a cluster: code and data, without what Python compiled."""
    files = [file for package in PACKAGES for file in (CHECKOUT / package).rglob("*") if file.is_file()]
    return sorted(file for file in files if "__pycache__" not in file.parts and not file.name.startswith("."))


def version() -> str:
    """Return the project's version. Raises FileNotFoundError outside a checkout."""
    return str(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"])


def build(folder: Path) -> Path:
    """Make `folder/slacktide-VERSION/` and its `.tar.gz`, and return the latter: all that a cluster needs of us."""
    number = version()
    home = folder / f"slacktide-{number}"
    shutil.rmtree(home, ignore_errors=True)
    jobs_zip(home, f"slacktide-jobs-{number}.zip")
    (home / "RUN.md").write_text((CONF / "dist-run.md").read_text().replace("VERSION", number))
    for file in (CHECKOUT / "constraints.txt", CONF / "kafka.yaml"):
        shutil.copy(file, home)
    _copy_examples(home)
    shutil.copy(home / f"slacktide-jobs-{number}.zip", folder)
    archive = folder / f"slacktide-{number}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(home, home.name)
    return archive


def _copy_examples(home: Path) -> None:
    """Copy the example files, with the references and model cards they name, to where they do so."""
    for name in ("monitors.yaml", "experiments.yaml", "slos.yaml", "scorers.yaml"):
        (home / name).write_text((CONF / name).read_text().replace("../../schemas/cards/", "cards/"))
    shutil.copytree(CONF / "references", home / "references")
    shutil.copytree(CHECKOUT / "schemas" / "cards", home / "cards")


if __name__ == "__main__":
    built = build(CHECKOUT / "dist")
    print(f"{built}\n{built.parent / f'slacktide-jobs-{version()}.zip'}")
