"""The zip of our packages for `flink run -pyfs`, and the folder that `make dist` hands out."""

import zipfile
from pathlib import Path

from infra.paths import CHECKOUT

PACKAGES = ("schemas", "udfs", "gpu_scorers", "jobs")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def jobs_zip(folder: Path, name: str = "slacktide-jobs.zip") -> Path:
    """Write the packages that run on a cluster into `folder/name` and return it.

    The same sources give the same bytes, whenever and wherever it is made. Left alone when nothing changed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target, part = folder / name, folder / f"{name}.part"
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
