"""Where the embedded stack is: the addresses that commands take when the user gives none."""

from pathlib import Path

from infra.paths import state_folder
from infra.stack import Stack
from infra.stack_settings import load_settings


def _stack(state: Path | None) -> Stack:
    state = state or state_folder()
    return Stack.of(state) or Stack(state, load_settings())


def embedded_bootstrap_servers(state: Path | None = None) -> str:
    """HOST:PORT of the embedded broker: of the stack that was started last, else of the configured ports."""
    return _stack(state).broker.bootstrap_servers


def embedded_jobmanager(state: Path | None = None) -> str:
    """HOST:PORT of the embedded cluster's REST interface, found the same way."""
    return _stack(state).flink.rest_address
