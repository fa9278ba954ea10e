"""The experiment job on a real broker and cluster, stopped and resumed half way: verdicts as the pure machine's."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
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
from infra.paths import CONF
from jobs.experiments import load_experiments
from jobs.kafka_client import KafkaClient
from schemas.books import drift_open
from schemas.model_card import CARDS_FOLDER
from schemas.times import rfc3339
from tests.experiment_oracle import Expected, TopicRecord, expected

pytestmark = pytest.mark.engine
PREFIX = "experiment-test-"
WINDOW_MS, WINDOWS = 30_000, 36
START_MS = (int(time.time() * 1000) // WINDOW_MS - WINDOWS - 4) * WINDOW_MS
# chat-prompt: as planned, then 40/60, then a new epoch as planned. chat-canary: 95/5 and, in epoch "2", 50/50, kept.
SHIFT, CANARY_RAMP, PROMPT_EPOCH = 14, 22, 28
CARD = str(CARDS_FOLDER / "azure_llm_conversation_2023.json")
POISON = [b"\xff\xfe garbage", b"", None, b"123", b"[]", b'{"event_time_ms": 17']
BAD_TIMES = [None, -1, "soon", START_MS + 86_400_000 * 365]


def request(rng: np.random.Generator, window: int) -> dict[str, Any]:
    """One request of the window, without its time."""
    draw, user = rng.random(), int(rng.integers(0, 4000))
    if draw < 0.1:
        return {"model": "m"} | ({"experiment": "undeclared", "arm": "a"} if draw < 0.02 else {})
    if draw < 0.5:
        return canary(window, user)
    return prompt(rng, window, user)


def canary(window: int, user: int) -> dict[str, Any]:
    """The arm is the user's own, so none is in two arms but in window 12."""
    ramp = window >= CANARY_RAMP
    arm = "canary" if user % 100 < (50 if ramp else 5) else "stable"
    if window == 12:
        arm = "stable"
    body = {"experiment": "chat-canary", "arm": arm, "assignment_epoch": "2" if ramp else "1"}
    return body | {"user_hash": f"{user:064x}"}


def prompt(rng: np.random.Generator, window: int, user: int) -> dict[str, Any]:
    """Drawn anew for each request, so that users switch arms."""
    share = 0.4 if SHIFT <= window < PROMPT_EPOCH else 0.5
    arm = "control" if rng.random() < share else "treatment"
    body: dict[str, Any] = {"experiment": "chat-prompt", "arm": arm, "user_hash": f"user-{user}-{rng.integers(0, 3)}"}
    if window >= PROMPT_EPOCH:
        body["assignment_epoch"] = "next"
    if rng.random() < 0.05:
        del body["user_hash"]
    if rng.random() < 0.01:
        del body["arm"]
    if window == 9 and rng.random() < 0.05:
        body["arm"] = "shadow"
    return body


def stream(seed: int, first: int, stop: int) -> Iterator[bytes | None]:
    """One partition's records of some windows: ordered but for some jitter and stragglers, and with poison."""
    rng = np.random.default_rng([seed, first])
    per_window = 260
    for number in range(first * per_window, stop * per_window):
        at_ms = START_MS + number * WINDOW_MS // per_window + int(rng.integers(0, 4000))
        window = (at_ms - START_MS) // WINDOW_MS
        if rng.random() < 0.01 and not 18 <= window < 24:
            at_ms -= int(rng.integers(10_000, 90_000))
        # For two windows nothing at all comes.
        if window not in (18, 19):
            yield orjson.dumps({"event_time_ms": at_ms} | request(rng, window))
        if number % 1500 == 700:
            number_of_poison = number // 1500
            yield POISON[number_of_poison % len(POISON)]
            bad_time = BAD_TIMES[number_of_poison % len(BAD_TIMES)]
            yield orjson.dumps({"event_time_ms": bad_time, "experiment": "chat-prompt"})


