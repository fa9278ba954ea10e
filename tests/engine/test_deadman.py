"""The dead man on a real broker, cluster and Alertmanager: a job cancelled, a broker killed, everything dead."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from infra.broker import Broker, BrokerSettings
from infra.deadman.dead_man import DeadMan
from infra.deadman.look import Watched, look
from infra.deadman.metrics import dead_man_page
from infra.deadman.thresholds import load_thresholds
from infra.delivery.targets import load_delivery
from infra.flink_cluster import FlinkCluster
from infra.ports import LOOPBACK, free_ports
from jobs.kafka_client import KafkaClient
from tests.alertmanager import NEEDS_ALERTMANAGER, Alertmanager

pytestmark = [pytest.mark.engine, NEEDS_ALERTMANAGER]
LIMITS = "{unreachable_seconds: 0, job_down_seconds: 0, interval_seconds: 1, timeout_seconds: 2, owner: ml-oncall}\n"
SHORT_WAITS = "policy: {first_wait_seconds: 0.05, longest_wait_seconds: 0.1}\n"
JOB = "slacktide-alert-deadman"


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Alertmanager]:
    started = Alertmanager(tmp_path / "alertmanager")
    started.start()
    yield started
    started.stop()


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    file = tmp_path / "deadman.yaml"
    file.write_text(LIMITS)
    return file


def named(alertmanager: Alertmanager) -> dict[str, dict[str, str]]:
    """The labels of what Alertmanager holds, by alertname; what other tests left on the cluster is not ours."""
    held = [alert["labels"] for alert in alertmanager.alerts()]
    return {labels["alertname"]: labels for labels in held if labels.get("flink_job", JOB) == JOB}


def test_a_cancelled_job_and_then_a_killed_broker_arrive(
    flink: FlinkCluster, alertmanager: Alertmanager, limits: Path, tmp_path: Path
) -> None:
    broker = Broker(tmp_path / "broker", BrokerSettings(*free_ports(2)))
    try:
        broker.start()
        broker.create_topics()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("otlp_spans", b"x")
        assert producer.flush(10) == 0
        arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--name-suffix=-deadman"]
        job = flink.run("jobs.alert", [*arguments, "--checkpoint-interval-seconds", "1"])
        kafka = KafkaClient(broker.bootstrap_servers)
        watched = Watched(kafka, flink.rest_address, ["otlp_spans"], timeout_seconds=2)
        delivery = load_delivery().with_addresses([alertmanager.url], [], None)
        watching = DeadMan(partial(look, watched), load_thresholds(limits), delivery, tmp_path / "memory.json")

        assert watching.step()
        assert set(named(alertmanager)) == {"Watchdog"}, "all is well"
        page = dead_man_page(watching).decode()
        assert f'slacktide_job_running{{flink_job="{JOB}"}} 1\n' in page
        assert 'slacktide_up{component="kafka"} 1\n' in page
        assert 'slacktide_source_silence_seconds{topic="otlp_spans"}' in page

        flink.cancel(job)
        assert watching.step()
        assert named(alertmanager)["SlacktideJobNotRunning"]["flink_job"] == JOB

        _kill(broker)
        assert watching.step()
        assert set(named(alertmanager)) == {"Watchdog", "SlacktideJobNotRunning", "SlacktideKafkaUnreachable"}
    finally:
        _kill(broker)


def _kill(broker: Broker) -> None:
    """By force: in good order it would take seconds."""
    if process := broker.service.process():
        process.kill()
        process.wait(10)


def test_when_everything_is_dead_the_command_still_tells(
    alertmanager: Alertmanager, limits: Path, tmp_path: Path
) -> None:
    kafka_port, flink_port, metrics_port = free_ports(3)
    line = [sys.executable, "-m", "infra.cli", "deadman", "--bootstrap-servers", f"{LOOPBACK}:{kafka_port}"]
    line += ["--jobmanager", f"{LOOPBACK}:{flink_port}", "--state-folder", str(tmp_path), "--thresholds", str(limits)]
    line += ["--alertmanager", alertmanager.url]
    done = subprocess.run([*line, "--once"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1, done.stderr
    assert [said.split(":")[0] for said in done.stdout.splitlines()] == [
        "SlacktideFlinkUnreachable",
        "SlacktideKafkaUnreachable",
    ]
    held = named(alertmanager)
    assert set(held) == {"Watchdog", "SlacktideFlinkUnreachable", "SlacktideKafkaUnreachable"}
    assert held["SlacktideKafkaUnreachable"]["owner"] == "ml-oncall"

    # The long-running one tells an Alertmanager that has forgotten everything, and Prometheus too.
    alertmanager.stop()
    alertmanager.start()
    with subprocess.Popen([*line, "--metrics-port", str(metrics_port)], stderr=subprocess.PIPE) as running:
        try:
            fingerprints = {alert["fingerprint"] for alert in _until_held(alertmanager, 3)}
            assert len(fingerprints) == 3
            page = _until_served(metrics_port)
            assert 'slacktide_up{component="kafka"} 0\n' in page
        finally:
            running.terminate()
        assert running.wait(30) == 0

    # Nobody takes it: the exit status says so.
    targets = tmp_path / "delivery.yaml"
    targets.write_text(f"targets: [{{name: am, kind: alertmanager, url: '{alertmanager.url}'}}]\n{SHORT_WAITS}")
    alertmanager.stop()
    line = [*line[:-2], "--targets", str(targets), "--once"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3, done.stderr


def _until_held(alertmanager: Alertmanager, count: int) -> list[dict[str, str]]:
    for _ in range(300):
        if len(held := alertmanager.alerts()) == count:
            return held
        time.sleep(0.1)
    raise AssertionError(held)


def _until_served(port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(300):
        with opener.open(f"http://{LOOPBACK}:{port}/metrics", timeout=5) as answer:
            page: str = answer.read().decode()
        if page:
            return page
        time.sleep(0.1)
    raise AssertionError("no metrics")
