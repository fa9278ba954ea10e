"""A reference from a real topic: committed requests of a range of event time, and nothing else."""

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.reference import command
from schemas.topics import REQUESTS
from udfs.references.profile import ReferenceProfile

pytestmark = pytest.mark.engine
START_MS = 1_700_000_000_000


def send(producer: Producer, topic: str, requests: list[dict[str, object]], *, commit: bool) -> None:
    producer.begin_transaction()
    for request in requests:
        producer.produce(topic, orjson.dumps(request))
    if commit:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()


def request(second: int, **fields: object) -> dict[str, object]:
    return {"event_time_ms": START_MS + second * 1000, "input_tokens": second, "tenant": "acme", **fields}


def test_committed_requests_of_the_range(broker: Broker, tmp_path: Path) -> None:
    topic = "reference-" + REQUESTS.name
    broker.create_topics([REQUESTS], "reference-")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "test-reference"})
    producer.init_transactions()
    attributes = {"temperature": 0.5}
    send(
        producer, topic, [request(s, attributes=attributes, perplexity="Infinity") for s in range(0, 200)], commit=True
    )
    send(producer, topic, [request(s, input_tokens=99_999) for s in range(50, 60)], commit=False)
    send(producer, topic, [request(s, tenant="globex") for s in range(100, 150)], commit=True)
    arguments = f"build chat --from-topic {topic} --bootstrap-servers {broker.bootstrap_servers} --out {tmp_path} "
    arguments += "--since 2023-11-14T22:14:00Z --until 2023-11-14T22:16:00Z --where tenant=acme "
    arguments += "--features input_tokens,attributes.temperature,perplexity,queue_seconds"
    result = CliRunner().invoke(command, arguments.split())
    assert result.exit_code == 2, "queue_seconds is empty in all of them"
    assert "queue_seconds" in result.output
    result = CliRunner().invoke(command, arguments.removesuffix(",queue_seconds").split())
    assert result.exit_code == 0, result.output
    profile = ReferenceProfile.load(result.stdout.splitlines()[-1])
    assert profile.features["input_tokens"].points.tolist() == list(range(40, 160))  # 22:13:20 is second 0
    assert profile.features["attributes.temperature"].n_raw == 120
    assert profile.features["perplexity"].n_infinite == 120

    nothing = arguments.replace("tenant=acme", "tenant=initech")
    refused = CliRunner().invoke(command, nothing.split())
    assert "no request where tenant=initech" in str(refused.exception)
