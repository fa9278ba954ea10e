"""A broker and a Flink cluster of the bench's own, on free ports, gone when it ends."""

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.broker import Broker, BrokerSettings
from infra.flink_cluster import FlinkCluster, FlinkSettings
from infra.ports import free_ports
from jobs.kafka_client import KafkaClient


@dataclass(frozen=True)
class Engines:
    """A running broker and cluster, and a folder for the bench's files."""

    broker: Broker
    flink: FlinkCluster
    folder: Path

    @property
    def kafka(self) -> KafkaClient:
        """How to reach the broker."""
        return KafkaClient(self.broker.bootstrap_servers)

    def run_to_end(self, job: str | Path, arguments: list[str]) -> float:
        """Run a job that ends by itself and return the seconds from its start to its end, as Flink tells them."""
        job_id = self.flink.run(job, arguments)
        self.flink.rest.wait_for(job_id, {"FINISHED", "FAILED", "CANCELED"}, timeout_seconds=600)
        told: dict[str, Any] = self.flink.rest.get(f"/jobs/{job_id}")
        if told["state"] != "FINISHED":
            raise RuntimeError(f"{job} is {told['state']}: {self.flink.rest.failure(job_id)}")
        return float(told["end-time"] - told["start-time"]) / 1000


@contextmanager
def engines(slots: int = 4) -> Iterator[Engines]:
    """Start both, and stop both whatever happens; SIGTERM, which `timeout` sends, ends the bench in the same way."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    broker_port, controller_port, rest_port, rpc_port = free_ports(4)
    with tempfile.TemporaryDirectory(prefix="slacktide-bench-") as name:
        folder = Path(name)
        broker = Broker(folder / "broker", BrokerSettings(broker_port, controller_port))
        flink = FlinkCluster(folder / "flink", FlinkSettings(rest_port, rpc_port, slots=slots))
        try:
            broker.start()
            flink.start()
            yield Engines(broker, flink, folder)
        finally:
            flink.stop()
            broker.stop()
