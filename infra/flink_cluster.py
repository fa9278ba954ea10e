"""The embedded Flink cluster: a JobManager and a TaskManager as JVMs of ours, on loopback, state under one folder.

The JVMs are started directly rather than by the shipped scripts, which would first start two more JVMs to read the
configuration: sizes are explicit in conf/flink-config.yaml. The process ids are then our children's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import StackError
from infra.flink_home import FlinkHome
from infra.flink_rest import FlinkRest
from infra.flink_run import Submission, flink_run
from infra.metrics_gateway import PUSH_SECONDS
from infra.paths import java
from infra.ports import LOOPBACK
from infra.process import wait_until
from infra.service import Service

JOBMANAGER_CLASS = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASKMANAGER_CLASS = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"


@dataclass(frozen=True)
class FlinkSettings:
    """Ports and slots. Metrics are pushed to the gateway on `metrics_port`; None leaves the reporter out."""

    rest_port: int
    rpc_port: int
    metrics_port: int | None = None
    slots: int = 4


class FlinkCluster:
    """One cluster with its jars, configuration, logs, checkpoints and savepoints under `folder`."""

    def __init__(self, folder: Path, settings: FlinkSettings, run: Path | None = None) -> None:
        self.folder, self.settings, self.run_folder = folder, settings, run or folder
        self.home = FlinkHome(folder)
        self.rest = FlinkRest(self.rest_address)

    @property
    def rest_address(self) -> str:
        """HOST:PORT of the REST interface: what `flink run -m` takes."""
        return f"{LOOPBACK}:{self.settings.rest_port}"

    @property
    def rest_url(self) -> str:
        """Where the web UI is."""
        return f"http://{self.rest_address}"

    def prepare(self) -> None:
        """Link the jars and write the configuration for the ports of now."""
        self.home.prepare(
            {
                "RPC_PORT": str(self.settings.rpc_port),
                "REST_PORT": str(self.settings.rest_port),
                "SLOTS": str(self.settings.slots),
            }
        )

    @property
    def jobmanager(self) -> Service:
        """What to run as JobManager. Call `prepare` once before it is started."""
        sizes = [
            f"-Xms64m -Xmx{self._megabytes('jobmanager.memory.heap.size')}m",
            f"-XX:MaxMetaspaceSize={self._megabytes('jobmanager.memory.jvm-metaspace.size')}m",
            "-XX:TieredStopAtLevel=1",
        ]
        return self._service("jobmanager", JOBMANAGER_CLASS, sizes, 1)

    @property
    def taskmanager(self) -> Service:
        """What to run as TaskManager; its Python workers are its children."""
        heap = ("taskmanager.memory.framework.heap.size", "taskmanager.memory.task.heap.size")
        direct = (
            "taskmanager.memory.framework.off-heap.size",
            "taskmanager.memory.task.off-heap.size",
            "taskmanager.memory.network.max",
        )
        heap_megabytes = sum(map(self._megabytes, heap))
        sizes = [
            # Records die young, but not before the bundle that they are in: in a young generation smaller than a few
            # bundles they survive, and collecting them costs as much as reading them (2 of 13 microseconds a request).
            f"-Xms{heap_megabytes}m -Xmx{heap_megabytes}m -Xmn{heap_megabytes // 2}m",
            f"-XX:MaxDirectMemorySize={sum(map(self._megabytes, direct))}m",
            f"-XX:MaxMetaspaceSize={self._megabytes('taskmanager.memory.jvm-metaspace.size')}m",
        ]
        return self._service("taskmanager", TASKMANAGER_CLASS, sizes, 2)

    def _service(self, name: str, main: str, sizes: Sequence[str], order: int) -> Service:
        settings = self.home.settings
        log = self.home.log / f"{name}.log"
        port = self.settings.metrics_port
        metrics = [] if port is None else _metrics_options(port, name)
        argv = [
            java(),
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            *" ".join(sizes).split(),
            *str(settings["env.java.opts.all"]).split(),
            f"-Dlog.file={log}",
            f"-Dlog4j.configurationFile={self.home.conf / 'log4j.properties'}",
            "-classpath",
            self.home.class_path,
            main,
            "--configDir",
            str(self.home.conf),
            *metrics,
        ]
        return Service(
            name=name,
            argv=tuple(argv),
            log=self.home.log / f"{name}.out",
            run=self.run_folder,
            environment=self.home.environment,
            # A Python worker looks for packages in its working folder first: started from a checkout, it would run
            # that code and not what the job shipped.
            folder=self.folder,
            stop_order=order,
            # Beam logs the environment of a worker when it starts one.
            sees_secrets=False,
        )

    def _megabytes(self, key: str) -> int:
        size = str(self.home.settings[key])
        match = re.fullmatch(r"(\d+)m", size)
        if match is None:
            raise ValueError(f"{key} in flink-config.yaml is {size!r}; write it in megabytes, such as 320m")
        return int(match[1])

    def start(self) -> None:
        """Prepare, start both, and wait until task slots are offered. For tests; the stack has a supervisor."""
        self.prepare()
        self.jobmanager.start()
        self.taskmanager.start()
        self.wait_ready()

    def stop(self) -> None:
        """End both, with all Python workers."""
        if self.home.conf.exists():
            self.taskmanager.stop()
            self.jobmanager.stop()

    def wait_ready(self, timeout_seconds: float = 120.0) -> None:
        """Return once the web UI answers and all slots are offered."""
        for service, ready in (
            (self.jobmanager, lambda: self.rest.is_ready(slots=0)),
            (self.taskmanager, lambda: self.rest.is_ready(slots=self.settings.slots)),
        ):
            wait_until(
                ready,
                f"the Flink {service.name}",
                timeout_seconds=timeout_seconds,
                alive=lambda service=service: service.process() is not None,  # type: ignore[misc]
                logs=(service.log, self.home.log / f"{service.name}.log"),
            )

    def run(self, job: str | Path, args: Sequence[str] = (), savepoint: str | None = None) -> str:
        """Submit a Python job with the shipped `flink run` and return its id once all its tasks run.

        `job` is a file, or the name of a module (`jobs.drift`). `savepoint` is the path to start from.
        """
        job_id = flink_run(Submission(str(job), args, savepoint), self.home, self.rest_address)
        self.wait_processing(job_id)
        return job_id

    def wait_processing(self, job_id: str, timeout_seconds: float = 120.0) -> None:
        """Return once each task of a job runs, or the job has finished. Raises StackError with its own failure."""
        try:
            wait_until(
                lambda: self.rest.is_processing(job_id) or self.state(job_id) == "FINISHED",
                f"Flink job {job_id}",
                timeout_seconds=timeout_seconds,
                alive=lambda: self.state(job_id) not in ("FAILED", "CANCELED"),
                logs=(self.home.log / "taskmanager.log",),
            )
        except StackError as error:
            raise StackError(error.problem, self.rest.failure(job_id) or error.remedy) from None

    def state(self, job_id: str) -> str:
        """Return a job's state: `RUNNING`, `RESTARTING`, `FINISHED`..."""
        return self.rest.state(job_id)

    def cancel(self, job_id: str) -> None:
        """Cancel a job and wait until it has come to an end."""
        self.rest.cancel(job_id)

    def savepoint_and_stop(self, job_id: str) -> str:
        """Stop a job with a savepoint and return its path."""
        return self.rest.savepoint_and_stop(job_id)


def _metrics_options(port: int, name: str) -> list[str]:
    """Push metrics to the gateway on `port` of loopback (infra.metrics_gateway says why pushing)."""
    options = {
        "factory.class": "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporterFactory",
        "hostUrl": f"http://{LOOPBACK}:{port}",
        "jobName": name,
        "randomJobNameSuffix": "false",
        "interval": f"{PUSH_SECONDS} s",
    }
    return ["-Dmetrics.reporters=gateway", *(f"-Dmetrics.reporter.gateway.{k}={v}" for k, v in options.items())]
