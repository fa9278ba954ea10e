"""Freed memory goes back to the system, also from below a block that is still in use."""

import ctypes

import psutil
import pytest

from gpu_scorers import cpu_memory
from gpu_scorers.batches import run_batch
from gpu_scorers.cpu_memory import PASSES_BETWEEN_TRIMS, return_freed_memory
from gpu_scorers.devices import CPU

MIB = 1 << 20


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc gives back")
def test_holes_below_a_block_in_use_go_back_to_the_system() -> None:
    me = psutil.Process()
    blocks = [bytes([1]) * 100_000 for _ in range(1000)]
    last = blocks.pop()
    del blocks
    before = me.memory_info().rss
    assert return_freed_memory()
    assert before - me.memory_info().rss > 50 * MIB
    assert len(last) == 100_000


def test_passes_trim_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    trims: list[int] = []
    monkeypatch.setattr(cpu_memory, "return_freed_memory", lambda: trims.append(1))
    for _ in range(3 * PASSES_BETWEEN_TRIMS):
        run_batch([0], CPU, lambda positions, device: positions)
    assert len(trims) == 3
