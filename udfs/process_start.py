"""When this process began.

A job's Python worker starts with the job, but opens a function at its first record, which may come days later.
"""

import os
import time
from pathlib import Path

_STAT = Path("/proc/self/stat")
_START_TICKS = 19  # field 22 of proc_pid_stat(5), counted behind the name, which may hold anything


def process_started_ms(stat: Path = _STAT) -> int:
    """Return when this process began, epoch milliseconds, to some 10 ms; now where the system doesn't tell.

    Source: proc_pid_stat(5), `starttime`: clock ticks since boot.

    >>> 0 < process_started_ms() <= time.time() * 1000
    True
    """
    now_seconds = time.time()
    try:
        ticks = int(stat.read_text().rpartition(")")[2].split()[_START_TICKS])
        age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age_seconds = 0.0
    return int((now_seconds - max(0.0, age_seconds)) * 1000)
