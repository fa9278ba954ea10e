"""Kafka over TLS: a broker that asks for client certificates is written and read by librdkafka and by a Flink job."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from infra.books import read_books
from infra.broker import Broker, BrokerSettings
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from infra.ports import LOOPBACK, free_ports
from jobs.kafka_client import load_kafka_client
from tests import otlp

pytestmark = [pytest.mark.engine, pytest.mark.slow]
REQUESTS = 9


def openssl(folder: Path, *words: str) -> None:
    done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def signed(folder: Path, name: str) -> None:
    """A key and a certificate for loopback, signed by the CA in `folder`: name.key, name.crt."""
    (folder / f"{name}.ext").write_text(f"subjectAltName=IP:{LOOPBACK}\n")
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", f"/CN={name}")  # fmt: skip
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.crt, and key and certificate of `broker` and `client`."""
    folder = tmp_path_factory.mktemp("certificates")
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt",
            "-days", "2", "-subj", "/CN=test CA")  # fmt: skip
    for name in ("broker", "client"):
        signed(folder, name)
    (folder / "broker.pem").write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())
    return folder


@pytest.fixture(scope="module")
def tls_servers(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker's TLS listener; clients must show a certificate of our CA."""
    port, controller_port, tls_port = free_ports(3)
    broker = Broker(tmp_path_factory.mktemp("tls-broker"), BrokerSettings(port, controller_port))
    broker.prepare()
    file = broker.folder / "broker.properties"
    plain, tls = f"PLAINTEXT://{LOOPBACK}:{port}", f"SSL://{LOOPBACK}:{tls_port}"
    text = file.read_text().replace(plain, f"{plain},{tls}")
    text = text.replace("PLAINTEXT:PLAINTEXT,", "PLAINTEXT:PLAINTEXT,SSL:SSL,", 1)
    stores = {"keystore": certificates / "broker.pem", "truststore": certificates / "ca.crt"}
    for store, path in stores.items():
        text += f"\nssl.{store}.type=PEM\nssl.{store}.location={path}"
    file.write_text(text + "\nssl.client.auth=required\n")
    try:
        broker.service.start()
        broker.wait_ready()
        broker.create_topics()
        yield f"{LOOPBACK}:{tls_port}"
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def kafka_config(certificates: Path) -> Path:
    file = certificates / "kafka.yaml"
    file.write_text(
        f"security.protocol: SSL\nssl.ca.location: {certificates / 'ca.crt'}\n"
        f"ssl.certificate.location: {certificates / 'client.crt'}\nssl.key.location: {certificates / 'client.key'}\n"
    )
    return file


def test_whoever_shows_no_certificate_is_turned_away(tls_servers: str, certificates: Path) -> None:
    ca = {"security.protocol": "SSL", "ssl.ca.location": str(certificates / "ca.crt")}
    for settings in ({}, ca):
        admin = AdminClient({"bootstrap.servers": tls_servers, "log_level": 0, **settings})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=5)


def test_librdkafka_and_a_flink_job_read_and_write_by_tls(
    tls_servers: str, kafka_config: Path, flink: FlinkCluster
) -> None:
    kafka = load_kafka_client(tls_servers, str(kafka_config))
    producer = Producer(kafka.for_librdkafka())
    spans = [otlp.request_span(number, int(time.time() * 1000)) for number in range(REQUESTS)]
    producer.produce("otlp_spans", otlp.message(spans))
    assert producer.flush(30) == 0
    job = flink.run("jobs.ingest", ["--bootstrap-servers", tls_servers, "--kafka-config", str(kafka_config),
                    "--checkpoint-interval-seconds", "1", "--name-suffix=-tls"])  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while read_books(kafka).get("ingest", {}).get("requests") != REQUESTS:
            assert time.monotonic() < deadline, flink.rest.failure(job)
            time.sleep(0.5)
        assert len(list(follow(kafka, "requests", to_end=True))) == REQUESTS
    finally:
        flink.cancel(job)
