"""The embedded stack as a whole: what it is made of, started in order, stopped in reverse, found again later.

Everything lies under one state folder: `jars/` is shared, `run/` is one stack's configuration, data, logs and the notes
of which processes are its own.
"""

import contextlib
import fcntl
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import psutil

from infra import process as processes
from infra.broker import Broker, BrokerSettings
from infra.errors import StackError
from infra.flink_cluster import FlinkCluster, FlinkSettings
from infra.ports import require_free
from infra.process import wait_until
from infra.service import Service, load_services
from infra.stack_settings import StackSettings

Say = Callable[[str], None]


class Stack:
    """The stack of one state folder, with settings either given (to start it) or remembered (`Stack.of`)."""

    def __init__(self, state: Path, settings: StackSettings) -> None:
        self.state, self.settings, self.run = state, settings, state / "run"
        ports = settings.ports
        self.broker = Broker(
            self.run / "kafka",
            BrokerSettings(ports["kafka"], ports["kafka_controller"], heap_mb=settings.kafka_heap_mb),
            self.run,
        )
        self.metrics_port = ports["metrics"] if settings.prometheus else None
        self.flink = FlinkCluster(
            self.run / "flink",
            FlinkSettings(ports["flink_web"], ports["flink_rpc"], self.metrics_port, settings.flink_slots),
            self.run,
        )

    @classmethod
    def of(cls, state: Path) -> "Stack | None":
        """Return the stack that was last started under `state`, running or not; None when there never was one."""
        try:
            return cls(state, StackSettings(**orjson.loads((state / "run" / "stack.json").read_bytes())))
        except FileNotFoundError:
            return None

    @property
    def _log(self) -> Path:
        return self.run / "supervisor.log"

    @property
    def supervisor(self) -> Service:
        """The process that starts again what died. It is ended first, so that `down` wins."""
        return Service(
            name="supervisor",
            argv=(
                *(sys.executable, "-P", "-m", "infra.supervisor", str(self.run)),
                *([str(self.metrics_port)] if self.metrics_port else []),
            ),
            log=self._log,
            run=self.run,
            stop_order=100,
        )

    @property
    def warehouse(self) -> Path:
        """The folder of the Delta tables."""
        return self.run / "warehouse"

    @property
    def audit_status_file(self) -> Path:
        """What the audit job says of itself (jobs/audit_status.py)."""
        return self.run / "spark" / "audit.json"

    def processes(self) -> dict[str, psutil.Process | None]:
        """Return each service that should run, with its process while it lives; the supervisor last."""
        return {service.name: service.process() for service in [*load_services(self.run), self.supervisor]}

    @property
    def is_up(self) -> bool:
        """Whether the supervisor and all that it looks after live."""
        found = self.processes()
        return len(found) > 1 and all(found.values())

    def up(self, say: Say = lambda _: None) -> None:
        """Start what is not running, wait until all of it works, and leave a supervisor to look after it.

        Raises ConfigurationError when a port is taken and StackError when something does not start; then all that this
        call started is ended again.
        """
        self.run.mkdir(parents=True, exist_ok=True)
        with _locked(self.run / "lock"):
            before = {name for name, process in self.processes().items() if process}
            try:
                self._start_missing(before, say)
            except BaseException:
                self._end([s for s in self._all_services() if s.name not in before], lambda _: None)
                raise

    def _start_missing(self, before: set[str], say: Say) -> None:
        if "supervisor" in before:
            # What is missing is being started again by the supervisor; a second start would make two of it.
            wait_until(lambda: all(self.processes().values()), "the stack", timeout_seconds=60.0, logs=(self._log,))
        else:
            require_free(self._ports_of_missing(before), self.settings.source)
            (self.run / "stack.json").write_bytes(orjson.dumps(self.settings.to_json()))
            self.broker.prepare()
            self.flink.prepare()
            for service in (self.broker.service, self.flink.jobmanager, self.flink.taskmanager):
                if service.name not in before:
                    say(f"starting {service.name}")
                    service.start()
                service.save()
        self.broker.wait_ready()
        created = self.broker.create_topics()
        say(f"Kafka is ready on {self.broker.bootstrap_servers}" + (f", {len(created)} topics made" if created else ""))
        self.flink.wait_ready()
        say(f"Flink is ready, web UI on {self.flink.rest_url}")
        if "supervisor" not in before:
            self.supervisor.start()

    def _ports_of_missing(self, running: set[str]) -> dict[str, int]:
        owners = {"kafka": "broker", "kafka_controller": "broker", "flink_web": "jobmanager", "flink_rpc": "jobmanager"}
        if self.metrics_port:
            owners["metrics"] = "supervisor"
        ports = self.settings.ports
        return {f"ports.{name}": ports[name] for name, owner in owners.items() if owner not in running}

    def down(self, say: Say = lambda _: None, *, purge: bool = False) -> int:
        """End what `up` and `submit` started, supervisor first, and return how many processes that was.

        `purge` also deletes topics, checkpoints, tables and logs; the jars stay.
        """
        if not self.run.exists():
            return 0
        with _locked(self.run / "lock"):
            ended = self._end(self._all_services(), say)
            for service in load_services(self.run):
                service.forget()
        if purge:
            shutil.rmtree(self.run)
        return ended

    def _all_services(self) -> list[Service]:
        known = {s.name: s for s in load_services(self.run)}
        if self.flink.home.conf.joinpath("config.yaml").exists():
            own = (self.broker.service, self.flink.jobmanager, self.flink.taskmanager)
            known = {s.name: s for s in own} | known
        return [*known.values(), self.supervisor]

    def _end(self, services: list[Service], say: Say) -> int:
        ended = 0
        for service in sorted(services, key=lambda s: s.stop_order, reverse=True):
            if family := service.family():
                say(f"ending {service.name}")
                ended += len(family)
                service.stop()
        # What a service left behind that has no notes any more: known by its environment, as nobody else's can be.
        stray = processes.of_run(self.run)
        processes.kill(stray)
        return ended + len(stray)


def required_stack(state: Path) -> Stack:
    """Return the running stack of `state`. Raises StackError when there is none."""
    stack = Stack.of(state)
    if stack is None or not any(stack.processes().values()):
        raise StackError(f"no embedded stack is up under {state}", "Start it with `slacktide up`")
    return stack


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold off another `up` or `down` of the same state folder."""
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(f"another `slacktide up` or `down` is at work on {file.parent}", "Wait for it") from None
        yield
