"""When a process began, against what psutil says."""

import time
from pathlib import Path

import psutil
import pytest

from udfs.process_start import process_started_ms


def test_start_is_the_systems() -> None:
    assert process_started_ms() == pytest.approx(psutil.Process().create_time() * 1000, abs=1000)


@pytest.mark.parametrize("text", [None, "", "1 (a) b) S 1", "1 (a) " + "x " * 30])
def test_a_system_that_does_not_tell_gives_now(tmp_path: Path, text: str | None) -> None:
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    before = time.time() * 1000
    assert before - 1 <= process_started_ms(stat) <= time.time() * 1000
