"""The embedded Kafka broker: one JVM from jars, KRaft combined mode, on loopback, data kept under one folder.

It is ready about 5 s after its start and takes about 400 MB. Started again on the same folder and ports, also after
it was ended by force, it has all that it had acknowledged.
"""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from infra.errors import StackError
from infra.paths import CONF, class_path, jars, java, pyflink_home
from infra.ports import LOOPBACK, is_free
from infra.process import wait_until
from infra.service import Service
from schemas.topics import ALL_TOPICS, Topic


@dataclass(frozen=True)
class BrokerSettings:
    """Ports and memory. `sasl_port` adds a SASL_PLAINTEXT (PLAIN) listener.

    Its one user and password are read from `SLACKTIDE_SASL_USERNAME` and `SLACKTIDE_SASL_PASSWORD` in the broker's
    environment, never from a file.
    """

    port: int
    controller_port: int
    sasl_port: int | None = None
    heap_mb: int = 384


class Broker:
    """One broker with its data, configuration and log under `folder`; `run` is the run folder it belongs to."""

    def __init__(self, folder: Path, settings: BrokerSettings, run: Path | None = None) -> None:
        self.folder, self.settings, self.run = folder, settings, run or folder

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of the plaintext listener."""
        return f"{LOOPBACK}:{self.settings.port}"

    @property
    def sasl_bootstrap_servers(self) -> str:
        """HOST:PORT of the SASL listener. Raises StackError when it has none."""
        if self.settings.sasl_port is None:
            raise StackError("this broker has no SASL listener", "Give it a `sasl_port`")
        return f"{LOOPBACK}:{self.settings.sasl_port}"

    @property
    def service(self) -> Service:
        """What to run. Call `prepare` once before it is started."""
        log = self.folder / "log" / "broker.log"
        options = [
            f"-Xms96m -Xmx{self.settings.heap_mb}m -XX:+UseSerialGC -XX:MaxMetaspaceSize=128m",
            "-XX:ReservedCodeCacheSize=64m -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true",
        ]
        return Service(
            name="broker",
            argv=(
                java(),
                *" ".join(options).split(),
                f"-Dlog.file={log}",
                f"-Dlog4j2.configurationFile={CONF / 'broker-log4j2.properties'}",
                "-cp",
                self._class_path,
                "kafka.Kafka",
                str(self._properties_file),
            ),
            log=self.folder / "log" / "broker.out",
            run=self.run,
        )

    def prepare(self) -> None:
        """Write the configuration for the ports of now, and format the data folder if it is new."""
        self._data.mkdir(parents=True, exist_ok=True)
        self._properties_file.write_text(self._properties())
        if not (self._data / "meta.properties").exists():
            self._format()

    def start(self) -> None:
        """Prepare, start, and wait until it answers. For tests; the stack starts it by its supervisor."""
        self.prepare()
        self.service.start()
        self.wait_ready()

    def stop(self) -> None:
        """End it in good order."""
        self.service.stop()

    def is_ready(self) -> bool:
        """Whether it answers, and is this broker and no other one on the same port."""
        if is_free(self.settings.port):
            return False
        try:
            metadata = self._admin().list_topics(timeout=1.0)
        except KafkaException:
            return False
        return bool(metadata.brokers) and metadata.cluster_id == self._cluster_id

    def wait_ready(self, timeout_seconds: float = 120.0) -> None:
        """Return once it answers. Raises StackError with the end of its log when it dies or takes too long."""
        service = self.service
        wait_until(
            self.is_ready,
            "the Kafka broker",
            timeout_seconds=timeout_seconds,
            alive=lambda: service.process() is not None,
            logs=(service.log, self.folder / "log" / "broker.log"),
        )

    def create_topics(self, topics: Iterable[Topic] = ALL_TOPICS, prefix: str = "") -> list[str]:
        """Create those of `topics` that are not there yet, and return their names."""
        admin = self._admin()
        present = admin.list_topics(timeout=10.0).topics
        missing = [_new_topic(topic, prefix) for topic in topics if prefix + topic.name not in present]
        for creation in admin.create_topics(missing, operation_timeout=10.0).values() if missing else ():
            creation.result()
        return [topic.topic for topic in missing]

    def _admin(self) -> AdminClient:
        # Without a logger of its own, librdkafka writes each refused connection of a starting broker to stderr.
        return AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "log.connection.close": "false"}
        )

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _cluster_id(self) -> str | None:
        lines = (self._data / "meta.properties").read_text().splitlines()
        return next((line.partition("=")[2] for line in lines if line.startswith("cluster.id=")), None)

    @property
    def _properties_file(self) -> Path:
        return self.folder / "broker.properties"

    @cached_property
    def _class_path(self) -> str:
        # Kafka names no logging back end among its dependencies; Flink's is of the same log4j version.
        logging = sorted((pyflink_home() / "lib").glob("log4j-slf4j-impl-*.jar"))
        return class_path([*jars("broker"), *logging])

    def _properties(self) -> str:
        listeners = {"PLAINTEXT": self.settings.port}
        if self.settings.sasl_port is not None:
            listeners["SASL_PLAINTEXT"] = self.settings.sasl_port
        advertised = ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items())
        text = (CONF / "broker.properties").read_text()
        text = text.replace("ADVERTISED_LISTENERS", advertised)
        text = text.replace("LISTENERS", f"{advertised},CONTROLLER://{LOOPBACK}:{self.settings.controller_port}")
        text = text.replace("CONTROLLER_PORT", str(self.settings.controller_port))
        text = text.replace("DATA_FOLDER", str(self._data))
        return text + (_SASL if self.settings.sasl_port is not None else "")

    def _format(self) -> None:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        storage_tool = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", self._class_path]
        storage_tool += ["kafka.tools.StorageTool", "format", "-t", f"s{cluster_id[1:]}"]
        storage_tool += ["-c", str(self._properties_file)]
        done = subprocess.run(storage_tool, capture_output=True, text=True, check=False)
        if done.returncode:
            problem = f"Kafka could not format {self._data}: {(done.stderr or done.stdout).strip()[-400:]}"
            raise StackError(problem, "Remove that folder, or choose another with --state-folder")


# The broker takes user and password from its own environment; the file only names the variables.
_SASL = """
sasl.enabled.mechanisms=PLAIN
config.providers=env
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_${env:SLACKTIDE_SASL_USERNAME}="${env:SLACKTIDE_SASL_PASSWORD}";
"""


def _new_topic(topic: Topic, prefix: str) -> NewTopic:
    return NewTopic(
        prefix + topic.name,
        num_partitions=topic.partitions,
        replication_factor=1,
        config={"retention.ms": str(topic.retention_ms), "max.message.bytes": str(topic.max_message_bytes)},
    )
