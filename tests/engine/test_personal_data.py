"""10,000 made-up personal values through ingest and audit on the real engines: none in what is stored or logged.

Raw bytes stay on Kafka alone (`otlp_spans` and `dead_letters`). Looked through are topic `requests`, Flink's whole
folder (logs, checkpoints, what is uploaded), and the Delta tables, as files and as values.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from infra.books import read_books
from infra.paths import jars
from jobs.kafka_client import KafkaClient
from jobs.mask_key import VARIABLE
from tests import audit_records, otlp
from tests.engine.test_ingest_job import read_topic
from tests.privacy.corpus import Case, positives
from tests.privacy.planted import Planted
from udfs.privacy.kinds import Kind
from udfs.privacy.latency_verdict import LATENCY, MONITOR, WITHHELD
from udfs.privacy.mask import MASK

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(400)]
PREFIX = "personal-data-"
NOW_MS = int(time.time() * 1000)
SECRET = "only-for-this-test-7f2a9c"
SPANS_A_MESSAGE, CASES = 40, 5_200
WEAK_AS_LABEL = {Kind.SECRET}  # no secret without the word before it


def value_text(text: str) -> AnyValue:
    return AnyValue(string_value=text)


def span_of(number: int, case: Case) -> Span:
    """A request whose prompt holds the case's text, in one of several places; every tenth has values in labels too."""
    span = otlp.request_span(number, NOW_MS + number)
    values = [case.text[f.start : f.end] for f in case.truth if f.kind not in WEAK_AS_LABEL]
    places = number % 5
    if places == 0:
        messages = orjson.dumps([{"role": "user", "parts": [{"type": "text", "content": case.text}]}]).decode()
        span.attributes.append(KeyValue(key="gen_ai.input.messages", value=value_text(messages)))
    elif places == 1:
        span.events.add(
            name="gen_ai.content.prompt", attributes=[KeyValue(key="gen_ai.prompt", value=value_text(case.text))]
        )
    elif places == 2:
        span.attributes.append(KeyValue(key="gen_ai.prompt.0.content", value=value_text(case.text)))
        span.parent_span_id = b"elsewhr1"  # waits in state for a parent that never comes
    else:
        span.attributes.append(KeyValue(key="gen_ai.completion", value=value_text(case.text)))
    if number % 10 == 3 and values:
        span.status.code = 2  # an error
        for key in ("tenant.id", "error.type", "experiment.id"):
            span.attributes.append(KeyValue(key=key, value=value_text(f"{key} {values[0]}")))
        span.attributes.append(KeyValue(key=f"seen.by {values[0]}", value=AnyValue(int_value=1)))
        span.attributes.append(KeyValue(key="user.id", value=value_text(values[0])))
    if number % 40 == 7:
        span.end_time_unix_nano += 86_400_000 * otlp.MS  # a clock a day ahead: to `dead_letters`, bytes and all
    return span


