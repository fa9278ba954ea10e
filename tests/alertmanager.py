"""A real Prometheus Alertmanager on a free port of loopback, for the tests that deliver to one."""

import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import orjson
import pytest

from infra.ports import LOOPBACK, free_ports

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
NEEDS_ALERTMANAGER = pytest.mark.skipif(
    PROGRAM is None, reason="no Alertmanager here: install Debian's package prometheus-alertmanager"
)
CONFIGURATION = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"


class Alertmanager:
    """One process; started again it has forgotten everything. `stop` ends it by its id."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it with nothing kept, and wait until it is ready."""
        assert PROGRAM is not None
        data = self._folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        configuration = self._folder / "alertmanager.yml"
        configuration.write_text(CONFIGURATION)
        line = [PROGRAM, f"--config.file={configuration}", f"--storage.path={data}", "--cluster.listen-address="]
        line.append(f"--web.listen-address={LOOPBACK}:{self.port}")
        log = self._folder / "alertmanager.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(line, stdout=out, stderr=out)
        deadline = time.monotonic() + 30
        while not self._is_ready():
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return bool(self._get("/-/ready"))
        except OSError:
            return False

    def _get(self, path: str) -> bytes:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, timeout=5) as answer:
            body: bytes = answer.read()
            return body

    def alerts(self) -> list[dict[str, Any]]:
        """Every alert that it holds as active."""
        found: list[dict[str, Any]] = orjson.loads(self._get("/api/v2/alerts"))
        return found

    def wait_for(self, fingerprints: set[str], timeout_seconds: float = 30) -> list[dict[str, Any]]:
        """Return its alerts once they are exactly `fingerprints`."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            found = self.alerts()
            if {alert["fingerprint"] for alert in found} == fingerprints:
                return found
            assert time.monotonic() < deadline, (len(found), len(fingerprints))
            time.sleep(0.1)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None
