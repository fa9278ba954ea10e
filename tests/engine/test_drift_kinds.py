"""Every test, finding and signal that a monitor may name, on a real broker and cluster: what the backtest says."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.monitors import backtest_of
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from jobs.monitor_judges import FINDINGS, TESTS
from jobs.monitor_signals import SIGNALS
from jobs.monitors import load_monitors
from schemas.feedback import Feedback
from schemas.requests import event_time_header
from schemas.times import rfc3339
from tests.drift_files import monitor, write_files
from tests.unit.test_monitor_judges import ALL_TESTS
from udfs.references.embedding_reference import build_embedding_reference

pytestmark = pytest.mark.engine
PREFIX = "kinds-test-"
HOUR_MS = 3_600_000
START_MS = 1_750_000_020_000 // HOUR_MS * HOUR_MS - 180_000  # the second half is another hour
MINUTES = 6
SIGNAL_LIST = [
    {"signal": "embedding_decay", "field": "prompt_embedding", "min_effective_n": 50},
    {"signal": "baseline_drop", "feature": "p50(factuality)", "learn_windows": 3},
    {"signal": "joint_confidence", "distribution_features": ["input_tokens"], "embedding_field": "prompt_embedding"},
    {
        "signal": "dynamic_threshold",
        "feature": "p50(factuality)",
        "wrong_side": "below",
        "period_seconds": 0,
        "min_windows": 3,
    },
]
HOURLY = monitor(
    name="hourly",
    group_by=[],
    features=["input_tokens"],
    window_seconds=3600,
    slide_seconds=3600,
    tests=[
        {"test": "kl_divergence", "field": "input_tokens", "threshold": 0.12},
        {"test": "same_hour", "field": "input_tokens", "lag_hours": 1},
    ],
    signals=[{"signal": "time_sensitive_score", "field": "input_tokens", "alarm_threshold": 0.4}],
)


COUNTED = monitor(
    name="counted",
    group_by=["service_name"],
    features=["input_tokens"],
    window_seconds=None,
    window_requests=500,
    findings=["null_rate", "range"],
)
# Its signals are not in the backtest, which has no labels.
FELT = monitor(
    name="felt",
    group_by=["service_name"],
    features=["input_tokens"],
    signals=[
        {
            "signal": "feedback",
            "score": "helpful",
            "baseline": 0.9,
            "window_seconds": 120,
            "slide_seconds": 60,
            "half_life_seconds": 1e9,
        },
        {"signal": "joint_confidence", "distribution_features": ["input_tokens"], "feedback_score": "helpful"},
    ],
)


def labels() -> list[bytes]:
    """A label a second for three minutes, of one service; every fourth is good."""
    return [
        Feedback(
            feedback_id=f"f{second}",
            score="helpful",
            value=float(second % 4 == 0),
            confidence=1.0,
            label_time_ms=START_MS + second * 1000,
            event_time_ms=START_MS + second * 1000 - 500,
            source="thumb",
            series={"service_name": "chat"},
            trace_id=f"{second:032x}",
        ).to_json()
        for second in range(180)
    ]


def requests() -> list[bytes]:
    """Ten requests a second of two services in random order; half way answers get worse and embeddings turn away."""
    rng = np.random.default_rng(3)
    made = []
    for number in range(MINUTES * 600):
        late_half = number >= MINUTES * 300
        body = {
            "event_time_ms": START_MS + number * 100 + int(rng.integers(0, 5000)),
            "trace_id": f"{number:032x}",
            "span_id": f"{number:016x}",
            "service_name": "chat" if rng.random() < 0.7 else "search",
            "tenant": "acme" if rng.random() < 0.5 else None,
            "input_tokens": int(rng.integers(1, 60)) * (1000 if late_half else 1),
            "output_tokens": 7,
            "queue_seconds": float(rng.random()),
            "finish_reason": str(rng.choice(["stop", "length", "filter"], p=[0.8, 0.15, 0.05])),
            "is_error": bool(rng.random() < 0.01),
            "arm": str(rng.choice(["control", "new"])),
            "factuality": 0.5 if late_half else 0.8,
            "prompt_embedding": [1.0, float(rng.integers(0, 3)) * (-1 if late_half else 1)],
            "attributes": {"temperature": 0.5, "agreement": float(rng.random() < 0.9), "kl": 0.1, "top_k": 5.0},
        }
        made.append(orjson.dumps({name: value for name, value in body.items() if value is not None}))
    return made


@pytest.fixture(scope="module")
def monitors_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    vectors = np.array([[1.0, float(number % 3)] for number in range(300)])
    embedding = build_embedding_reference(vectors, name="chat", source="a test").save(folder)
    chat = monitor(
        group_by=["service_name"],
        features=["input_tokens", "attributes.temperature", "finish_reason", "is_error"],
        findings=list(FINDINGS),
        tests=[*ALL_TESTS, {"test": "embedding", "field": "prompt_embedding", "reference": embedding.name}],
        signals=SIGNAL_LIST,
        slices=["tenant"],
    )
    promised = monitor(
        name="promised",
        features=["input_tokens", "finish_reason"],
        false_alarms="1 per 200 windows",
        expected_samples=400,
        autocorrelation=0,
    )
    assert {str(test["test"]) for test in [*chat["tests"], *HOURLY["tests"]]} == set(TESTS)
    signals = [*SIGNAL_LIST, *HOURLY["signals"], *FELT["signals"]]
    assert {str(signal["signal"]) for signal in signals} == set(SIGNALS)
    return write_files(folder, [chat, promised, HOURLY, COUNTED, FELT], watermark_bound_seconds=30)


@pytest.mark.timeout(400)
def test_the_job_says_of_every_kind_what_the_backtest_says(
    broker: Broker, flink: FlinkCluster, monitors_file: Path
) -> None:
    broker.create_topics(prefix=PREFIX)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    values = requests()
    for number, value in enumerate(values):
        header = event_time_header(orjson.loads(value)["event_time_ms"])
        producer.produce(PREFIX + "requests", value, str(number), headers=[header])
    for label in [*labels(), b"no label"]:
        producer.produce(PREFIX + "feedback", label)
    assert producer.flush(30) == 0
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX]
    arguments += ["--monitors", str(monitors_file), "--until-now", "--name-suffix=-kinds"]
    job = flink.run("jobs.drift", arguments)
    flink.rest.wait_for(job, {"FINISHED", "FAILED"}, 200)
    assert flink.state(job) == "FINISHED"

    kafka = KafkaClient(broker.bootstrap_servers)
    messages = list(follow(kafka, PREFIX + "verdicts", to_end=True))
    found = {orjson.loads(m.value())["verdict_id"]: m.value() for m in messages}
    assert len(found) == len(messages)
    dead = [orjson.loads(m.value()) for m in follow(kafka, PREFIX + "dead_letters", to_end=True)]
    assert [(letter["topic"], letter["reason"]) for letter in dead] == [(PREFIX + "feedback", "malformed_json")]
    felt = [body for body in map(orjson.loads, found.values()) if (body["monitor"], body["kind"]) == ("felt", "signal")]
    found = {body_id: value for body_id, value in found.items() if body_id not in {b["verdict_id"] for b in felt}}
    history = backtest_of(load_monitors(monitors_file))
    history.take(values)
    verdicts = [v for v in history.verdicts() if (v.monitor, v.kind) != ("felt", "signal")]
    wanted = {verdict.verdict_id: verdict for verdict in verdicts}
    assert found.keys() == wanted.keys()
    # Sums of numbers in another order may differ in their last digits; nothing else may.
    for verdict_id, value in found.items():
        assert close(orjson.loads(value), orjson.loads(wanted[verdict_id].to_json())), wanted[verdict_id]
    signals = {"embedding_decay", "baseline_drop", "joint_confidence", "time_sensitive_score", "dynamic_threshold"}
    assert signals <= {verdict.test for verdict in wanted.values()}
    assert len([verdict for verdict in wanted.values() if verdict.monitor == "counted"]) > 9
    assert any(v.feature == "ks_same_hour(input_tokens|1h)" and v.drifted for v in wanted.values())
    drifted = {verdict.feature for verdict in wanted.values() if verdict.drifted and verdict.monitor == "chat"}
    assert drifted >= {
        "input_tokens",
        "finish_reason",
        "range(input_tokens)",
        "new_category(finish_reason)",
        "transform_mismatch(input_tokens)",
        "unmonitored_feature(top_k)",
        "p50(factuality)",
        "mean_cosine(prompt_embedding)",
        "baseline_drop(factuality)",
        "dynamic_threshold(p50(factuality))",
    }
    check_felt(felt)


def check_felt(felt: list[dict[str, Any]]) -> None:
    """The labels' windows, and that joint confidence hears of them."""
    of_labels = {b["window_end"]: b for b in felt if b["feature"] == "feedback(helpful)"}
    first_ms = START_MS // 60_000 * 60_000 + 60_000
    assert [of_labels[rfc3339(first_ms + minute * 60_000)]["n_window"] for minute in range(3)] == [60, 120, 120]
    second = of_labels[rfc3339(first_ms + 60_000)]
    assert (second["statistic"], second["drifted"], second["series"]) == (0.25, True, {"service_name": "chat"})
    joint = [b for b in felt if b["feature"] == "joint_confidence"]
    assert any(b["evidence"]["signals"]["feedback"]["level"] for b in joint if b["series"] == second["series"])
    assert not any(b["evidence"]["signals"]["feedback"]["level"] for b in joint if b["series"] != second["series"])


def close(found: object, wanted: object) -> bool:
    """Whether two JSON values are alike, numbers to 12 digits."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[key], wanted[key]) for key in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    if isinstance(found, float) and isinstance(wanted, float):
        return found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    return found == wanted
