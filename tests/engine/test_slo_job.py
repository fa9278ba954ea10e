"""The SLO job on a real broker and cluster, stopped and resumed half way: verdicts as the pure machine's, once."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.slo import command as slo_command
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from infra.paths import CONF
from jobs.kafka_client import KafkaClient
from jobs.slos import Slos, load_slos
from schemas.books import drift_open
from schemas.model_card import CARDS_FOLDER
from schemas.verdicts import Verdict
from tests.slo_oracle import TopicRecord
from tests.slo_oracle import expected as expected_of

pytestmark = pytest.mark.engine
PREFIX = "slo-test-"
SLICE_MS, SLICES, PER_SLICE, BOUND_MS = 30_000, 60, 120, 10_000
START_MS = (int(time.time() * 1000) // 300_000 - 8) * 300_000
# From here on model m2 is silent, and m1 slow and failing.
SILENT, SLOW = 24, 34
POISON = [b"\xff\xfe garbage", b"", None, b"[]", b'{"event_time_ms": -1}']


def request(rng: np.random.Generator, at_slice: int) -> dict[str, Any]:
    """One request of a slice, without its time."""
    slow = at_slice >= SLOW
    body: dict[str, Any] = {
        "service_name": "chat",
        "model": "m2" if rng.random() < 0.3 and at_slice < SILENT else "m1",
        "is_error": bool(rng.random() < (0.6 if slow else 0.002)),
        "is_streaming": bool(rng.random() < 0.9),
        "time_to_first_token_seconds": float(rng.gamma(4, 0.3 if slow else 0.08)),
        "end_to_end_seconds": float(rng.gamma(4, 0.5)),
        "input_tokens": int(rng.integers(10, 2000)),
        "kv_cache_hit_ratio": float(rng.random()),
    }
    if rng.random() < 0.02:
        del body["time_to_first_token_seconds"]
    return body


def score(rng: np.random.Generator, at_slice: int) -> dict[str, Any]:
    """One score: of a qualified judge, but for a while of another; sampled at one of two rates."""
    f1 = 0.9 if 10 <= at_slice < 20 else 0.95
    name = "factuality" if rng.random() < 0.8 else "toxicity"
    rate = 0.3 if rng.random() < 0.5 else 1.0
    body = {"service_name": "chat", "score": name, "value": float(rng.random() ** 0.05), "sampling_rate": rate}
    return body | {"judge": {"f1": f1, "n": 500}}


def measurement(rng: np.random.Generator, at_slice: int) -> dict[str, Any]:
    """One point: a histogram, a counter, or a gauge; once all observations are 0."""
    body: dict[str, Any] = {"service_name": "chat", "labels": {"pod": "a"}}
    kind = rng.integers(0, 3)
    if kind == 0:
        counts = rng.multinomial(100, [0.7, 0.28, 0.02]).tolist()
        return body | {"name": "ttft", "kind": "histogram_delta", "count": 100, "bounds": [0.4, 0.8],
                       "bucket_counts": counts, "sum": 0.0 if at_slice == 7 else 30.0}  # fmt: skip
    return body | {"name": "ttft", "kind": "gauge" if kind == 1 else "counter_delta", "value": 5.0}


RECORDS = {"requests": (request, PER_SLICE), "scores": (score, 30), "measurements": (measurement, 6)}


def stream(topic: str, partition: int, first: int, stop: int) -> Iterator[bytes | None]:
    """One partition's records of some slices: ordered but for some jitter and stragglers, and with poison."""
    record, per_slice = RECORDS[topic]
    rng = np.random.default_rng([per_slice, partition, first])
    for number in range(first * per_slice, stop * per_slice):
        at_ms = START_MS + number * SLICE_MS // per_slice + int(rng.integers(0, 4000))
        if rng.random() < 0.01:
            at_ms -= int(rng.integers(10_000, 90_000))
        yield orjson.dumps({"event_time_ms": at_ms} | record(rng, (at_ms - START_MS) // SLICE_MS))
        if number % 1000 == 700:
            yield POISON[number // 1000 % len(POISON)]


@dataclass
class Expected:
    """What the job must write, of all topics."""

    verdicts: list[Verdict] = field(default_factory=list)
    dead_letters: dict[tuple[str, int, int], str] = field(default_factory=dict)
    books: Counter[str] = field(default_factory=Counter)


Sent = dict[str, list[TopicRecord]]


def send(broker: Broker, first: int, stop: int) -> Sent:
    """Send the records of some slices to both partitions of each topic and return them as a reader gets them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    records: Sent = {topic: [] for topic in RECORDS}

    def keep(error: object, message: Any) -> None:
        assert error is None
        record = TopicRecord(message.partition(), message.offset(), message.timestamp()[1], message.value())
        records[message.topic().removeprefix(PREFIX)].append(record)

    for topic in RECORDS:
        for partition in (0, 1):
            for value in stream(topic, partition, first, stop):
                producer.produce(PREFIX + topic, value, partition=partition, on_delivery=keep)
                producer.poll(0)
    assert producer.flush(30) == 0
    return records


def expected(records: Sent, slos: Slos) -> Expected:
    """Return what the job has written of all topics."""
    whole = Expected()
    for topic, of in records.items():
        part = expected_of(sorted(of, key=lambda r: (r.partition, r.offset)), slos, BOUND_MS, topic)
        whole.verdicts += part.verdicts
        whole.dead_letters |= {(PREFIX + topic, *place): reason for place, reason in part.dead_letters.items()}
        whole.books += part.books
    return whole


@dataclass
class Outcome:
    """What the job wrote, beside what it had to write."""

    expected: Expected
    verdicts: list[tuple[bytes, bytes]]
    letters: list[dict[str, Any]]
    books: Counter[str]
    state: str = ""

    @property
    def is_through(self) -> bool:
        return (
            len(self.verdicts) >= len(self.expected.verdicts)
            and len(self.letters) >= len(self.expected.dead_letters)
            and self.books == self.expected.books
        )


def read(broker: Broker, wanted: Expected) -> Outcome:
    kafka = KafkaClient(broker.bootstrap_servers)
    verdicts = [(m.key(), m.value()) for m in follow(kafka, PREFIX + "verdicts", to_end=True)]
    letters = [orjson.loads(m.value()) for m in follow(kafka, PREFIX + "dead_letters", to_end=True)]
    books: Counter[str] = Counter()
    for message in follow(kafka, PREFIX + "books", to_end=True):
        entry = orjson.loads(message.value())
        assert (entry["job"], entry["monitor"]) == ("slo", None)
        books[entry["kind"]] += entry["count"]
    return Outcome(wanted, verdicts, letters, books)


def wait_for(broker: Broker, wanted: Expected, timeout_seconds: float) -> Outcome:
    deadline = time.monotonic() + timeout_seconds
    while not (outcome := read(broker, wanted)).is_through and time.monotonic() < deadline:
        time.sleep(1)
    return outcome


def ratio(name: str, part: str, topic: str, which: dict[str, Any], where: list[Any], **more: Any) -> dict[str, Any]:
    """An SLO on a ratio of another topic."""
    metrics = {"total": which | {"from": topic}, part: which | {"from": topic, "where": where} | more}
    sources = {of: {"metricSource": {"type": "slacktide", "spec": spec}} for of, spec in metrics.items()}
    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": name, "annotations": {"slacktide.dev/window": "1m", "slacktide.dev/window-limit": "0.05"}},
        "spec": {
            "service": "chat",
            "indicator": {"spec": {"ratioMetric": sources}},
            "budgetingMethod": "Occurrences",
            "objectives": [{"target": 0.97}],
        },
    }


def quantile(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An SLO on a quantile of another topic, below 0.8 in 97 % of windows."""
    slo = ratio(name, "bad", "", {}, [])
    del slo["metadata"]["annotations"]
    slo["spec"]["indicator"] = {"spec": {"thresholdMetric": {"metricSource": {"type": "slacktide", "spec": spec}}}}
    slo["spec"]["objectives"] = [{"op": "lt", "value": 0.8, "target": 0.97}]
    return slo


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped SLOs, one of them by service alone: two groups of series."""
    documents = list(yaml.safe_load_all((CONF / "slos.yaml").read_text()))
    for document in documents:
        annotations = document["metadata"].get("annotations", {})
        annotations.pop("slacktide.dev/model-card", None)
        if document["metadata"]["name"] == "latency-for-its-size":
            annotations["slacktide.dev/group-by"] = "service_name"
    documents += [
        ratio("scored", "bad", "scores", {"score": "factuality"}, [{"field": "value", "op": "lt", "value": 0.8}])
    ]
    documents += [ratio("measured", "good", "measurements", {"name": "ttft"}, [], at_most=0.8)]
    documents[-2]["metadata"]["annotations"] |= {"slacktide.dev/judged": "true"}
    documents += [quantile("measured-p90", {"from": "measurements", "name": "ttft", "quantile": 0.9, "window": "1m"})]
    path = tmp_path_factory.mktemp("slos") / "slos.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


@pytest.fixture(scope="module")
def live(broker: Broker, flink: FlinkCluster, file: Path) -> Outcome:
    """The job, stopped while half of its slices are through, and gone on."""
    broker.create_topics(prefix=PREFIX)
    card = CARDS_FOLDER / "azure_llm_conversation_2023.json"
    slos = load_slos(file, card)
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--slos", str(file),
                 "--model-card", str(card), "--checkpoint-interval-seconds", "1",
                 "--idle-timeout-seconds", "600"]  # fmt: skip
    records = send(broker, 0, SLICES // 2)
    job = flink.run("jobs.slo", arguments)
    half = expected(records, slos)
    assert len(wait_for(broker, half, 120).verdicts) == len(half.verdicts)
    savepoint = flink.savepoint_and_stop(job)
    more = send(broker, SLICES // 2, SLICES)
    records = {topic: of + more[topic] for topic, of in records.items()}
    job = flink.run("jobs.slo", arguments, savepoint)
    outcome = wait_for(broker, expected(records, slos), 120)
    outcome.state = flink.state(job)
    flink.cancel(job)
    return outcome


def of(live: Outcome, feature: str, model: str = "m1") -> list[dict[str, Any]]:
    found = [orjson.loads(value) for _, value in live.verdicts]
    chosen = [body for body in found if body["feature"] == feature and body["series"].get("model", model) == model]
    return sorted(chosen, key=lambda body: body["window_end"])


def test_every_verdict_is_that_of_the_pure_machine_once(live: Outcome) -> None:
    wanted = Counter((verdict.series_key.encode(), verdict.to_json()) for verdict in live.expected.verdicts)
    assert Counter(live.verdicts) == wanted
    assert len(wanted) > 600
    assert live.state == "RUNNING"


def test_a_slow_service_is_found_by_window_and_by_burn_rate(live: Outcome) -> None:
    windows = [body["drifted"] for body in of(live, "sli(ttft-p95)")]
    assert not any(windows[: SLOW - 1])
    assert all(windows[SLOW + 2 : SLICES - 2])
    assert of(live, "burn_page(availability)")[-1]["drifted"] is True
    budget = of(live, "budget(ttft-under-800ms)")[-1]
    assert budget["drifted"] is True
    assert budget["evidence"]["budget_remaining"] < 0


def test_a_silent_series_says_no_data(live: Outcome) -> None:
    statuses = [body["status"] for body in of(live, "sli(ttft-p95)", "m2")]
    assert statuses[: SILENT - 2] == ["ok"] * (SILENT - 2)
    assert set(statuses[SILENT + 1 :]) == {"no_data"}
    assert len(statuses) > SILENT + 20


def test_scores_count_only_of_a_qualified_judge(live: Outcome) -> None:
    windows = of(live, "sli(scored)")
    assert {body["status"] for body in windows[10:19]} <= {"ok", "judge_unqualified"}
    assert "judge_unqualified" in {body["status"] for body in windows}
    share = 0.8**20  # P(u^0.05 < 0.8)
    budget = of(live, "budget(scored)")[-1]
    assert abs(budget["evidence"]["sli"] - (1 - share)) < 0.02
    # Half of them stand for 1, half for 10 / 3 requests.
    assert budget["n_window"] == budget["evidence"]["n_sampled"] > 1000
    assert abs(budget["evidence"]["total"] / budget["n_window"] - 13 / 6) < 0.15


def test_metric_points_count_their_observations(live: Outcome) -> None:
    evidence = of(live, "budget(measured)")[-1]["evidence"]
    assert evidence["total"] > 10_000
    assert abs(evidence["sli"] - 0.98) < 0.01
    windows = [body["statistic"] for body in of(live, "sli(measured-p90)") if body["status"] == "ok"]
    assert len(windows) > SLICES // 2 - 5
    # 0.7 of the observations are up to 0.4, 0.98 up to 0.8: the ninth tenth lies 0.2 / 0.28 of the way between.
    assert abs(sum(windows) / len(windows) - (0.4 + 0.4 * 0.2 / 0.28)) < 0.02


def test_the_command_shows_where_they_stand(live: Outcome, broker: Broker) -> None:
    where = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX]
    result = CliRunner().invoke(slo_command, where)
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.output.splitlines() if line and "model=m2" not in line}
    assert {"ttft-p95", "availability", "scored", "measured"} <= set(lines)
    assert "page" in lines["availability"]
    assert "no_data" in lines["hallucination-rate"]
    assert live.state == "RUNNING"


def test_what_is_lost_is_in_the_dead_letters_once_and_the_books_balance(live: Outcome) -> None:
    found = {(letter["topic"], letter["partition"], letter["offset"]): letter["reason"] for letter in live.letters}
    assert found == live.expected.dead_letters
    assert len(found) == len(live.letters)
    assert set(found.values()) >= {"late", "malformed_json", "no_value", "bad_time"}
    assert live.books == live.expected.books
    assert drift_open(live.books) >= 0
