"""The supervisor starts again what died, with its own environment, and gives up on nothing but in ever longer steps."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from infra import process as processes
from infra import supervisor as supervision
from infra.service import Service
from infra.supervisor import Supervisor, read_restarts

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def run(tmp_path: Path):
    yield tmp_path
    processes.kill(processes.of_run(tmp_path))


def noted(run: Path, name: str, argv: tuple[str, ...] = SLEEP) -> Service:
    service = Service(name=name, argv=argv, log=run / f"{name}.log", run=run)
    service.save()
    return service


def kill(service: Service) -> None:
    main = service.process()
    assert main is not None
    main.send_signal(signal.SIGKILL)
    while service.process() is not None:
        time.sleep(0.01)


def test_what_died_comes_back_with_the_environment_it_had(run: Path) -> None:
    driver = noted(run, "audit")
    started = driver.start({**os.environ, "KAFKA_PASSWORD": "only-in-memory"})
    supervisor = Supervisor(run)
    while not driver.process().environ():  # type: ignore[union-attr]  # reads as empty right after the start
        time.sleep(0.01)
    supervisor.step()
    kill(driver)
    started.wait()
    supervisor.step()
    again = driver.process()
    assert again is not None
    assert again.pid != started.pid
    while not (environment := again.environ()):
        time.sleep(0.01)
    assert environment["KAFKA_PASSWORD"] == "only-in-memory"
    assert read_restarts(run) == {"audit": 1}
    assert not any(b"only-in-memory" in file.read_bytes() for file in run.rglob("*") if file.is_file())


def test_what_lives_is_left_alone(run: Path) -> None:
    broker = noted(run, "broker")
    started = broker.start()
    supervisor = Supervisor(run)
    for _ in range(3):
        supervisor.step()
    assert broker.process() is not None
    assert broker.process().pid == started.pid  # type: ignore[union-attr]
    assert read_restarts(run) == {}


def test_workers_left_behind_are_ended_before_it_starts_again(run: Path) -> None:
    code = "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)"
    taskmanager = noted(run, "taskmanager", (sys.executable, "-c", code))
    taskmanager.start()
    while len(taskmanager.family()) < 2:
        time.sleep(0.01)
    before = {p.pid for p in taskmanager.family()}
    kill(taskmanager)
    Supervisor(run).step()
    assert before.isdisjoint(p.pid for p in processes.of_run(run))
    assert taskmanager.process() is not None


def test_what_keeps_dying_is_started_in_ever_longer_steps(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = noted(run, "broken", (sys.executable, "-c", ""))
    now = [1000.0]
    monkeypatch.setattr(supervision.time, "monotonic", lambda: now[0])
    supervisor = Supervisor(run)
    starts = []
    while now[0] < 1100.0:
        before = supervisor.restarts.get("broken", 0)
        supervisor.step()
        if supervisor.restarts.get("broken", 0) > before:
            starts.append(now[0] - 1000.0)
            while broken.process() is not None:
                time.sleep(0.005)
        now[0] += 0.5
    assert starts == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0]


def test_a_service_that_was_taken_back_is_not_started(run: Path) -> None:
    driver = noted(run, "audit")
    driver.start()
    supervisor = Supervisor(run)
    supervisor.step()
    driver.forget()
    kill(driver)
    supervisor.step()
    assert processes.of_run(run) == []
