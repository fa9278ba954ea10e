"""Model cards: what a served model is for and what is known of it, checked against a JSON Schema.

A card is content-addressed: its digest is over its canonical JSON (sorted keys, no spaces), so layout and key order of
the file don't matter and any change of meaning gives another digest. Verdicts name the digest they were judged under.

Source: spec G1; `model_card.schema.json` (draft 2020-12) is the contract.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson
from jsonschema import Draft202012Validator, ValidationError

from schemas.ids import content_digest

# A package resource, not a path: on a cluster the packages are inside a zip.
SCHEMA_FILE = files("schemas").joinpath("model_card.schema.json")
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
        document = json.loads(
            text, object_pairs_hook=_object_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
        )
        canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except (ValueError, TypeError) as error:  # TypeError: orjson's, on a 65-bit integer or half a surrogate pair
        raise ModelCardError(file, "(file)", f"is not JSON: {error}", "Write one JSON object") from None
    fault = next(iter(sorted(_validator().iter_errors(document), key=_depth_first)), None)
    if fault is not None:
        raise _explained(file, fault)
    return ModelCard(document, canonical.decode(), content_digest(canonical))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise ModelCardError(path, "(file)", problem, "Give a path to a model card in JSON") from None


@cache
def _validator() -> Draft202012Validator:
    schema = json.loads(SCHEMA_FILE.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _object_without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A name given twice would lose one of its values without a word."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name {name!r} stands twice in one object")
    return dict(pairs)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond a double")
    return number


def _depth_first(error: ValidationError) -> tuple[list[str], str]:
    return [str(part) for part in error.absolute_path], error.message


def _explained(file: str, error: ValidationError) -> ModelCardError:
    """Name the field a person has to mend; what to write there is the schema's own description of it."""
    path = list(error.absolute_path)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        path, problem = [*path, missing], "is missing"
    elif error.validator == "additionalProperties":
        path, problem = [*path, min(set(error.instance) - set(error.schema["properties"]))], "is not a known field"
        return ModelCardError(file, _dotted(path), problem, f"Known here: {', '.join(error.schema['properties'])}")
    else:
        problem = error.message
    return ModelCardError(file, _dotted(path), problem, _description(path))


def _dotted(path: list[str | int]) -> str:
    return ".".join(map(str, path)) or "(root)"


def _description(path: list[str | int]) -> str:
    """The schema's words for the field at `path`, or for the nearest field around it that has any."""
    schema: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())
    found = "Write one JSON object with the fields of model_card.schema.json."
    for part in path:
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        found = schema.get("description", found)
    return found
