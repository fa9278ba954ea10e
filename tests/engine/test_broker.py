"""The embedded broker: nothing is lost when it is ended by force, and it speaks SASL to every client that asks."""

import signal
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from infra.books import read_books
from infra.broker import Broker, BrokerSettings
from infra.errors import StackError
from infra.ports import free_ports
from jobs.kafka_client import KafkaClient, load_kafka_client
from schemas.topics import ALL_TOPICS
from tests.conftest import SASL_PASSWORD, SASL_USERNAME

pytestmark = pytest.mark.engine


def entry(count: int) -> bytes:
    return orjson.dumps({"job": "ingest", "kind": "spans", "count": count, "window_end_ms": 0})


def test_killed_by_force_it_comes_back_with_all_it_acknowledged(tmp_path: Path) -> None:
    broker = Broker(tmp_path, BrokerSettings(*free_ports(2)))
    kafka = KafkaClient(broker.bootstrap_servers)
    try:
        broker.start()
        assert sorted(broker.create_topics()) == sorted(topic.name for topic in ALL_TOPICS)
        assert read_books(kafka) == {}
        producer = Producer({**kafka.for_librdkafka(), "transactional.id": "test"})
        producer.init_transactions()
        for count, commit in ((1, True), (20, True), (300, False)):
            producer.begin_transaction()
            producer.produce("books", entry(count))
            producer.flush()
            if commit:
                producer.commit_transaction()
        main = broker.service.process()
        assert main is not None
        main.send_signal(signal.SIGKILL)
        main.wait()
        broker.start()
        assert broker.create_topics() == []
        # The transaction that was open does not count, and a reader is not held up beyond it for ever.
        assert read_books(kafka) == {"ingest": {"spans": 21}}
    finally:
        broker.stop()
    assert broker.service.family() == []


def test_a_topic_that_nobody_declared_is_not_made(broker: Broker) -> None:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "x", "allow.auto.create.topics": True}
    )
    consumer.subscribe(["no_such_topic"])
    consumer.poll(2.0)
    consumer.close()
    assert "no_such_topic" not in AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics().topics


def sasl_client(broker: Broker, folder: Path) -> KafkaClient:
    file = folder / "kafka.yaml"
    file.write_text(
        "security.protocol: SASL_PLAINTEXT\nsasl.mechanism: PLAIN\n"
        f"sasl.username: {SASL_USERNAME}\nsasl.password: ${{TEST_KAFKA_PASSWORD}}\nlog_level: 0\n"
    )
    return load_kafka_client(broker.sasl_bootstrap_servers, str(file))


def test_a_client_with_the_password_from_the_environment_is_let_in(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KAFKA_PASSWORD", SASL_PASSWORD)
    client = sasl_client(broker, tmp_path)
    assert "books" in AdminClient(client.for_librdkafka()).list_topics(timeout=10).topics


def test_a_client_with_another_password_is_not(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KAFKA_PASSWORD", "wrong")
    client = sasl_client(broker, tmp_path)
    with pytest.raises(KafkaException):
        AdminClient(client.for_librdkafka()).list_topics(timeout=2)


def test_the_password_is_in_no_file_of_the_broker(broker: Broker) -> None:
    files = [file for file in broker.folder.rglob("*") if file.is_file() and file.suffix in (".properties", ".json")]
    assert files
    assert not [file for file in files if SASL_PASSWORD in file.read_text()]
    logs = "".join(file.read_text() for file in (broker.folder / "log").iterdir())
    assert SASL_PASSWORD not in logs


def test_one_that_cannot_start_says_why_and_is_not_mistaken_for_the_other(broker: Broker, tmp_path: Path) -> None:
    second = Broker(tmp_path, BrokerSettings(broker.settings.port, free_ports(1)[0]))
    try:
        with pytest.raises(StackError, match="ended while starting") as caught:
            second.start()
        assert "Address already in use" in caught.value.remedy
    finally:
        second.stop()
