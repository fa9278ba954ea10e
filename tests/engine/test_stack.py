"""The whole embedded stack, from the console: up, status, submit, processes killed and back, down."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil
import pytest
from confluent_kafka import Producer

from infra import process as processes
from infra.books import read_books
from infra.flink_cluster import FlinkCluster
from infra.ports import LOOPBACK
from infra.stack import Stack
from jobs.kafka_client import KafkaClient

pytestmark = pytest.mark.engine

# A job of the kind users write: SQL from Kafka to Kafka through a Python function.
COPY_JOB = """
import sys
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udf

from schemas.books import IngestKind

@udf(result_type=DataTypes.STRING())
def kind(length):
    return str(IngestKind.SPANS)

def main(servers):
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("pipeline.name", "slacktide-copy")
    env.create_temporary_system_function("kind", kind)
    kafka = f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}'"
    env.execute_sql(f"CREATE TABLE spans (message STRING) WITH ({kafka}, 'topic' = 'otlp_spans', 'format' = 'raw', "
                    "'properties.group.id' = 'slacktide-copy', 'scan.startup.mode' = 'earliest-offset')")
    env.execute_sql("CREATE TABLE books (job STRING, kind STRING, `count` BIGINT, window_end_ms BIGINT) WITH "
                    f"({kafka}, 'topic' = 'books', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', "
                    "'sink.transactional-id-prefix' = 'copy', 'properties.transaction.timeout.ms' = '60000')")
    env.execute_sql("INSERT INTO books SELECT 'ingest', kind(CHAR_LENGTH(message)), 1, 0 FROM spans")

if __name__ == "__main__":
    main(sys.argv[1])
