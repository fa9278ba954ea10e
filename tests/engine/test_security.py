"""Kafka security passes through: a real job reads and writes by SASL, and its password is nowhere to be found."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from infra.books import read_books
from infra.broker import Broker
from infra.flink_cluster import FlinkCluster
from jobs.kafka_client import load_kafka_client
from tests import otlp
from tests.conftest import SASL_PASSWORD, SASL_USERNAME

pytestmark = pytest.mark.engine
PREFIX = "security-test-"


@pytest.fixture
def kafka_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEST_KAFKA_PASSWORD", SASL_PASSWORD)
    file = tmp_path / "kafka.yaml"
    file.write_text(
        "security.protocol: SASL_PLAINTEXT\nsasl.mechanism: PLAIN\n"
        f"sasl.username: {SASL_USERNAME}\nsasl.password: ${{TEST_KAFKA_PASSWORD}}\n"
    )
    return file


def test_a_job_reads_and_writes_by_sasl_and_keeps_the_secret(
    broker: Broker, flink: FlinkCluster, kafka_config: Path, tmp_path: Path
) -> None:
    broker.create_topics(prefix=PREFIX)
    client = load_kafka_client(broker.sasl_bootstrap_servers, str(kafka_config))
    producer = Producer(client.for_librdkafka())
    producer.produce(
        PREFIX + "otlp_spans", otlp.message([otlp.request_span(i, int(time.time() * 1000)) for i in range(9)])
    )
    assert producer.flush(30) == 0
    line = [sys.executable, "-m", "infra.cli", "submit", "ingest", "--state-folder", str(tmp_path)]
    line += ["--jobmanager", flink.rest_address, "--bootstrap-servers", broker.sasl_bootstrap_servers]
    line += ["--kafka-config", str(kafka_config), "--topic-prefix", PREFIX, "--name-suffix=-sasl"]
    done = subprocess.run([*line, "--checkpoint-interval-seconds", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (job,) = [job for job in flink.rest.running_jobs() if job["name"] == "slacktide-ingest-sasl"]
    try:
        deadline = time.monotonic() + 90
        while read_books(client, PREFIX).get("ingest", {}).get("requests") != 9:
            assert time.monotonic() < deadline, flink.rest.failure(job["jid"])
            time.sleep(0.5)
    finally:
        flink.cancel(job["jid"])
    # Beam prints the environment of the workers it starts: the TaskManager must not have been given secrets.
    assert "SLACKTIDE_SASL_PASSWORD" in os.environ
    seen = [done.stdout, done.stderr, *(f.read_text(errors="replace") for f in files_of(flink.folder, tmp_path))]
    assert not [text[:200] for text in seen if SASL_PASSWORD in text]


def files_of(*folders: Path) -> list[Path]:
    """Everything written for the job: logs, configuration, checkpoints, uploads; the jars are links, left out."""
    return [f for folder in folders for f in folder.rglob("*") if f.is_file() and not f.is_symlink()]
