"""What keeping service levels costs: memory of 500 SLOs over 30 days, updates a second, a step of the machine.

Run with `python -m tests.bench.bench_slo`: each SLO gets its counts of every minute of 30 days, then a window of each
length is held against the sum of the plain counts. Exits with 1 where a sum is off or a target is missed.
"""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from tests.bench.report import Row, at_least, at_most, print_table
from tests.slo_files import START_MS, slo
from udfs.slo.budget_verdicts import standing
from udfs.slo.counts import MINUTES, SloCounts
from udfs.slo.indicators import Tally
from udfs.slo.periods import DAY_MS, MINUTE_MS
from udfs.slo.step import SloSeries

SLOS, DAYS = 500, 30
TARGET_MB, TARGET_UPDATES_PER_SECOND = 50.0, 50_000.0
SINGLE_UPDATES, STEPS, STANDINGS = 100_000, 2_000, 2_000
FIRST_MINUTE = START_MS // MINUTE_MS
WINDOWS_MS = (5 * MINUTE_MS, 60 * MINUTE_MS, 6 * 60 * MINUTE_MS, DAY_MS)


def main() -> int:
    """Measure, print, and return the exit status."""
    rng = np.random.default_rng(7)
    minutes = np.arange(FIRST_MINUTE, FIRST_MINUTE + DAYS * 1440)
    total = rng.integers(1, 500, minutes.size)
    good = total - rng.binomial(total, 0.01)
    megabytes, in_bundles, kept = _thirty_days(minutes, good, total)
    single = _per_second(lambda n: _add(minutes, good, total, n), SINGLE_UPDATES)
    steps = _per_second(_step, STEPS)
    told = _per_second(lambda n: _standings(kept, int(minutes[-1]), n), STANDINGS)
    wrong = _wrong_sums(kept, good, total)
    rows = [
        _memory("state in memory", megabytes),
        _memory("state as bytes", SLOS * len(kept.to_bytes()) / 1e6),
        _rate("update, one by one", single),
        _rate("update, a day in a bundle", in_bundles),
        Row("slice through bytes, state machine", "us", 1e6 / steps),
        Row("budget, 4 rules and projection", "us", 1e6 / told),
    ]
    notes = [
        f"{SLOS} SLOs, {DAYS} days of minutes each; microseconds of one core",
        f"ratio: megabytes, or updates a second over {TARGET_UPDATES_PER_SECOND:,.0f}",
        f"windows whose sum is not that of the plain counts: {wrong}",
    ]
    return 0 if print_table("Service levels", rows, notes=notes) and not wrong else 1


def _thirty_days(
    minutes: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    good: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    total: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> tuple[float, float, SloCounts]:
    """Return megabytes, updates a second, and the counts of the last SLO."""
    gc.collect()
    tracemalloc.start()
    held = []
    for _ in range(SLOS):
        counts = SloCounts.begin()
        counts.add_many(minutes[:1440], good[:1440], total[:1440])
        held.append(counts)
    size = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    began = time.process_time()
    for counts in held:
        for day in range(1, DAYS):
            of = slice(day * 1440, (day + 1) * 1440)
            counts.add_many(minutes[of], good[of], total[of])
    return size, SLOS * (DAYS - 1) * 1440 / (time.process_time() - began), held[-1]


def _add(minutes: object, good: object, total: object, n: int) -> None:
    counts = SloCounts.begin()
    rows = zip(*(np.asarray(column)[:n].tolist() for column in (minutes, good, total)), strict=True)
    given = list(rows) * (1 + n // len(np.asarray(minutes)))
    for minute, good_here, total_here in given[:n]:
        counts.add(minute, good_here, total_here)


def _step(n: int) -> None:
    series = SloSeries(slo(), ("m1",), MINUTE_MS)
    state = None
    for number in range(n):
        state, _ = series.step(state, START_MS + (number + 1) * MINUTE_MS, Tally(99, 100))


def _standings(counts: SloCounts, last_minute: int, n: int) -> None:
    of = slo()
    for _ in range(n):
        standing(of, counts, (last_minute + 1) * MINUTE_MS)


def _wrong_sums(counts: SloCounts, good: object, total: object) -> int:
    plain = np.stack([np.asarray(good), np.asarray(total)])
    last = FIRST_MINUTE + plain.shape[1] - 1
    wrong = 0
    for length_ms in (*WINDOWS_MS, 3 * DAY_MS, 7 * DAY_MS, 28 * DAY_MS, 30 * DAY_MS):
        n = length_ms // MINUTE_MS
        if n > MINUTES:  # to the hour: from the start of the oldest
            n += (last - n + 1) % 60
        expected = plain[:, max(0, plain.shape[1] - n) :].sum(axis=1).tolist()
        wrong += list(counts.rolling(last, length_ms)[:2]) != expected
    return wrong


def _per_second(work: Callable[[int], None], n: int) -> float:
    began = time.process_time()
    work(n)
    return n / (time.process_time() - began)


def _memory(name: str, megabytes: float) -> Row:
    target, reached = at_most(megabytes, TARGET_MB)
    return Row(name, "MB", None, ratio=megabytes, target=target, reached=reached)


def _rate(name: str, per_second: float) -> Row:
    target, reached = at_least(per_second / TARGET_UPDATES_PER_SECOND, 1.0)
    figure = per_second / TARGET_UPDATES_PER_SECOND
    return Row(name, "us", 1e6 / per_second, ratio=figure, target=target, reached=reached)


if __name__ == "__main__":
    sys.exit(main())
