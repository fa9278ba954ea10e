"""Memory of several processes: what they share counts once."""

import subprocess
import sys

import psutil

from infra.process import memory_bytes

WAIT = "import numpy; print(flush=True); input()"


def test_what_processes_share_counts_once_and_one_that_ended_for_nothing() -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        found = [psutil.Process(child.pid) for child in children]
        together, resident = memory_bytes(found), sum(process.memory_info().rss for process in found)
        assert 5_000_000 < together < resident
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert memory_bytes(found) == 0