def messages(cases: list[Case]) -> Iterator[bytes]:
    """The cases as messages of both encodings; every tenth is sent once more, cut in two, which nobody can read."""
    for number, start in enumerate(range(0, len(cases), SPANS_A_MESSAGE)):
        spans = [span_of(start + place, case) for place, case in enumerate(cases[start : start + SPANS_A_MESSAGE])]
        message = otlp.json_message(spans) if number % 3 == 0 else otlp.message(spans)
        yield message
        if number % 10 == 0:
            yield message[: len(message) // 2]


def test_no_planted_value_is_stored_or_logged(broker, flink, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)
    cases = positives(CASES, seed=21)
    planted = Planted([case.text[f.start : f.end] for case in cases for f in case.truth])
    assert len(planted) >= 10_000
    broker.create_topics(prefix=PREFIX)
    job = flink.run("jobs.ingest", ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX,
        "--checkpoint-interval-seconds", "1", "--name-suffix=-personal", "--text", "masked", "--join-seconds", "3",
        "--masking-verdict-seconds", "2"])  # fmt: skip
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 4_000_000})
    sent = list(messages(cases))
    for number, message in enumerate(sent):
        producer.produce(PREFIX + "otlp_spans", message, partition=number % 2)
    producer.flush()
    books = _settled_books(KafkaClient(broker.bootstrap_servers), CASES)
    skewed = sum(number % 40 == 7 for number in range(CASES))
    assert books["requests"] == CASES - skewed
    time.sleep(3)  # a window of the verdicts, and its checkpoint

    requests = [value for _, value in read_topic(broker, PREFIX + "requests")]
    assert len(requests) == books["requests"]
    assert planted.within(b"\n".join(requests)) == []
    bodies = [orjson.loads(value) for value in requests]
    assert all(MASK.search(body.get("prompt", "") + body.get("response", "")) for body in bodies)
    letters = [orjson.loads(value) for _, value in read_topic(broker, PREFIX + "dead_letters")]
    assert len(letters) == skewed + len(sent) - -(-CASES // SPANS_A_MESSAGE)
    verdicts = [orjson.loads(value) for _, value in read_topic(broker, PREFIX + "verdicts")]
    assert {(v["monitor"], v["feature"], v["kind"]) for v in verdicts} == {
        (MONITOR, LATENCY, "finding"), (MONITOR, WITHHELD, "finding"),
    }  # fmt: skip
    assert sum(v["evidence"]["texts"] for v in verdicts if v["feature"] == LATENCY) == CASES
    assert {v["drifted"] for v in verdicts if v["feature"] == WITHHELD} == {False}
    assert flink.state(job) == "RUNNING"

    warehouse = _audited(broker, tmp_path)
    assert _leaks(planted, flink.folder) == []
    assert _leaks(planted, tmp_path) == []
    for path in warehouse.rglob("*.parquet"):
        assert planted.within(orjson.dumps(pq.read_table(path).to_pylist(), default=str)) == [], path
    letters_stored = sum(pq.read_metadata(path).num_rows for path in warehouse.rglob("dead_letters/**/*.parquet"))
    assert letters_stored == len(letters)
    refused = [pq.ParquetFile(path).read() for path in warehouse.rglob("quarantine/**/*.parquet")]
    assert {topic for rows in refused for topic in rows["kafka_topic"].to_pylist()} <= {PREFIX + "books"}
    flink.cancel(job)


def _audited(broker, folder: Path) -> Path:
    """Run the audit job once over everything, as its own process, and return the warehouse."""
    warehouse = folder / "warehouse"
    argv = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--warehouse", str(warehouse),
            "--jars", str(jars("spark")[0].parent), "--model-card", str(audit_records.CARD), "--once",
            "--status-file", str(folder / "status.json")]  # fmt: skip
    with (folder / "audit.log").open("wb") as log:
        subprocess.run([sys.executable, "-m", "jobs.audit", *argv], stdout=log, stderr=log, check=True)
    return warehouse


def _leaks(planted: Planted, folder: Path) -> list[tuple[str, list[str]]]:
    """Every file under `folder` that holds a planted value or the key, jars apart."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file() or path.is_symlink() or path.suffix in (".jar", ".zip"):
            continue
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # a checkpoint that the next one replaced
            continue
        values = planted.within(data) + ([SECRET] if SECRET.encode() in data else [])
        if values:
            found.append((str(path), values[:3]))
    return found


def _settled_books(kafka: KafkaClient, spans: int, timeout_seconds: float = 120) -> dict[str, int]:
    deadline = time.monotonic() + timeout_seconds
    books: dict[str, int] = {}
    while time.monotonic() < deadline:
        books = read_books(kafka, topic_prefix=PREFIX).get("ingest", {})
        if books.get("spans", 0) >= spans and books.get("waiting", 1) == 0:
            return books
        time.sleep(0.5)
    raise AssertionError(f"not settled: {books}")
