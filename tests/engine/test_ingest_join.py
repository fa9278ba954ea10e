"""The join of a trace over messages on a real broker and cluster: any spread, any order, a kill in mid-wait, an idle
source; each request is there once, as one message would have given it, and the books balance."""

import random
import time
from collections.abc import Callable
from typing import Any

import orjson
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from infra.books import read_books
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from schemas.books import ingest_balance
from schemas.request_headers import request_headers
from tests import otlp
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.request_lines import request_json

pytestmark = pytest.mark.engine
PREFIX = "ingest-join-test-"
TOPIC = PREFIX + "otlp_spans"
PARTITIONS = 2
JOIN_MS = 3_000
NOW_MS = int(time.time() * 1000)
TRACES = 20

Books = dict[str, int]


def trace(number: int) -> list[Span]:
    """A client's call through HTTP to an engine with its phases, and a retry: six spans, one request."""
    client = otlp.request_span(number, NOW_MS + number)
    client.kind = Span.SPAN_KIND_CLIENT
    del client.attributes[-1]  # the time to first token: only the engine knows it
    post, served, engine, failed = (
        _copy(client, f"{number}/{name}") for name in ("post", "served", "engine", "failed")
    )
    for plain, kind in ((post, Span.SPAN_KIND_CLIENT), (served, Span.SPAN_KIND_SERVER)):
        del plain.attributes[:]
        plain.kind, plain.name = kind, "POST"
    engine.CopyFrom(_copy(otlp.request_span(number, NOW_MS + number), f"{number}/engine"))
    post.parent_span_id, served.parent_span_id = client.span_id, post.span_id
    engine.parent_span_id, failed.parent_span_id = served.span_id, client.span_id
    queue = _copy(served, f"{number}/queue")
    queue.name, queue.kind, queue.parent_span_id = "queue", Span.SPAN_KIND_INTERNAL, engine.span_id
    return [client, post, served, engine, failed, queue]


def _copy(span: Span, name: str) -> Span:
    copy = Span()
    copy.CopyFrom(span)
    copy.span_id = otlp.ids_of(name)[1]
    return copy


def expected_requests(traces: list[list[Span]]) -> list[dict[str, Any]]:
    """What each trace gives when it comes in one message."""
    table = decode_spans([otlp.message(spans) for spans in traces], "otlp_proto")[0]
    requests = table.filter(pc.field("is_request"))
    return sorted((orjson.loads(text) for text in request_json(requests).to_pylist()), key=_id)


def _id(request: dict[str, Any]) -> str:
    return str(request["span_id"])


class Sender:
    """Sends spans spread over messages and partitions, in an order drawn by `seed`, under chosen Kafka timestamps."""

    def __init__(self, broker, seed: int) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "partitioner": "random"})
        self._draw = random.Random(seed)

    def send(self, spans: list[Span], at_ms: int) -> None:
        """Send all of them at one Kafka time, most in messages of their own, the others in twos and threes."""
        spans = self._draw.sample(spans, len(spans))
        while spans:
            size = self._draw.choice([1, 1, 1, 2, 3])
            message, spans = otlp.message(spans[:size]), spans[size:]
            self._producer.produce(TOPIC, message, partition=self._draw.randrange(PARTITIONS), timestamp=at_ms)
        self._flush()

    def advance(self, at_ms: int) -> None:
        """Move Kafka's time on in every partition, by messages that hold no spans."""
        for partition in range(PARTITIONS):
            self._producer.produce(TOPIC, b"", partition=partition, timestamp=at_ms)
        self._flush()

    def _flush(self) -> None:
        assert self._producer.flush(30) == 0


@pytest.fixture(scope="module")
def kafka(broker) -> KafkaClient:
    broker.create_topics(prefix=PREFIX)
    return KafkaClient(broker.bootstrap_servers)


def books_of(kafka: KafkaClient) -> Books:
    return read_books(kafka, topic_prefix=PREFIX).get("ingest", {})


def wait_for(what: Callable[[], object], expected: object, timeout_seconds: float = 120) -> None:
    deadline = time.monotonic() + timeout_seconds
    while (found := what()) != expected:
        assert time.monotonic() < deadline, f"{found} is not {expected}"
        time.sleep(0.5)


def requests_on(kafka: KafkaClient) -> list[dict[str, Any]]:
    found = []
    for message in follow(kafka, PREFIX + "requests", to_end=True):
        found.append(orjson.loads(message.value()))
        assert sorted(message.headers()) == sorted(request_headers(found[-1]))
    return sorted(found, key=_id)


def test_traces_spread_over_messages_and_partitions_become_the_requests_of_one_message(broker, flink, kafka) -> None:
    traces = [trace(number) for number in range(3 * TRACES)]
    first, second, idle = (traces[at : at + TRACES] for at in range(0, 3 * TRACES, TRACES))
    assert {r["attempts"] for r in expected_requests(traces)} == {2}
    sender = Sender(broker, seed=3)
    job = flink.run("jobs.ingest", ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX,
                    "--checkpoint-interval-seconds", "1", "--join-seconds", str(JOIN_MS // 1000),
                    "--name-suffix=-join"])  # fmt: skip
    spans = [span for of_trace in first for span in of_trace]
    copies = spans[::7]
    sender.send(spans, NOW_MS)
    wait_for(lambda: books_of(kafka).get("waiting"), len(spans), timeout_seconds=60)
    sender.send(copies, NOW_MS + 1000)
    sender.advance(NOW_MS + 60_000)
    genai_copies = sum(span.name == "llm_request" for span in copies)
    child = len(spans) - TRACES + len(copies) - genai_copies
    wait_for(lambda: books_of(kafka), {"spans": len(spans) + len(copies), "waiting": 0, "requests": TRACES,
                                       "child": child, "duplicate": genai_copies})  # fmt: skip
    assert requests_on(kafka) == expected_requests(first)

    # Killed while the second lot waits: half of its spans lie in restored state, half come after it.
    spans = [span for of_trace in second for span in of_trace]
    sender.send(spans[::2], NOW_MS + 70_000)
    wait_for(lambda: books_of(kafka).get("waiting"), len(spans[::2]), timeout_seconds=60)
    process = flink.taskmanager.process()
    process.kill()
    process.wait(30)
    flink.taskmanager.start()
    flink.wait_ready()
    flink.wait_processing(job)
    sender.send(spans[1::2], NOW_MS + 71_000)
    sender.advance(NOW_MS + 130_000)
    wait_for(lambda: books_of(kafka).get("requests"), 2 * TRACES)
    assert requests_on(kafka) == expected_requests(first + second)

    # Nothing moves Kafka's time on after the third: the wall clock ends the wait.
    sender.send([span for of_trace in idle for span in of_trace], int(time.time() * 1000))
    wait_for(lambda: books_of(kafka).get("requests"), 3 * TRACES, timeout_seconds=60)
    assert requests_on(kafka) == expected_requests(traces)
    books = books_of(kafka)
    assert (books["waiting"], ingest_balance(books)) == (0, 0)
    assert flink.state(job) == "RUNNING"
    flink.cancel(job)
