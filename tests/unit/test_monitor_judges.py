"""Every test and finding that a monitor may name: what it becomes, and which verdicts it gives."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from infra.monitor_history.explained import explained
from jobs.monitor_judges import FINDINGS, TESTS
from jobs.monitors import Monitor, load_monitors
from schemas.verdicts import Verdict
from tests.drift_files import monitor, write_files
from udfs.judging.window_judge import WindowJudge
from udfs.references.embedding_reference import build_embedding_reference
from udfs.slicing.body import decoder
from udfs.slicing.fields import column, field_of

SAME_HOUR = {"test": "same_hour", "field": "input_tokens"}
ALL_TESTS: list[dict[str, Any]] = [
    {"test": "psi", "field": "input_tokens", "threshold": 0.25},
    {"test": "kl_divergence", "field": "finish_reason", "threshold": 0.12},
    {"test": "js_divergence", "field": "output_tokens", "threshold": 0.1},
    {"test": "cramer_von_mises", "field": "input_tokens", "threshold": 0.2},
    {"test": "wasserstein_1", "field": "output_tokens", "threshold": 3.0},
    {"test": "two_streams", "field": "queue_seconds", "split_by": "arm", "baseline": "control"},
    {"test": "limit", "field": "factuality", "figure": "quantile", "below": 0.7},
    {"test": "limit", "field": "input_tokens", "figure": "mean", "change": 0.15},
    {
        "test": "version_semantics",
        "agreement": "attributes.agreement",
        "kl_nats": "attributes.kl",
        "consistency_every": 90,
    },
]


def load(folder: Path, **fields: Any) -> Monitor:
    (loaded,) = load_monitors(write_files(folder, [monitor(**fields)])).monitors
    return loaded


def bodies(count: int) -> list[bytes]:
    """Requests that have every field the tests watch."""
    rng = np.random.default_rng(7)
    return [
        orjson.dumps(
            {
                "event_time_ms": 64 * number + 64,
                "input_tokens": int(rng.integers(1, 60)),
                "output_tokens": 7,
                "queue_seconds": float(rng.random()),
                "finish_reason": "stop" if number % 10 else "length",
                "is_error": number % 100 == 0,
                "arm": "control" if number % 2 else "new",
                "factuality": 0.8,
                "prompt_embedding": [1.0, float(number % 3)],
                "attributes": {"temperature": 0.5, "agreement": 1, "kl": 0.1, "top_k": 5},
            }
        )
        for number in range(count)
    ]


def verdicts(judge: WindowJudge, requests: list[bytes], labels: tuple[str, ...] = ("s", "m")) -> dict[str, Any]:
    """The judge's verdicts on a window, from the requests' own bytes, by what they speak of."""
    names = tuple(sorted({field_of(given.field) for given in judge.inputs}))
    decoded = [decoder(names).decode(request) for request in requests]
    sketch = judge.sketch(*(column(decoded, given) for given in judge.inputs))
    found = [orjson.loads(verdict.to_json()) for verdict in judge.judge(labels, 60_000, [sketch])]
    return {body["feature"]: body for body in found}


def test_every_test_and_finding_gives_verdicts(tmp_path: Path) -> None:
    embedding = build_embedding_reference(
        np.array([[1.0, float(n % 3)] for n in range(300)]), name="chat", source="a test"
    )
    path = embedding.save(tmp_path)
    tests = [*ALL_TESTS, {"test": "embedding", "field": "prompt_embedding", "reference": path.name}]
    assert {str(test["test"]) for test in tests} == set(TESTS) - {"same_hour"}  # of its own kind, below
    features = ["input_tokens", "attributes.temperature", "finish_reason", "is_error"]
    loaded = load(tmp_path, features=features, tests=tests, findings=list(FINDINGS))
    requests = bodies(300)
    found = {name: body for judge in loaded.judges for name, body in verdicts(judge, requests).items()}
    assert set(found) >= {
        *features,
        *(f"null_rate({feature})" for feature in features),
        "range(input_tokens)",
        "new_category(finish_reason)",
        "transform_mismatch(input_tokens)",
        "unmonitored_feature(top_k)",
        "psi(input_tokens)",
        "kl_divergence(finish_reason)",
        "js_divergence(output_tokens)",
        "cramer_von_mises(input_tokens)",
        "wasserstein_1(output_tokens)",
        "two_stream_ks(queue_seconds:new|control)",
        "p50(factuality)",
        "mean(input_tokens)",
        "mean_cosine(prompt_embedding)",
    }
    assert "unmonitored_feature(temperature)" not in found
    assert "unmonitored_feature(agreement)" in found  # named by no feature and no test's `field`
    assert {body["status"] for body in found.values()} <= {"ok", "inconclusive"}
    assert found["finish_reason"]["drifted"] is False
    # 990 values and 10 nulls in the reference: none is counted twice.
    assert found["null_rate(finish_reason)"]["n_reference"] == 1000
    assert found["null_rate(finish_reason)"]["evidence"]["reference_share"] == 0.01
    assert found["unmonitored_feature(top_k)"]["drifted"] is True
    assert len({body["verdict_id"] for body in found.values()}) == len(found)


def test_a_limit_may_be_left_out_where_a_signal_judges_and_true_counts_as_one(tmp_path: Path) -> None:
    errors = {"test": "limit", "field": "is_error", "figure": "rate"}
    signal = {"signal": "dynamic_threshold", "feature": "rate(is_error)"}
    loaded = load(tmp_path, features=["input_tokens"], tests=[errors], signals=[signal])
    (_, measured) = loaded.judges
    (body,) = verdicts(measured, bodies(300)).values()
    assert (body["feature"], body["status"], body["statistic"]) == ("rate(is_error)", "ok", 0.01)
    assert (body["drifted"], body["threshold"], body["evidence"]["measured_only"]) == (False, None, True)
    (follower,) = loaded.followers
    _, said = follower.step(None, Verdict.from_json(orjson.dumps(body)))
    assert (said[0].feature, said[0].evidence["figure"]) == ("dynamic_threshold(rate(is_error))", 0.01)


def test_windows_by_count_and_hours_against_hours_are_machines_over_slices(tmp_path: Path) -> None:
    counted = load(tmp_path, window_seconds=None, window_requests=500, findings=["null_rate"])
    assert counted.judges == ()
    assert [machine.uid for machine in counted.machines] == [
        "count:input_tokens:500",
        "count:attributes.temperature:500",
    ]
    hourly = load(tmp_path, window_seconds=3600, slide_seconds=3600, tests=[SAME_HOUR])
    assert [machine.uid for machine in hourly.machines] == ["earlier-hour:input_tokens:168"]


def test_a_tests_parameters_change_its_own_ids_alone(tmp_path: Path) -> None:
    def digests(threshold: float) -> list[str]:
        loaded = load(tmp_path, tests=[ALL_TESTS[0] | {"threshold": threshold}], findings=["null_rate"])
        return [body["config_digest"] for judge in loaded.judges for body in verdicts(judge, bodies(200)).values()]

    first, second = digests(0.25), digests(0.5)
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1]


def test_without_findings_and_tests_ids_are_as_before(tmp_path: Path) -> None:
    plain = verdicts(load(tmp_path).judges[0], bodies(200))["input_tokens"]
    more = verdicts(load(tmp_path, findings=["null_rate", "range"], tests=ALL_TESTS).judges[0], bodies(200))
    assert more["input_tokens"] == plain


def test_slices_are_monitors_beside_the_whole(tmp_path: Path) -> None:
    file = write_files(tmp_path, [monitor(group_by=["service_name"], slices=["tenant", "prompt_template"])])
    found = [(m.name, m.group_by) for m in load_monitors(file).monitors]
    assert found == [
        ("chat", ("service_name",)),
        ("chat/tenant", ("service_name", "tenant")),
        ("chat/prompt_template", ("service_name", "prompt_template")),
    ]


def test_a_false_alarm_budget_sets_alpha_and_says_what_it_promises(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fields = {"features": ["input_tokens"], "window_seconds": 300, "slide_seconds": 30, "min_effect": 0.0}
    loaded = load(tmp_path, false_alarms="1 per 1000 windows", expected_samples=100, autocorrelation=0, **fields)
    body = verdicts(loaded.judges[0], bodies(150))["input_tokens"]
    promise = body["evidence"]["false_alarm_budget"]
    assert 0 < body["alpha"] < 0.01
    assert body["threshold"] > body["statistic"]
    assert (promise["per_window"], promise["kept"]) == (0.001, False)
    assert body["evidence"]["false_alarms_per_window"] <= 0.001
    assert "the reference stands for 700 values" in promise["reason"]  # 700 < 10 x 150, and no minimum effect
    plain = verdicts(load(tmp_path, **fields).judges[0], bodies(150))["input_tokens"]
    assert plain["alpha"] == 0.01
    assert plain["config_digest"] != body["config_digest"]


def test_the_distribution_of_cosines_is_under_the_budget_and_the_mean_is_not(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rng = np.random.default_rng(3)
    embedding = build_embedding_reference(rng.standard_normal((2000, 3)) + 2.0, name="chat", source="a test")
    test = {"test": "embedding", "field": "prompt_embedding", "reference": embedding.save(tmp_path).name}
    fields = {"features": [], "tests": [test], "window_seconds": 300, "slide_seconds": 30, "expected_samples": 200}
    loaded = load(tmp_path, false_alarms="1 per 1000 windows", autocorrelation=0, **fields)
    (judge,) = loaded.judges
    vectors = list(rng.standard_normal((200, 3)) + 2.0)
    mean, ks = judge.judge(["s", "m"], 300_000, [judge.sketch(vectors)])
    assert loaded.budget_shares == 1
    assert ks.evidence["false_alarm_budget"] == {"per_window": 0.001, "kept": True}
    assert "false_alarm_budget" not in mean.evidence
    (told,) = explained(loaded, samples=200).judges
    assert told.false_alarms.startswith("distribution of cosines: ")
    assert "mean cosine keeps its own limit, NOT under" in told.false_alarms


@pytest.mark.slow
def test_a_budget_is_shared_by_features_and_series(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    common = {"window_seconds": 300, "slide_seconds": 30, "autocorrelation": 0, "expected_samples": 200}
    loaded = load(
        tmp_path,
        features=["input_tokens", "time_to_first_token_seconds"],
        false_alarms="1 per 7d",
        expected_series=10,
        **common,
    )
    body = verdicts(loaded.judges[0], bodies(150))["input_tokens"]
    assert body["evidence"]["false_alarm_budget"]["per_window"] == pytest.approx(1 / (7 * 86_400 / 30) / 20)


@pytest.mark.parametrize("name", ["null_rate", "transform_mismatch"])
def test_a_finding_may_stand_alone_or_with_parameters(tmp_path: Path, name: str) -> None:
    bare, spelt = (load(tmp_path, findings=[entry]).judges[0] for entry in (name, {name: None}))
    assert verdicts(bare, bodies(150)) == verdicts(spelt, bodies(150))