"""


def slacktide(*argv: str, state: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "infra.cli", *argv, "--state-folder", str(state)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def wait_for(true: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    state = tmp_path_factory.mktemp("state")
    up = slacktide("up", "--free-ports", state=state)
    try:
        assert up.returncode == 0, up.stderr
        started = Stack.of(state)
        assert started is not None
        assert started.flink.rest_url in up.stdout
        yield started
    finally:
        down = slacktide("down", state=state)
        left = processes.of_run(state / "run")
        processes.kill(left)
    assert down.returncode == 0, down.stderr
    assert left == []


@pytest.fixture(scope="module")
def copy_job(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("job") / "copy_job.py"
    file.write_text(COPY_JOB)
    return stack.flink.run(str(file), [stack.broker.bootstrap_servers])


def status(stack: Stack) -> dict:
    return orjson.loads(slacktide("status", "--json", state=stack.state).stdout)


def send(stack: Stack, count: int) -> None:
    producer = Producer({"bootstrap.servers": stack.broker.bootstrap_servers})
    for _ in range(count):
        producer.produce("otlp_spans", b"x")
    assert producer.flush(60) == 0


def counted(stack: Stack) -> int:
    return read_books(KafkaClient(stack.broker.bootstrap_servers)).get("ingest", {}).get("spans", 0)


def main_process(stack: Stack, name: str) -> psutil.Process:
    found = stack.processes()[name]
    assert found is not None
    return found


def test_idle_it_takes_less_than_its_limit(stack: Stack) -> None:
    found = status(stack)
    assert found["up"] is True
    assert {p["name"]: p["processes"] for p in found["processes"]} == {
        "broker": 1, "jobmanager": 1, "taskmanager": 1, "supervisor": 1,
    }  # fmt: skip
    print(f"\nidle stack: {found['memory_mb']} MB of at most {found['memory_limit_mb']} MB")
    assert 100 < found["memory_mb"] <= found["memory_limit_mb"] == 4096
    assert found["problems"] == []


def test_it_listens_on_loopback_only(stack: Stack) -> None:
    listening = {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for process in processes.of_run(stack.run)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert {port for _, port in listening} >= set(stack.settings.ports.values())
    assert {ip for ip, _ in listening} == {LOOPBACK}


def test_prometheus_finds_the_metrics_of_both_processes_in_one_place(stack: Stack) -> None:
    def page() -> str:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{stack.metrics_port}/metrics", timeout=5) as answer:
            return answer.read().decode()

    wait_for(lambda: "flink_taskmanager_Status" in page() and "flink_jobmanager_Status" in page(), "metrics")
    samples = [line for line in page().splitlines() if line.startswith("flink_jobmanager_numRegisteredTaskManagers")]
    assert [line.rpartition(" ")[2] for line in samples] == ["1.0"]


def test_up_again_changes_nothing(stack: Stack) -> None:
    before = {name: process.pid for name, process in stack.processes().items() if process}
    again = slacktide("up", state=stack.state)
    assert again.returncode == 0
    assert "up already" in again.stdout
    assert {name: process.pid for name, process in stack.processes().items() if process} == before


def test_a_taken_port_is_named_and_nothing_stays_behind(stack: Stack, tmp_path: Path) -> None:
    port = stack.settings.ports["kafka"]
    refused = slacktide("up", "--free-ports", "--port", f"kafka={port}", state=tmp_path)
    assert refused.returncode == 2
    assert f"ports.kafka: port {port} is taken by process {main_process(stack, 'broker').pid} (" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert processes.of_run(tmp_path / "run") == []


@pytest.mark.usefixtures("copy_job")
def test_status_shows_job_lag_and_books(stack: Stack) -> None:
    send(stack, 100)
    wait_for(lambda: counted(stack) == 100, "100 records counted")
    # Flink commits its offsets just after the checkpoint that let the records be counted.
    read_all = [{"group": "slacktide-copy", "topic": "otlp_spans", "records": 0}]
    wait_for(lambda: status(stack)["lags"] == read_all, "no lag")
    found = status(stack)
    (job,) = found["jobs"]
    assert (job["name"], job["state"], job["restarts"]) == ("slacktide-copy", "RUNNING", 0)
    assert found["at_ms"] - job["last_checkpoint_ms"] < 60_000
    assert found["books"] == {"ingest": {"spans": 100}}
    assert found["ingest_balance"] == 100
    table = slacktide("status", state=stack.state).stdout
    assert "copy" in table
    assert "out of balance by 100 spans" in table


@pytest.mark.parametrize("victim", ["taskmanager", "broker", "worker"])
def test_killed_under_load_it_comes_back_and_counts_each_record_once(stack: Stack, copy_job: str, victim: str) -> None:
    already = counted(stack)
    send(stack, 500)
    if victim == "worker":
        # The process that runs the Python functions is the last of its family, below a shell and a starter.
        main_process(stack, "taskmanager").children(recursive=True)[-1].send_signal(signal.SIGKILL)
    else:
        main_process(stack, victim).send_signal(signal.SIGKILL)
    wait_for(lambda: all(stack.processes().values()), f"{victim} back")
    stack.broker.wait_ready()
    send(stack, 500)
    wait_for(lambda: stack.flink.state(copy_job) == "RUNNING" and counted(stack) >= already + 1000, "all counted")
    assert counted(stack) == already + 1000
    family = next(p for p in status(stack)["processes"] if p["name"] == "taskmanager")
    # No worker of the TaskManager that died is left beside those of the new one.
    assert family["processes"] <= 5


def test_down_ends_its_own_processes_and_no_other(stack: Stack, flink: FlinkCluster, tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, "SLACKTIDE_RUN": str(tmp_path)})
    try:
        ended = slacktide("down", state=stack.state)
        assert ended.returncode == 0
        assert processes.of_run(stack.run) == []
        assert stranger.poll() is None
        assert flink.rest.is_ready()
        assert slacktide("status", state=stack.state).returncode == 1
        assert "Nothing was running." in slacktide("down", state=stack.state).stdout
        assert slacktide("down", "--purge", state=stack.state).returncode == 0
        assert not stack.run.exists()
    finally:
        stranger.kill()
        stranger.wait()