def send(broker: Broker, first: int, stop: int) -> list[TopicRecord]:
    """Send the records of some windows to both partitions and return them as a reader gets them."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    records: list[TopicRecord] = []

    def keep(error: object, message: Any) -> None:
        assert error is None
        records.append(TopicRecord(message.partition(), message.offset(), message.timestamp()[1], message.value()))

    for partition in (0, 1):
        for value in stream(partition, first, stop):
            producer.produce(PREFIX + "requests", value, partition=partition, on_delivery=keep)
            producer.poll(0)
    assert producer.flush(30) == 0
    return sorted(records, key=lambda record: (record.partition, record.offset))


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


def write_experiments(folder: Path, *more: dict[str, Any]) -> Path:
    """Write the example that we ship, with `more` experiments."""
    body = yaml.safe_load((CONF / "experiments.yaml").read_text())
    body["experiments"] += more
    for experiment in body["experiments"]:
        experiment["model_card"] = CARD
    file = folder / "experiments.yaml"
    file.write_text(yaml.safe_dump(body | {"idle_timeout_seconds": 600}))
    return file


def arguments(broker: Broker, file: Path, *more: str) -> list[str]:
    return ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--experiments", str(file),
            "--checkpoint-interval-seconds", "1", *more]  # fmt: skip


def read(broker: Broker, wanted: Expected) -> Outcome:
    kafka = KafkaClient(broker.bootstrap_servers)
    verdicts = [(m.key(), m.value()) for m in follow(kafka, PREFIX + "verdicts", to_end=True)]
    letters = [orjson.loads(m.value()) for m in follow(kafka, PREFIX + "dead_letters", to_end=True)]
    books: Counter[str] = Counter()
    for message in follow(kafka, PREFIX + "books", to_end=True):
        entry = orjson.loads(message.value())
        assert (entry["job"], entry["monitor"]) == ("experiment", None)
        books[entry["kind"]] += entry["count"]
    return Outcome(wanted, verdicts, letters, books)


def wait_for(broker: Broker, wanted: Expected, timeout_seconds: float) -> Outcome:
    deadline = time.monotonic() + timeout_seconds
    while not (outcome := read(broker, wanted)).is_through and time.monotonic() < deadline:
        time.sleep(1)
    return outcome


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The example, and the same file edited: with one experiment more, which never gets a request."""
    never = {"name": "never", "arms": {"a": 1, "b": 1}, "no_data_windows": 5}
    folder = tmp_path_factory.mktemp
    return write_experiments(folder("example")), write_experiments(folder("edited"), never)


