"""Model cards: what a served model is for and what is known of it, checked against a JSON Schema.

A card is content-addressed: its digest is over its canonical JSON (sorted keys, no spaces), so layout and key order of
the file don't matter and any change of meaning gives another digest. Verdicts name the digest they were judged under.

Source: spec G1; `model_card.schema.json` (draft 2020-12) is the contract.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from schemas.ids import content_digest
from schemas.json_contract import first_fault
from schemas.strict_json import loads_strictly

SCHEMA = "model_card.schema.json"
CARDS_FOLDER = Path(__file__).with_name("cards")


class ModelCardError(ValueError):
    """A card that breaks the contract: names the file, the field and the remedy."""

    def __init__(self, file: str, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{file}: {field}: {problem}. {remedy}")
        self.file, self.field, self.problem, self.remedy = file, field, problem, remedy


@dataclass(frozen=True, slots=True)
class ModelCard:
    """A valid card: `document` as the schema has it, `canonical_json`, and the `digest` of that."""

    document: dict[str, Any]
    canonical_json: str
    digest: str


def load_model_card(path: str | Path) -> ModelCard:
    """Read and check the card at `path`. Raises ModelCardError naming file, field and remedy.

    >>> card = load_model_card(CARDS_FOLDER / "azure_llm_conversation_2023.json")
    >>> card.document["name"], card.digest[:7]
    ('azure-llm-conversation-2023', 'sha256:')
    """
    return parse_model_card(_read(str(path)), str(path))


def parse_model_card(text: bytes, file: str) -> ModelCard:
    """Check the card in `text`; `file` is what messages call it. Raises ModelCardError."""
    try:
        document = loads_strictly(text)
        canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except (ValueError, TypeError) as error:  # TypeError: orjson's, on a 65-bit integer or half a surrogate pair
        raise ModelCardError(file, "(file)", f"is not JSON: {error}", "Write one JSON object") from None
    if fault := first_fault(document, SCHEMA):
        raise ModelCardError(file, *fault)
    return ModelCard(document, canonical.decode(), content_digest(canonical))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise ModelCardError(path, "(file)", problem, "Give a path to a model card in JSON") from None
