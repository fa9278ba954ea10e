"""The monitors file: defaults, digests, and every wrong configuration refused with file, field and remedy."""

from pathlib import Path

import orjson
import pytest

from jobs.drift import validate
from jobs.kafka_client import ConfigurationError
from jobs.monitors import load_monitors
from schemas.ids import content_digest
from schemas.model_card import load_model_card
from tests.drift_files import CARD, monitor, write_files
from udfs.judging.reference_ks import ReferenceKs


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    loaded = load_monitors(write_files(tmp_path, [monitor()]))
    assert (loaded.watermark_bound_ms, loaded.idle_timeout_ms) == (10_000, 30_000)
    (checked,) = loaded.monitors
    assert (checked.name, checked.group_by) == ("chat", ("service_name", "model"))
    assert (checked.window_ms, checked.slide_ms, checked.shards) == (60_000, 20_000, 1)
    tokens, _ = checked.judges
    assert isinstance(tokens, ReferenceKs)
    assert tuple(given.field for given in checked.inputs) == ("input_tokens", "attributes.temperature")
    assert (tokens.alpha, tokens.min_effect, tokens.min_samples, tokens.method) == (0.01, 0.05, 100, "asymptotic")
    assert tokens.reference.n == 700
    assert tokens.frame.model_card_digest == load_model_card(tmp_path / CARD).digest
    assert str(tokens.frame.reference_digest).startswith("sha256:")
    assert loaded.columns == ("service_name", "model", "input_tokens", "attributes")


def test_the_config_digest_is_of_what_a_verdict_depends_on(tmp_path: Path) -> None:
    def digest(**fields: object) -> str:
        first = load_monitors(write_files(tmp_path, [monitor(**fields)])).monitors[0].judges[0]
        assert isinstance(first, ReferenceKs)
        return first.frame.config_digest

    ours = digest()
    effective = {
        "monitor": "chat",
        "group_by": ["model", "service_name"],
        "window_ms": 60_000,
        "slide_ms": 20_000,
        "watermark_bound_ms": 10_000,
        "test": "ks_two_sample",
        "alpha": 0.01,
        "min_effect": 0.05,
        "min_samples": 100,
        "method": "asymptotic",
    }
    assert ours == content_digest(orjson.dumps(effective, option=orjson.OPT_SORT_KEYS))
    same = [digest(features=["input_tokens"]), digest(slice_shards=4), digest(alpha=0.01)]
    assert same == [ours] * 3
    assert digest(group_by=["model", "service_name"]) == ours
    other = [
        digest(alpha=0.02),
        digest(window_seconds=80),
        digest(min_samples=5),
        digest(group_by=[]),
        digest(name="b"),
    ]
    assert len({ours, *other}) == 6


