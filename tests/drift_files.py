"""A monitors file with its references and model card, for the drift tests."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from schemas.model_card import CARDS_FOLDER
from udfs.references.profile import ReferenceProfile

CARD = "azure_llm_conversation_2023.json"

# Few distinct values, many ties, infinities and a constant: what a sketch could get wrong.
_RNG = np.random.default_rng(20)
REFERENCE_COLUMNS: dict[str, Any] = {
    "input_tokens": _RNG.integers(1, 60, 700),
    "output_tokens": np.full(50, 7),
    "time_to_first_token_seconds": np.concatenate([_RNG.lognormal(-1, 0.5, 300), [np.inf, np.inf, np.nan]]),
    "queue_seconds": np.zeros(100),
    "attributes.temperature": np.round(_RNG.random(400), 1),
}
REFERENCE_CATEGORIES: dict[str, Any] = {
    "finish_reason": ["stop"] * 900 + ["length"] * 90 + [None] * 10,
    "is_error": ["false"] * 990 + ["true"] * 10,
}


def write_files(folder: Path, monitors: list[Mapping[str, Any]], **job_wide: Any) -> Path:
    """Write card, reference and a monitors file into `folder`, and return the latter.

    Each monitor gets the reference and the card unless it names others.
    """
    shutil.copy(CARDS_FOLDER / CARD, folder / CARD)
    profile = ReferenceProfile.build(
        "chat", REFERENCE_COLUMNS, categories=REFERENCE_CATEGORIES, source="the drift tests", created_at_ms=0
    )
    reference = profile.save(folder / "references")
    common = {"reference": str(reference.relative_to(folder)), "model_card": CARD}
    file = folder / "monitors.yaml"
    file.write_text(yaml.safe_dump(job_wide | {"monitors": [common | dict(monitor) for monitor in monitors]}))
    return file


def monitor(**fields: Any) -> dict[str, Any]:
    """A valid monitor, with `fields` instead of its own; None takes a field away."""
    body = {
        "name": "chat",
        "group_by": ["service_name", "model"],
        "features": ["input_tokens", "attributes.temperature"],
        "window_seconds": 60,
        "slide_seconds": 20,
    }
    return {name: value for name, value in (body | fields).items() if value is not None}
