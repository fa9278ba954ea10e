"""Output behaviour (spec T7): the monitor in docs/versions.md is one that loads, and its fields come with requests."""

import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
import yaml

from jobs.monitors import load_monitors
from schemas.model_card import CARDS_FOLDER
from schemas.requests import request_fields
from tests.drift_files import CARD
from udfs.references.profile import ReferenceProfile

DOCS = Path(__file__).parent.parent.parent / "docs" / "versions.md"
BEHAVIOURS = ["output_tokens", "perplexity", "intent_response_consistency"]


def test_the_monitor_of_the_docs_loads(tmp_path: Path) -> None:
    (block,) = re.findall(r"^    monitors:\n(?:^    .*\n)+", DOCS.read_text(), re.MULTILINE)
    document = yaml.safe_load(textwrap.dedent(block))
    assert document["monitors"][0]["features"] == BEHAVIOURS
    values = {name: np.arange(1.0, 200.0) for name in BEHAVIOURS}
    reference = ReferenceProfile.build("chat", values, source="a test").save(tmp_path)
    shutil.copy(CARDS_FOLDER / CARD, tmp_path)
    document["monitors"][0] |= {"reference": reference.name, "model_card": CARD}
    (tmp_path / "monitors.yaml").write_text(yaml.safe_dump(document))
    (loaded,) = load_monitors(tmp_path / "monitors.yaml").monitors
    assert loaded.name == "output-behaviour"


def test_the_fields_are_fields_of_a_request() -> None:
    assert [field.name for field in request_fields(BEHAVIOURS)] == BEHAVIOURS