@pytest.fixture(scope="module")
def live(broker: Broker, flink: FlinkCluster, files: tuple[Path, Path]) -> Outcome:
    """The job on two tasks, stopped while half of its windows are through, and gone on with the edited file."""
    broker.create_topics(prefix=PREFIX)
    first, edited = (arguments(broker, file, "--parallelism", "2", "--name-suffix=-live") for file in files)
    records = send(broker, 0, WINDOWS // 2)
    job = flink.run("jobs.experiment", first)
    half = expected(records, load_experiments(files[0]))
    assert len(wait_for(broker, half, 120).verdicts) == len(half.verdicts)
    savepoint = flink.savepoint_and_stop(job)
    records = sorted(records + send(broker, WINDOWS // 2, WINDOWS), key=lambda r: (r.partition, r.offset))
    job = flink.run("jobs.experiment", edited, savepoint)
    added = {"never": half.last_window_end_ms}
    outcome = wait_for(broker, expected(records, load_experiments(files[1]), added_after_ms=added), 120)
    outcome.state = flink.state(job)
    flink.cancel(job)
    return outcome


def of(live: Outcome, feature: str) -> list[dict[str, Any]]:
    found = [orjson.loads(value) for _, value in live.verdicts]
    return sorted((body for body in found if body["feature"] == feature), key=lambda body: body["window_end"])


def test_every_verdict_is_that_of_the_pure_machine_once(live: Outcome) -> None:
    wanted = Counter((verdict.series_key.encode(), verdict.to_json()) for verdict in live.expected.verdicts)
    assert Counter(live.verdicts) == wanted
    assert len(wanted) > 4 * 2 * WINDOWS * 0.9


def test_a_split_that_is_kept_is_never_bad_not_even_through_a_ramp(live: Outcome) -> None:
    canary = of(live, "traffic_split(chat-canary)")
    assert {body["drifted"] for body in canary} == {False, None}
    statuses = {body["window_end"]: body["status"] for body in canary}
    assert [statuses[window_end(number)] for number in (18, 19, 20, 21)] == ["ok", "no_data", "no_data", "ok"]
    judged = [body for body in canary if body["status"] == "ok"]
    assert {body["evidence"]["epoch"] for body in judged} == {"1", "2"}


def test_a_split_that_shifts_is_found_and_a_new_epoch_starts_anew(live: Outcome) -> None:
    prompt = [body for body in of(live, "traffic_split(chat-prompt)") if body["status"] == "ok"]
    before = [body for body in prompt if body["window_end"] <= window_end(SHIFT)]
    after = [body for body in prompt if window_end(SHIFT + 8) < body["window_end"] <= window_end(PROMPT_EPOCH)]
    anew = [body for body in prompt if body["evidence"]["epoch"] == "next"]
    assert {body["drifted"] for body in before} == {body["drifted"] for body in anew} == {False}
    assert sum(body["drifted"] for body in after) >= len(after) - 1 > 3
    assert after[-1]["p_value"] < 1e-6
    assert anew[0]["p_value"] > 0.01
    assert anew[0]["evidence"]["n_since_epoch"] < after[-1]["evidence"]["n_since_epoch"]


def window_end(number: int) -> str:
    """The end of the window before the `number`-th, as verdicts write it."""
    return rfc3339(START_MS + number * WINDOW_MS)


def test_users_in_two_arms_and_unknown_arms_are_found(live: Outcome) -> None:
    sticky = {body["window_end"]: body["drifted"] for body in of(live, "sticky_assignment(chat-canary)")}
    assert [sticky[window_end(number)] for number in (1, 9, 18, 19, WINDOWS - 1)] == [False, False, True, None, False]
    prompt = {body["window_end"]: body for body in of(live, "sticky_assignment(chat-prompt)")}[window_end(SHIFT)]
    assert (prompt["drifted"], prompt["method"], prompt["n_window_null"] > 0) == (True, "exact", True)
    unknown = [body for body in of(live, "unknown_arm(chat-prompt)") if body["drifted"]]
    assert [body["evidence"]["arms"][0]["arm"] for body in unknown] == ["shadow"]


def test_an_experiment_that_never_had_traffic_says_so_for_a_while(live: Outcome) -> None:
    never = of(live, "traffic_split(never)")
    assert [(body["status"], body["drifted"]) for body in never] == [("no_data", None)] * 5
    assert never[0]["window_end"] > window_end(WINDOWS // 2 - 1)


def test_what_is_lost_is_in_the_dead_letters_once(live: Outcome) -> None:
    found = {(letter["partition"], letter["offset"]): letter["reason"] for letter in live.letters}
    assert found == live.expected.dead_letters
    assert len(found) == len(live.letters)
    assert {letter["job"] for letter in live.letters} == {"experiment"}
    assert set(found.values()) >= {"late", "malformed_json", "no_value", "bad_time", "clock_skew"}


def test_the_books_balance(live: Outcome) -> None:
    assert live.books == live.expected.books
    assert drift_open(live.books) >= 0
    assert live.state == "RUNNING"


@pytest.mark.slow
def test_a_second_run_writes_the_same_bytes(
    live: Outcome, broker: Broker, flink: FlinkCluster, files: tuple[Path, Path]
) -> None:
    job = flink.run("jobs.experiment", arguments(broker, files[0], "--until-now", "--name-suffix=-again"))
    flink.rest.wait_for(job, {"FINISHED", "FAILED"}, 120)
    again = Counter(read(broker, live.expected).verdicts) - Counter(live.verdicts)
    assert {verdict for verdict in live.verdicts if b'["never"' not in verdict[0]} <= set(again)
    assert max(again.values()) == 1
