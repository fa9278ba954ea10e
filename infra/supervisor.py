"""Starts again what died: the process that `slacktide up` leaves behind.

It looks at the notes in the run folder (`infra.service`) twice a second, starts each service whose process is gone, and
first ends the Python workers that a TaskManager ended by force left behind. A service that keeps dying is started again
after 1, 2, 4... up to 30 seconds. The environment of each process is kept in memory only, since it may hold secrets.
"""

import contextlib
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import orjson
import psutil

from infra import process as processes
from infra.metrics_gateway import MetricsGateway
from infra.service import Service, load_services

POLL_SECONDS = 0.5
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 1.0, 30.0
# Living this long, a process has come back; the next death starts with the first delay again.
SETTLED_SECONDS = 60.0

log = logging.getLogger("supervisor")


class Supervisor:
    """Looks after the services noted in the run folder. `step` does one round and never waits."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.restarts: dict[str, int] = {}
        self._environments: dict[str, dict[str, str]] = {}
        self._delay_seconds: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._alive_since: dict[str, float] = {}
        self._children: list[subprocess.Popen[bytes]] = []

    def step(self) -> None:
        """Look at every service once, and start those that are due."""
        self._children = [child for child in self._children if child.poll() is None]
        for service in load_services(self.run):
            now = time.monotonic()
            main = service.process()
            if main is not None:
                self._remember(service.name, main, now)
            elif now >= self._not_before.get(service.name, 0.0):
                self._start(service, now)

    def _remember(self, name: str, main: psutil.Process, now: float) -> None:
        since = self._alive_since.setdefault(name, now)
        if name not in self._environments:
            with contextlib.suppress(psutil.Error):
                environment = main.environ()
                # Right after a process is made its environment still reads as empty.
                if processes.RUN_VARIABLE in environment:
                    self._environments[name] = environment
        if now - since > SETTLED_SECONDS:
            self._delay_seconds.pop(name, None)

    def _start(self, service: Service, now: float) -> None:
        left_behind = service.family()
        processes.kill(left_behind)
        delay_seconds = self._delay_seconds.get(service.name, FIRST_DELAY_SECONDS)
        self._delay_seconds[service.name] = min(2 * delay_seconds, LONGEST_DELAY_SECONDS)
        self._not_before[service.name] = now + delay_seconds
        self._alive_since.pop(service.name, None)
        self.restarts[service.name] = self.restarts.get(service.name, 0) + 1
        log.warning("%s died; starting it again (%d workers ended)", service.name, len(left_behind))
        try:
            self._children.append(service.start(self._environments.get(service.name)))
        except OSError as error:
            log.error("%s can't be started: %s", service.name, error)
        (self.run / "restarts.json").write_bytes(orjson.dumps(self.restarts))


def read_restarts(run: Path) -> dict[str, int]:
    """Return how often each service was started again since the stack came up."""
    try:
        restarts: dict[str, int] = orjson.loads((run / "restarts.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return restarts


def main(run: Path, metrics_port: int | None = None) -> None:
    """Run until asked to end, with the metrics gateway on `metrics_port`.

    What it looks after lives on: `slacktide down` ends that.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    stopping = False

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    supervisor = Supervisor(run)
    if metrics_port is not None:
        MetricsGateway().serve(metrics_port)
    (run / "restarts.json").unlink(missing_ok=True)
    log.info("looking after %s", run)
    while not stopping:
        supervisor.step()
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
