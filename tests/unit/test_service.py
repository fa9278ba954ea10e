"""Processes that outlive us: known by id and start time, found with what they left behind, ended by id."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from infra import process as processes
from infra.service import Service, load_services

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")
WITH_WORKER = (sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '60']); time.sleep(60)")


@pytest.fixture
def run(tmp_path: Path):
    yield tmp_path
    processes.kill(processes.of_run(tmp_path))


def service(run: Path, name: str = "sleeper", argv: tuple[str, ...] = SLEEP, **more: object) -> Service:
    return Service(name=name, argv=argv, log=run / f"{name}.log", run=run, **more)  # type: ignore[arg-type]


def wait_for(true, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_lives_on_in_a_session_of_its_own_and_is_found_again(run: Path) -> None:
    started = service(run).start()
    found = service(run).process()
    assert found is not None
    assert found.pid == started.pid
    assert os.getsid(started.pid) == started.pid != os.getsid(0)


def test_stop_ends_it_with_its_workers(run: Path) -> None:
    main = service(run, argv=WITH_WORKER)
    main.start()
    wait_for(lambda: len(main.family()) == 2)
    main.stop()
    assert processes.of_run(run) == []
    assert main.process() is None


def test_workers_left_behind_are_still_its_family(run: Path) -> None:
    main = service(run, argv=WITH_WORKER)
    started = main.start()
    wait_for(lambda: len(main.family()) == 2)
    started.send_signal(signal.SIGKILL)
    started.wait()
    left = main.family()
    assert [p.pid for p in left] != [started.pid]
    assert len(left) == 1
    main.stop()
    assert main.family() == []


def test_another_run_and_another_service_are_not_its_family(
    run: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other_run = tmp_path_factory.mktemp("other")
    first, second, elsewhere = service(run), service(run, "second"), service(other_run)
    for each in (first, second, elsewhere):
        each.start()
    try:
        assert len(first.family()) == 1
        first.stop()
        assert second.process() is not None
        assert elsewhere.process() is not None
    finally:
        elsewhere.stop()


def test_a_recycled_id_is_not_taken_for_ours(run: Path) -> None:
    stranger = subprocess.Popen(SLEEP)
    try:
        wait_for(lambda: psutil.Process(stranger.pid).environ())
        sleeper = service(run)
        sleeper.start()
        sleeper.stop()
        (run / "services" / "sleeper.pid").write_text(str(stranger.pid))
        assert sleeper.process() is None
        sleeper.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_ended_is_not_alive_even_while_a_zombie(run: Path) -> None:
    started = service(run, argv=(sys.executable, "-c", "")).start()
    wait_for(lambda: psutil.Process(started.pid).status() == psutil.STATUS_ZOMBIE)
    assert service(run).process() is None
    started.wait()


def test_what_ignores_the_request_is_ended_by_force(run: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('set', flush=True); time.sleep(60)"
    )
    main = service(run, argv=(sys.executable, "-c", stubborn))
    main.start()
    wait_for(lambda: main.log.read_text() == "set\n")
    main.stop(grace_seconds=0.2)
    assert processes.of_run(run) == []


def test_one_that_prints_its_environment_sees_no_secret(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hidden-value")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    main = service(run, environment={"COLOUR": "blue"}, sees_secrets=False)
    main.start()
    found = main.process()
    assert found is not None
    wait_for(lambda: "SLACKTIDE_RUN" in found.environ())  # reads as empty right after the start
    environment = found.environ()
    assert "KAFKA_PASSWORD" not in environment
    assert (environment["LC_ALL"], environment["COLOUR"], environment["SLACKTIDE_RUN"]) == ("C.UTF-8", "blue", str(run))
    assert environment["PATH"]


def test_notes_are_read_back_in_starting_order_without_the_environment(run: Path) -> None:
    os.environ["SLACKTIDE_TEST_SECRET"] = "hidden-value"
    try:
        last = service(run, "a_last", environment={"COLOUR": "blue"}, folder=run, stop_order=2)
        first = service(run, "z_first", stop_order=1)
        last.save()
        first.save()
        last.start()
    finally:
        del os.environ["SLACKTIDE_TEST_SECRET"]
    assert load_services(run) == [first, last]
    assert not any("hidden-value" in file.read_text() for file in (run / "services").iterdir())
    last.forget()
    assert load_services(run) == [first]
