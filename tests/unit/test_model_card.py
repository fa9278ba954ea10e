"""Every card in the folder holds to the contract, and a broken one is refused with field and remedy."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.model_card import CARDS_FOLDER, ModelCardError, load_model_card, parse_model_card

CARDS = sorted(CARDS_FOLDER.glob("*.json"))
CARD = CARDS_FOLDER / "azure_llm_conversation_2023.json"


@pytest.mark.parametrize("path", CARDS, ids=[path.stem for path in CARDS])
def test_every_card_in_the_folder_is_valid(path: Path) -> None:
    assert load_model_card(path).digest.startswith("sha256:")


def test_no_two_cards_say_the_same() -> None:
    digests = [load_model_card(path).digest for path in CARDS]
    assert digests
    assert len(set(digests)) == len(digests)


def test_digest_ignores_layout_and_order_and_nothing_else() -> None:
    document = json.loads(CARD.read_text())
    digest = load_model_card(CARD).digest
    turned = dict(reversed(document.items()))
    assert parse_model_card(json.dumps(turned, indent=7).encode(), "c").digest == digest
    turned["version"] = "1.0.1"
    assert parse_model_card(json.dumps(turned).encode(), "c").digest != digest


def test_digest_is_sha256_of_canonical_json() -> None:
    """Computed here with the standard library alone, so that the rule can't change unseen."""
    document = json.loads(CARD.read_text())
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert load_model_card(CARD).digest == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _set(*path: str | int, to: object) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = to

    return change


def _drop(*path: str | int) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for part in path[:-1]:
            document = document[part]
        del document[path[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        (_drop("owners"), "owners", "List the teams"),
        (_set("owners", to=[]), "owners", "List the teams"),
        (_set("schema_version", to="0.1.0"), "schema_version", '"0.2.0"'),
        (_set("version", to="1"), "version", "MAJOR.MINOR.PATCH"),
        (_set("name", to="a b"), "name", "serving system"),
        (_drop("intended_use", "users"), "intended_use.users", "List who uses it"),
        (_set("intended_use", "users", 0, to=""), "intended_use.users.0", "List who uses it"),
        (_set("ethical_considerations", "risks", to=[]), "ethical_considerations.risks", "List the risks"),
        (_set("training_data", "known", to=True), "training_data.sources", "List data sets"),
        (_set("signature", "status", to="signed"), "signature.signer", "Name who signed"),
        (_set("signature", "status", to="maybe"), "signature.status", "unsigned"),
        (_set("thresholds", to=[{"quantity": "x"}]), "thresholds.0.limit", "finite number"),
        (_set("colour", to="red"), "colour", "Known here: schema_version"),
        (_set("signature", "seal", to="red"), "signature.seal", "Known here: status"),
    ],
)
def test_broken_card_is_refused_with_field_and_remedy(change: Callable[[Any], None], field: str, remedy: str) -> None:
    document = json.loads(CARD.read_text())
    change(document)
    with pytest.raises(ModelCardError) as caught:
        parse_model_card(json.dumps(document).encode(), "card.json")
    assert (caught.value.file, caught.value.field) == ("card.json", field)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "text",
    [b"", b"\xff", b"{", b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": 1e999}', b'{"a": 36893488147419103232}'],
)
def test_what_is_not_strict_json_is_refused(text: bytes) -> None:
    with pytest.raises(ModelCardError, match=r"card.json: \(file\): is not JSON"):
        parse_model_card(text, "card.json")


def test_root_that_is_no_object_is_refused() -> None:
    with pytest.raises(ModelCardError, match=r"card.json: \(root\)"):
        parse_model_card(b"[]", "card.json")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelCardError, match=r"no\.json: \(file\)"):
        load_model_card(tmp_path / "no.json")
