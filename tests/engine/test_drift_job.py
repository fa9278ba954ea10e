"""The drift job on a real broker and cluster: every window against scipy, every lost request accounted for."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from confluent_kafka import Producer

from infra.broker import Broker
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from jobs.monitors import Monitors, load_monitors
from schemas.books import drift_open
from schemas.request_headers import request_headers
from schemas.requests import EVENT_TIME_HEADER
from schemas.times import epoch_ms
from tests.drift_files import monitor, write_files
from tests.oracle import Expected, ExpectedVerdict, TopicRecord, expected

pytestmark = pytest.mark.engine
PREFIX = "drift-test-"
START_MS = (int(time.time()) // 60 - 20) * 60_000
MONITORS = [
    monitor(
        name="fast",
        features=["input_tokens", "time_to_first_token_seconds", "attributes.temperature"],
        min_samples=5,
        min_effect=0.1,
    ),
    monitor(
        name="exact",
        group_by=["service_name"],
        features=["queue_seconds", "output_tokens"],
        window_seconds=60,
        slide_seconds=60,
        method="exact",
        min_samples=1,
        slice_shards=3,
    ),
    monitor(name="all", group_by=[], features=["input_tokens"], window_seconds=40, slide_seconds=40, min_samples=1),
]
# Nothing of these can be judged. The first stands at the head of its partition, before any request.
POISON = [b"\xff\xfe\x00 garbage", b"", None, b"123", b'"text"', b"[]", b'{"event_time_ms": 17', b'{"a": 1}}'[:-2]]
BAD_TIMES = [None, -1, "soon", 1.5, START_MS + 86_400_000 * 365]


def values(rng: np.random.Generator) -> dict[str, Any]:
    """One request's fields: ties, constants, NaN, infinities, nulls, absent fields, and values no reference has."""
    body: dict[str, Any] = {
        "service_name": rng.choice(["chat", "search"], p=[0.8, 0.2]).item(),
        "input_tokens": int(rng.integers(1, 90)),
        "output_tokens": 7,
        "time_to_first_token_seconds": rng.choice([0.1, 0.25, 1.0, rng.lognormal(-1, 0.5)]).item(),
        "queue_seconds": rng.choice([0.0, -0.0, 1e-300]).item(),
        "attributes": {"temperature": round(rng.random(), 1), "other": 1.0},
    }
    body["model"] = rng.choice(["small", "large", "rare"], p=[0.6, 0.395, 0.005]).item()
    changes: list[tuple[str, Any]] = [
        ("time_to_first_token_seconds", "NaN"),
        ("time_to_first_token_seconds", "Infinity"),
        ("time_to_first_token_seconds", "-Infinity"),
        ("input_tokens", None),
        ("attributes", None),
        ("attributes", {"temperature": "NaN"}),
        ("model", None),
    ]
    if rng.random() < 0.3:
        name, value = changes[rng.integers(len(changes))]
        body[name] = value
    return {name: value for name, value in body.items() if value is not None}


