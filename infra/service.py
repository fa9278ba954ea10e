"""One long-lived process of the stack, as data: what to run, where it logs, and which process it is now.

Each service has two files in the run folder: `services/NAME.json` says what should run, `services/NAME.pid` which
process does. The environment is not written down, since it may hold secrets.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import psutil

from infra import process as processes
from infra.process import RUN_VARIABLE, SERVICE_VARIABLE

_HARMLESS = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|JAVA_HOME|OPENBLAS_\w+|OMP_\w+|SLACKTIDE_CI_RUN"
)


@dataclass(frozen=True)
class Service:
    """A process that should run. `environment` is added to the starter's and holds no secrets.

    With `sees_secrets` false, only variables known to be harmless are taken from the starter: for processes that print
    their environment. `stop_order`: services with higher numbers are ended first.
    """

    name: str
    argv: tuple[str, ...]
    log: Path
    run: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    stop_order: int = 0
    sees_secrets: bool = True

    def start(self, inherited: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start it and note which process it is. `inherited` is the environment to start from (default: ours)."""
        environment = dict(os.environ if inherited is None else inherited)
        if not self.sees_secrets:
            environment = {name: value for name, value in environment.items() if _HARMLESS.fullmatch(name)}
        environment |= self.environment
        environment |= {RUN_VARIABLE: str(self.run), SERVICE_VARIABLE: self.name}
        started = processes.start(self.argv, log=self.log, environment=environment, folder=self.folder)
        _write(_pid_file(self.run, self.name), str(started.pid).encode())
        return started

    def process(self) -> psutil.Process | None:
        """Return its process while it lives."""
        try:
            pid = int(_pid_file(self.run, self.name).read_text())
        except (OSError, ValueError):
            return None
        return processes.find(pid, self.run, self.name)

    def family(self) -> list[psutil.Process]:
        """Return its process, its workers, and workers it left behind when it died.

        They are known by their environment, not by descent: what the supervisor starts again descends from that.
        """
        main = self.process()
        found = {main.pid: main} if main else {}
        found |= {p.pid: p for p in processes.of_run(self.run, self.name)}
        return list(found.values())

    def stop(self, grace_seconds: float = 10.0) -> None:
        """End it with all that it started."""
        if main := self.process():
            processes.end([main], grace_seconds)
        processes.kill(self.family())
        _pid_file(self.run, self.name).unlink(missing_ok=True)

    def save(self) -> None:
        """Note in the run folder that it should run; a supervisor takes it up."""
        note = {
            "name": self.name,
            "argv": self.argv,
            "log": str(self.log),
            "environment": dict(self.environment),
            "folder": str(self.folder) if self.folder else None,
            "stop_order": self.stop_order,
            "sees_secrets": self.sees_secrets,
        }
        _write(_service_file(self.run, self.name), orjson.dumps(note, option=orjson.OPT_INDENT_2))

    def forget(self) -> None:
        """Take back `save`."""
        _service_file(self.run, self.name).unlink(missing_ok=True)


def load_services(run: Path) -> list[Service]:
    """Return the services noted in the run folder, in the order in which they are started."""
    found = []
    for file in (run / "services").glob("*.json"):
        body = orjson.loads(file.read_bytes())
        body |= {"argv": tuple(body["argv"]), "log": Path(body["log"]), "run": run}
        body["folder"] = Path(body["folder"]) if body["folder"] else None
        found.append(Service(**body))
    return sorted(found, key=lambda service: (service.stop_order, service.name))


def _service_file(run: Path, name: str) -> Path:
    return run / "services" / f"{name}.json"


def _pid_file(run: Path, name: str) -> Path:
    return run / "services" / f"{name}.pid"


def _write(file: Path, body: bytes) -> None:
    """Write as one step, so that a reader never sees half a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(file.suffix + ".part")
    part.write_bytes(body)
    part.replace(file)