COUNTED = {"window_seconds": None, "window_requests": 100}
SAME_HOUR = {"test": "same_hour", "field": "input_tokens"}
PSI = {"test": "psi", "field": "input_tokens", "threshold": 0.25}
LIMIT = {"test": "limit", "field": "input_tokens", "figure": "mean"}
EMBEDDING = {"test": "embedding", "field": "prompt_embedding", "reference": "nowhere.json"}
WRONG_MONITORS = [
    ({"name": None}, "monitors[0].name", "is missing", "Add it: there is no default"),
    ({"name": ""}, "monitors[0].name", "'' is no text", "Write a name"),
    ({"features": ["inptu_tokens"]}, "monitors[0].features[0]", "is no field", "Did you mean input_tokens?"),
    ({"features": ["model"]}, "monitors[0].features[0]", "has no model", "slacktide reference build"),
    ({"features": ["trace_id"]}, "monitors[0].features[0]", "names one request", "input_tokens"),
    ({"features": ["prompt_embedding"]}, "monitors[0].features[0]", "neither a number nor a category", "input_tokens"),
    ({"features": ["event_time_ms"]}, "monitors[0].features[0]", "is an instant", "input_tokens"),
    ({"features": ["attributes."]}, "monitors[0].features[0]", "is no field", "and attributes.NAME"),
    (
        {"features": ["end_to_end_seconds"]},
        "monitors[0].features[0]",
        "has no end_to_end_seconds",
        "It has: attributes",
    ),
    ({"features": []}, "monitors[0].features", "is empty", "at least one field"),
    ({"false_alarms": "often"}, "monitors[0].false_alarms", "is no false-alarm budget", "1 per 30d"),
    ({"false_alarms": "1 per 1 windows"}, "monitors[0].false_alarms", "", "1 per 30d"),
    ({"window_seconds": None}, "monitors[0].window_seconds", "exactly one of", "window_requests"),
    ({"window_requests": 100}, "monitors[0].window_seconds", "exactly one of", "window_requests"),
    (COUNTED | {"slice_shards": 2}, "monitors[0].slice_shards", "whole slices", "Leave it out"),
    (COUNTED | {"features": ["is_error"]}, "monitors[0].window_requests", "one numeric field", "window_seconds"),
    (COUNTED | {"false_alarms": "1 per 7d"}, "monitors[0].false_alarms", "no fixed time", "1 per 30d"),
    ({"tests": [SAME_HOUR]}, "monitors[0].tests[0]", "of 3600", "docs/monitors.md"),
    ({"slices": ["modle"]}, "monitors[0].slices[0]", "is no field", "Did you mean model?"),
    ({"slices": ["model"]}, "monitors[0].slices", "a label of every series already", "Leave it out"),
    ({"findings": ["nul_rate"]}, "monitors[0].findings.0", "is no finding", "Did you mean null_rate?"),
    ({"findings": ["range", "range"]}, "monitors[0].findings.1", "stands twice", "Name it once"),
    ({"findings": [{"range": {"max_shar": 1}}]}, "monitors[0].findings.0.range.max_shar", "not a known", "max_share"),
    ({"tests": ["psi"]}, "monitors[0].tests[0].test", "is no test", "Did you mean psi?"),
    ({"tests": [{"test": "psy"}]}, "monitors[0].tests[0].test", "is no test", "Did you mean psi?"),
    ({"tests": [{"test": "psi"}]}, "monitors[0].tests[0].field", "is missing", "Add it: there is no default"),
    ({"tests": [PSI | {"field": "modl"}]}, "monitors[0].tests[0].field", "is no field", "Did you mean model?"),
    ({"tests": [LIMIT]}, "monitors[0].tests[0]", "needs one of below", "below: 0.85"),
    ({"tests": [LIMIT | {"below": 1, "above": 2}]}, "monitors[0].tests[0]", "needs one of below", "below: 0.85"),
    (
        {"tests": [LIMIT], "signals": [{"signal": "dynamic_threshold", "feature": "p50(input_tokens)"}]},
        "monitors[0].tests[0]",
        "needs one of below",
        "dynamic_threshold",
    ),
    ({"tests": [LIMIT | {"field": "model", "below": 1}]}, "monitors[0].tests[0].field", "model is a text", "test psi"),
    ({"tests": [LIMIT | {"change": 0}]}, "monitors[0].tests[0]", "no limit is", "docs/monitors.md"),
    ({"tests": [{"test": "version_semantics"}]}, "monitors[0].tests[0]", "at least one of", "docs/monitors.md"),
    ({"tests": [EMBEDDING]}, "monitors[0].tests[0].reference", "nowhere.json", "slacktide reference embed NAME --out"),
    ({"features": "input_tokens"}, "monitors[0].features", "is no list", "one `- ...` a line"),
    ({"features": ["input_tokens"] * 2}, "monitors[0].features", "stands twice", "Name it once"),
    ({"group_by": ["modle"]}, "monitors[0].group_by[0]", "is no field", "Did you mean model?"),
    ({"group_by": ["input_tokens"]}, "monitors[0].group_by[0]", "is no text but BIGINT", "Use service_name"),
    ({"group_by": ["user_hash"]}, "monitors[0].group_by[0]", "or person", "Use service_name"),
    ({"group_by": ["trace_id"]}, "monitors[0].group_by[0]", "names one request", "Use service_name"),
    ({"alpha": 0}, "monitors[0].alpha", "0 is not between 0 and 1", "such as 0.01"),
    ({"alpha": 1}, "monitors[0].alpha", "1 is not between 0 and 1", "such as 0.01"),
    ({"alpha": "0.01"}, "monitors[0].alpha", "is no number", "without quotes"),
    ({"alpha": float("nan")}, "monitors[0].alpha", "is no number", "without quotes"),
    ({"alpha": "1e-6"}, "monitors[0].alpha", "is no number", "behind a point: 1.0e-6"),
    ({"min_effect": -0.1}, "monitors[0].min_effect", "is not between 0 and 1", "such as 0.05"),
    ({"min_samples": 0}, "monitors[0].min_samples", "is no whole number above 0", "from 1"),
    ({"min_samples": True}, "monitors[0].min_samples", "is no whole number above 0", "from 1"),
    ({"slice_shards": 1.5}, "monitors[0].slice_shards", "is no whole number above 0", "from 1"),
    ({"method": "exakt"}, "monitors[0].method", "`exakt` is not one of: asymptotic, exact", "Did you mean exact?"),
    ({"slide_seconds": 25}, "monitors[0].slide_seconds", "25 s does not divide the window of 60 s", "whole number"),
    ({"slide_seconds": 120}, "monitors[0].slide_seconds", "does not divide", "whole number"),
    ({"slide_seconds": 0}, "monitors[0].slide_seconds", "0 is not above 0", "above 0"),
    ({"window_seconds": -60}, "monitors[0].window_seconds", "-60 is not above 0", "above 0"),
    ({"window_seconds": 0.0001}, "monitors[0].window_seconds", "no whole number of milliseconds", "three decimals"),
    ({"alpah": 0.01}, "monitors[0].alpah", "is not a known field", "Did you mean alpha?"),
    ({"reference": "nowhere.json"}, "monitors[0].reference", "No such file in /", "slacktide reference build NAME"),
    ({"model_card": "nowhere.json"}, "monitors[0].model_card", "can't be read", "Give a path"),
    ({"model_card": "monitors.yaml"}, "monitors[0].model_card", "is not JSON", "Write one JSON object"),
    ({"reference": CARD}, "monitors[0].reference", "schema_version", "slacktide reference build"),
]