def stream(seed: int) -> Iterator[bytes | None]:
    """The values of one partition in sending order: eight minutes, ordered but for some jitter and stragglers."""
    rng = np.random.default_rng(seed)
    yield POISON[0]
    for number in range(1500):
        at_ms = START_MS + number * 320 + int(rng.integers(0, 5000))
        if rng.random() < 0.03:
            at_ms -= int(rng.integers(10_000, 90_000))
        if not 500 <= number < 700 or seed % 2:  # one partition falls silent for a minute
            yield orjson.dumps({"event_time_ms": at_ms} | values(rng))
        if number % 200 == 50:
            yield POISON[number // 200]
        if number % 300 == 20:
            yield orjson.dumps({"event_time_ms": BAD_TIMES[number // 300]} | values(rng))


def headers(value: bytes | None) -> list[tuple[str, bytes]]:
    """What the ingest job would give a third of the requests; other writers know one header, or none."""
    try:
        body = orjson.loads(value or b"")
        everything = request_headers(body)
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        return [(EVENT_TIME_HEADER, b"\xff")]
    return ([], everything[:1], everything)[len(value or b"") % 3]


def send(broker: Broker) -> list[TopicRecord]:
    """Send both partitions in transactions, one of them aborted, and return what a reader of committed records gets."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "drift-test", "linger.ms": 5}
    )
    producer.init_transactions(30)
    records: list[TopicRecord] = []

    def keep(error: object, message: Any) -> None:
        assert error is None
        records.append(TopicRecord(message.partition(), message.offset(), message.timestamp()[1], message.value()))

    streams = [list(stream(seed)) for seed in (0, 1)]
    for chunk in range(0, max(map(len, streams)), 150):
        producer.begin_transaction()
        for partition, content in enumerate(streams):
            for value in content[chunk : chunk + 150]:
                producer.produce(
                    PREFIX + "requests", value, partition=partition, headers=headers(value), on_delivery=keep
                )
        producer.commit_transaction(30)
        if chunk == 300:
            producer.begin_transaction()
            producer.produce(PREFIX + "requests", orjson.dumps({"event_time_ms": START_MS + 10**9}), partition=0)
            producer.flush()
            producer.abort_transaction(30)
    return sorted(records, key=lambda record: (record.partition, record.offset))


@dataclass
class Outcome:
    """What one run of the job wrote, beside what it had to write."""

    expected: Expected
    verdicts: list[tuple[bytes, bytes]]
    letters: list[dict[str, Any]]
    books: dict[str, Counter[str]]
    state: str


@pytest.fixture(scope="module")
def records(broker: Broker) -> list[TopicRecord]:
    broker.create_topics(prefix=PREFIX)
    return send(broker)


@pytest.fixture(scope="module")
def monitors_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(
        tmp_path_factory.mktemp("monitors"), MONITORS, watermark_bound_seconds=5, idle_timeout_seconds=600
    )


def arguments(broker: Broker, monitors_file: Path, *more: str) -> list[str]:
    return ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--monitors", str(monitors_file),
            "--checkpoint-interval-seconds", "1", *more]  # fmt: skip


@pytest.fixture(scope="module")
def live(broker: Broker, flink: FlinkCluster, records: list[TopicRecord], monitors_file: Path) -> Outcome:
    """The job as it runs for ever, on two tasks, until it has written what it must."""
    wanted = expected(records, load_monitors(monitors_file))
    job = flink.run("jobs.drift", arguments(broker, monitors_file, "--parallelism", "2", "--name-suffix=-live"))
    deadline = time.monotonic() + 120
    outcome = read(broker, wanted)
    while time.monotonic() < deadline and not is_through(outcome):
        time.sleep(1)
        outcome = read(broker, wanted)
    outcome.state = flink.state(job)
    flink.cancel(job)
    return outcome


def is_through(outcome: Outcome) -> bool:
    wanted = outcome.expected
    return (
        len(outcome.verdicts) >= len(wanted.verdicts)
        and len(outcome.letters) >= len(wanted.dead_letters)
        and outcome.books == wanted.books
    )


def read(broker: Broker, wanted: Expected) -> Outcome:
    kafka = KafkaClient(broker.bootstrap_servers)
    verdicts = [(m.key(), m.value()) for m in follow(kafka, PREFIX + "verdicts", to_end=True)]
    letters = [orjson.loads(m.value()) for m in follow(kafka, PREFIX + "dead_letters", to_end=True)]
    books: dict[str, Counter[str]] = {}
    for message in follow(kafka, PREFIX + "books", to_end=True):
        entry = orjson.loads(message.value())
        books.setdefault(entry["monitor"], Counter())[entry["kind"]] += entry["count"]
    return Outcome(wanted, verdicts, letters, books, "")


def compared(value: bytes) -> tuple[str, ExpectedVerdict]:
    body = orjson.loads(value)
    fields = ("monitor", "feature", "series", "status", "statistic", "p_value", "drifted", "n_window", "n_window_null")
    verdict = {name: body[name] for name in fields} | {"n_infinite": body["n_infinite"]}
    return body["verdict_id"], ExpectedVerdict(**verdict, window_end_ms=epoch_ms(body["window_end"]))


def check_verdicts(outcome: Outcome) -> None:
    """Every expected window is there once, and no other; D is scipy's to the bit, p to rounding."""
    found = [compared(value) for _, value in outcome.verdicts]
    assert Counter(verdict_id for verdict_id, _ in found) == Counter(outcome.expected.verdicts.keys())
    for verdict_id, verdict in found:
        wanted = outcome.expected.verdicts[verdict_id]
        if verdict.p_value is not None and wanted.p_value is not None:
            assert verdict.p_value == pytest.approx(wanted.p_value, rel=1e-10, abs=0), wanted
            wanted = replace(wanted, p_value=verdict.p_value)
        assert verdict == wanted
    assert all(orjson.loads(value)["series_key"].encode() == key for key, value in outcome.verdicts)


def test_the_data_is_as_hard_as_it_is_meant_to_be(live: Outcome) -> None:
    wanted = live.expected
    assert {v.status for v in wanted.verdicts.values()} == {"ok", "insufficient_data"}
    assert {v.drifted for v in wanted.verdicts.values()} == {True, False, None}
    assert any(v.n_infinite and v.n_window_null for v in wanted.verdicts.values())
    assert any(v.n_window == 0 and v.n_window_null for v in wanted.verdicts.values())
    assert Counter(wanted.dead_letters.values()) >= Counter(late=20, bad_time=6, clock_skew=1, malformed_json=8)
    assert any(len(names) < len(MONITORS) for names in wanted.late_for.values())


def test_every_window_is_judged_once_and_as_scipy_judges_it(live: Outcome) -> None:
    check_verdicts(live)


def test_what_is_lost_is_in_the_dead_letters_once(live: Outcome, records: list[TopicRecord]) -> None:
    found = {(letter["partition"], letter["offset"]): letter for letter in live.letters}
    assert len(found) == len(live.letters) == len({letter["dead_letter_id"] for letter in live.letters})
    assert {place: letter["reason"] for place, letter in found.items()} == live.expected.dead_letters
    sent = {(record.partition, record.offset): record for record in records}
    for place, letter in found.items():
        assert letter["topic"] == PREFIX + "requests"
        assert letter["length"] == len(sent[place].value or b"")
        assert letter["kafka_timestamp_ms"] == sent[place].timestamp_ms
    for place, names in live.expected.late_for.items():
        assert found[place]["detail"] == f"its slice had closed for {', '.join(names)}"


def test_the_books_balance(live: Outcome) -> None:
    assert live.books == live.expected.books
    assert all(drift_open(counts) >= 0 for counts in live.books.values())


def test_the_job_stays_up(live: Outcome) -> None:
    assert live.state == "RUNNING"


def test_a_second_run_writes_the_same_ids_and_bytes(
    live: Outcome, broker: Broker, flink: FlinkCluster, records: list[TopicRecord], monitors_file: Path
) -> None:
    monitors: Monitors = load_monitors(monitors_file)
    job = flink.run("jobs.drift", arguments(broker, monitors_file, "--until-now", "--name-suffix=-again"))
    flink.rest.wait_for(job, {"FINISHED", "FAILED"}, 120)
    again = read(broker, expected(records, monitors, at_end=True))
    first = Counter(live.verdicts)
    second = Counter(again.verdicts) - first
    assert set(first) <= set(second)
    again.verdicts = list(second.elements())
    check_verdicts(again)


def test_what_headers_have_is_judged_alike(
    live: Outcome, broker: Broker, flink: FlinkCluster, records: list[TopicRecord], tmp_path: Path
) -> None:
    """The same topic, and monitors that want no field beyond the headers: so a third of the values are never parsed."""
    features = ["input_tokens", "time_to_first_token_seconds"]
    monitors = [monitor(name="by headers", features=features, min_samples=5), *MONITORS[1:]]
    file = write_files(tmp_path, monitors, watermark_bound_seconds=5, idle_timeout_seconds=600)
    wanted = expected(records, load_monitors(file), at_end=True)
    before = read(broker, wanted)
    job = flink.run("jobs.drift", arguments(broker, file, "--until-now", "--name-suffix=-by-headers"))
    flink.rest.wait_for(job, {"FINISHED", "FAILED"}, 120)
    found = read(broker, wanted)
    found.verdicts = list((Counter(found.verdicts) - Counter(before.verdicts)).elements())
    check_verdicts(found)
    assert places_of(found) - places_of(before) == Counter(
        (partition, offset, reason) for (partition, offset), reason in wanted.dead_letters.items()
    )
    assert all(letter["length"] for letter in found.letters if letter["reason"] == "late")


def places_of(outcome: Outcome) -> Counter[tuple[int, int, str]]:
    return Counter((letter["partition"], letter["offset"], letter["reason"]) for letter in outcome.letters)
