"""The line of RUN.md, run as it stands from an unpacked dist in another folder, with the checkout out of reach."""

import os
import shlex
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from infra import dist
from infra.books import read_books
from infra.broker import Broker
from infra.flink_cluster import FlinkCluster
from jobs.kafka_client import KafkaClient
from tests import otlp

pytestmark = pytest.mark.engine
PREFIX = "dist-test-"

# What pip's editable install added to every Python of the environment is taken away again.
NO_CHECKOUT = f"""
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "__editable__" not in getattr(f, "__module__", "")]
sys.path[:] = [entry for entry in sys.path if entry != {str(dist.CHECKOUT)!r}]
"""


def python_without_checkout(folder: Path) -> Path:
    """Return a Python that has every package of the environment but ours."""
    (folder / "sitecustomize.py").write_text(NO_CHECKOUT)
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{folder}" exec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def test_the_line_runs_from_an_unpacked_dist(broker: Broker, flink: FlinkCluster, tmp_path: Path) -> None:
    broker.create_topics(prefix=PREFIX)
    with tarfile.open(dist.build(tmp_path / "built")) as archive:
        archive.extractall(tmp_path / "elsewhere", filter="data")
    (unpacked,) = (tmp_path / "elsewhere").iterdir()
    python = python_without_checkout(tmp_path)
    absent = subprocess.run([python, "-c", "import jobs"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "No module named 'jobs'" in absent.stderr

    lines = (unpacked / "RUN.md").read_text().splitlines()
    line = next(line for line in lines if line.startswith("flink run") and "jobs.ingest" in line)
    for name, value in (
        ("flink run", f"{flink.home.flink} run"),
        ("JOBMANAGER", flink.rest_address),
        ("PYTHON", str(python)),
        ("KAFKA", broker.bootstrap_servers),
    ):
        line = line.replace(name, value)
    line += f" --topic-prefix {PREFIX} --name-suffix=-dist --checkpoint-interval-seconds 1"
    done = subprocess.run(
        shlex.split(line),
        cwd=unpacked,
        env={**os.environ, **flink.home.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = [job for job in flink.rest.running_jobs() if job["name"] == "slacktide-ingest-dist"]
    try:
        message = otlp.message([otlp.request_span(i, int(time.time() * 1000)) for i in range(20)])
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(PREFIX + "otlp_spans", message)
        producer.flush()
        kafka = KafkaClient(broker.bootstrap_servers)
        deadline = time.monotonic() + 90
        while (counts := read_books(kafka, PREFIX).get("ingest", {})).get("requests") != 20:
            assert time.monotonic() < deadline, counts
            time.sleep(0.5)
    finally:
        flink.cancel(job["jid"])