@pytest.mark.parametrize(("change", "field", "problem", "remedy"), WRONG_MONITORS)
def test_a_wrong_monitor_is_refused(
    tmp_path: Path, change: dict[str, object], field: str, problem: str, remedy: str
) -> None:
    file = write_files(tmp_path, [monitor(**change)])
    with pytest.raises(ConfigurationError) as refused:
        validate(["--bootstrap-servers", "localhost:9092", "--monitors", str(file)])
    error = refused.value
    assert error.file == str(file)
    assert error.field == field
    assert problem in error.problem
    assert remedy in error.remedy


WRONG_FILES = [
    ("monitors: [\n", "line 2", "is not YAML", "Mend that line"),
    ("monitors: []\nmonitors: []\n", "line 2", "'monitors' stands twice", "Mend that line"),
    ("", "(file)", "is empty", "Write monitors"),
    ("- a\n", "(file)", "is not a mapping", "name: value"),
    ("monitors: []\n", "monitors", "is empty", "at least one monitor"),
    ("monitors: {}\n", "monitors", "is no list", "one `- ...`"),
    ("monitors:\n", "monitors", "is missing", "Add it"),
    ("monitors: [7]\n", "monitors[0]", "is not a mapping", "name: value"),
    ("monitors: [{}]\nwatermark_bound: 3\n", "watermark_bound", "is not a known field", "watermark_bound_seconds?"),
    ("monitors: [{}]\nwatermark_bound_seconds: 0\n", "watermark_bound_seconds", "is not above 0", "above 0"),
    ("a: \xff\n".encode("latin-1"), "(file)", "is not UTF-8", "UTF-8"),
]


@pytest.mark.parametrize(("content", "field", "problem", "remedy"), WRONG_FILES)
def test_a_wrong_file_is_refused(tmp_path: Path, content: str | bytes, field: str, problem: str, remedy: str) -> None:
    file = tmp_path / "monitors.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigurationError) as refused:
        load_monitors(file)
    error = refused.value
    assert (error.file, error.field) == (str(file), field)
    assert problem in error.problem
    assert remedy in error.remedy


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load_monitors(tmp_path / "nowhere.yaml")


def test_two_monitors_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"monitors\[1\]\.name: 'chat' stands twice"):
        load_monitors(write_files(tmp_path, [monitor(), monitor()]))


def test_an_edited_reference_is_refused(tmp_path: Path) -> None:
    file = write_files(tmp_path, [monitor()])
    (reference,) = (tmp_path / "references").iterdir()
    body = orjson.loads(reference.read_bytes())
    body["features"]["input_tokens"]["points"][0] -= 1
    reference.write_bytes(orjson.dumps(body))
    with pytest.raises(ConfigurationError, match=r"monitors\[0\]\.reference: .*digest: .*the file was changed"):
        load_monitors(file)
