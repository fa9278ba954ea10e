"""Ports on loopback: find free ones, and say who holds a taken one."""

import contextlib
import socket
from collections.abc import Mapping

import psutil

from jobs.kafka_client import ConfigurationError

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that were free on loopback a moment ago.

    >>> len(set(free_ports(3)))
    3
    """
    sockets = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now (a connection that lingers in TIME_WAIT doesn't matter)."""
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def holder(port: int) -> str:
    """Return who listens on `port`, as far as the system shows it: `process 42 (java ...)` or `another process`."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and getattr(connection.laddr, "port", None) == port
            if listens and connection.pid:
                process = psutil.Process(connection.pid)
                words = process.cmdline() or [process.name()]
                shown = " ".join([words[0], *words[-2:]] if len(words) > 3 else words)
                return f"process {process.pid} ({shown[:120]})"
    return "another process"


def require_free(ports: Mapping[str, int], file: str) -> None:
    """Raise ConfigurationError naming port, setting and holder when one of `ports` (setting -> port) is taken."""
    for setting, port in ports.items():
        if not is_free(port):
            raise ConfigurationError(
                file,
                setting,
                f"port {port} is taken by {holder(port)}",
                f"End that process, or choose another port: --port-offset N, --free-ports, or {setting} in the file",
            )
