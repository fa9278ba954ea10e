"""Processes that outlive us, told apart from strangers, and ended by id.

Process ids recycle, so an id alone names nothing. A process of ours carries the run folder and its service's name in
its environment, which no stranger does, and which its children inherit: that finds workers whose parent died.
"""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from infra.errors import StackError

RUN_VARIABLE = "SLACKTIDE_RUN"
SERVICE_VARIABLE = "SLACKTIDE_SERVICE"
_ERROR = re.compile(r"\b(ERROR|FATAL|Caused by:|\w+(Error|Exception):)")


def find(pid: int, run: Path, service: str) -> psutil.Process | None:
    """Return process `pid` while it lives and is what was started as `service` of `run`; None for anything else.

    Start times would not do: they are reckoned from the clock, which may be set.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        environment = process.environ()
        is_new = time.time() - process.create_time() < 5
    except psutil.Error:
        return None
    # Right after a process is made its environment still reads as empty.
    return process if _belongs(environment, run, service) or (is_new and not environment) else None


def _belongs(environment: Mapping[str, str], run: Path, service: str | None) -> bool:
    return environment.get(RUN_VARIABLE) == str(run) and service in (None, environment.get(SERVICE_VARIABLE))


def start(
    argv: Sequence[str], *, log: Path, environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, so that it survives our end and our terminal's Ctrl-C.

    Output is appended to `log`; `environment` is the whole environment.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )


def end(processes: Iterable[psutil.Process], grace_seconds: float = 10.0) -> None:
    """Ask `processes` to end, wait, then end by force those that did not. Those already gone are no error."""
    living = list(processes)
    for process in living:
        _signal(process.terminate)
    _, stubborn = psutil.wait_procs(living, timeout=grace_seconds)
    for process in stubborn:
        _signal(process.kill)
    psutil.wait_procs(stubborn, timeout=5)


def kill(processes: Iterable[psutil.Process]) -> None:
    """End `processes` by force: for workers whose parent is gone, which have nothing to put in order."""
    living = list(processes)
    for process in living:
        _signal(process.kill)
    psutil.wait_procs(living, timeout=5)


def _signal(send: Callable[[], None]) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        send()


def of_run(run: Path, service: str | None = None) -> list[psutil.Process]:
    """Return the living processes that were started for the run folder `run` (and for `service`, where given).

    They are known by their environment, so processes of other users, other runs and ourselves never show.
    """
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            zombie = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):
            continue
        if _belongs(environment, run, service) and not zombie and process.pid != os.getpid():
            found.append(process)
    return found


def memory_bytes(processes: Iterable[psutil.Process]) -> int:
    """Return the memory of `processes` added up: their proportional set size, a page of n processes a n-th for each.

    Python workers map the same libraries: by resident size each would count them all. Where the system tells no
    proportional size, it is the resident one.
    """
    return sum(map(_memory_bytes, processes))


def _memory_bytes(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except psutil.AccessDenied:
        return _resident_bytes(process)
    except psutil.Error:
        return 0


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def wait_until(
    ready: Callable[[], bool],
    what: str,
    *,
    timeout_seconds: float,
    logs: Sequence[Path],
    alive: Callable[[], bool] = lambda: True,
) -> None:
    """Return once `ready()`; raise StackError with the last words of `logs` when it dies or takes too long."""
    deadline = time.monotonic() + timeout_seconds
    while not ready():
        if not alive():
            raise StackError(f"{what} ended while starting", f"Its last words:\n{last_words(logs)}")
        if time.monotonic() > deadline:
            problem = f"{what} was not ready after {timeout_seconds:.0f} s"
            raise StackError(problem, f"Its last words:\n{last_words(logs)}")
        time.sleep(0.1)


def last_words(logs: Iterable[Path], count: int = 6) -> str:
    """Return the last lines that name an error, else the last lines, of those `logs` that exist, with their names."""
    found = []
    for log in logs:
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        chosen = [line for line in lines if _ERROR.search(line)] or lines
        if chosen:
            found += [f"  {log}", *(f"    {line[:300]}" for line in chosen[-count:])]
    return "\n".join(found)
