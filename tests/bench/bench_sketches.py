"""Log sketch and moments over sliding windows: what a record costs here, beside numpy over the whole window and river.

Run with `python -m tests.bench.bench_sketches`: windows of 10 slices, slices of 100 and 10,000 records. Exits with 1
where a quantile is off by more than its guarantee at any step, or a target is missed.
"""

import sys
import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from river.stats import Quantile, Var
from river.stats.base import Univariate

from tests.bench.report import Row, at_least, at_most, print_table
from udfs.sketches.log import LogSketch
from udfs.sketches.moments import Moments

SLICES, ACCURACY, QUANTILES = 10, 0.01, (0.5, 0.95, 0.99)
RIVER_RECORDS = 2_000
ROUNDS = 5  # the least of these is shown: other processes only ever add time
STREAM = np.random.default_rng(20260131).lognormal(6.0, 1.0, 400_000)
SMALL, LARGE = STREAM[:20_000].reshape(-1, 100), STREAM.reshape(-1, 10_000)


def log_sketches(pieces: NDArray[np.float64]) -> list[list[float | None]]:
    """As the job does: bytes of a sketch for each slice, merged for each window, three quantiles of it."""
    recent: deque[bytes] = deque(maxlen=SLICES)
    quantiles = []
    for piece in pieces:
        recent.append(LogSketch.from_values(piece, ACCURACY).to_bytes())
        if len(recent) == SLICES:
            window = LogSketch.merge_all(recent, ACCURACY)
            quantiles.append([window.quantile(q) for q in QUANTILES])
    return quantiles


def numpy_quantiles(pieces: NDArray[np.float64]) -> list[list[float]]:
    """The exact quantiles, from all values of each window."""
    windows = (pieces[end - SLICES : end].ravel() for end in range(SLICES, len(pieces) + 1))
    return [np.quantile(window, QUANTILES, method="lower").tolist() for window in windows]


def moments(pieces: NDArray[np.float64]) -> None:
    """As the job does, for mean and variance."""
    recent: deque[bytes] = deque(maxlen=SLICES)
    for piece in pieces:
        recent.append(Moments.from_values(piece).to_bytes())
        Moments.merge_all(recent).variance()


def river_each_record(*statistics: Univariate) -> None:
    """River's statistics, fed record by record; they never forget, so they are spared the window."""
    for statistic in statistics:
        for value in STREAM[:RIVER_RECORDS].tolist():
            statistic.update(value)


def least_microseconds(calls: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Return microseconds of processor time a record of each call, the least of some rounds; the calls take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, (call, records) in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], (time.process_time() - start) / records * 1e6)
    return least


def worst_error() -> float:
    """Return the largest relative error of any quantile at any step, in shares of the guarantee."""
    pairs = [(log_sketches(pieces), numpy_quantiles(pieces)) for pieces in (SMALL, LARGE)]
    ours, exact = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return float((np.abs(ours - exact) / (ACCURACY * exact)).max())


def main() -> int:
    """Measure, compare every quantile with numpy's, print; return the exit status."""
    worst = worst_error()
    cost = least_microseconds(
        {
            "small": (lambda: log_sketches(SMALL), SMALL.size),
            "large": (lambda: log_sketches(LARGE), LARGE.size),
            "numpy_small": (lambda: numpy_quantiles(SMALL), SMALL.size),
            "numpy_large": (lambda: numpy_quantiles(LARGE), LARGE.size),
            "sort": (lambda: np.sort(LARGE, axis=1), LARGE.size),
            "p2": (lambda: river_each_record(*map(Quantile, QUANTILES)), RIVER_RECORDS),
            "moments": (lambda: moments(SMALL), SMALL.size),
            "var": (lambda: river_each_record(Var()), RIVER_RECORDS),
        }
    )
    bytes_of = [len(LogSketch.from_values(STREAM[:n], ACCURACY).to_bytes()) for n in (1_000, 10_000, 100_000)]

    def row(name: str, ours: str, other: float, bound: float | None, limit: float | None = None) -> Row:
        ratio = other / cost[ours]
        target, reached = at_least(ratio, bound) if bound else ("", None)
        return Row(name, "us/record", cost[ours], other, limit, ratio, target, reached)

    growth = bytes_of[2] / bytes_of[0]
    reached = print_table(
        "Sketches over sliding windows of 10 slices (through bytes, as the job; ratio = peer / us)",
        [
            row("3 quantiles, slices of 10,000, against np.quantile", "large", cost["numpy_large"], 1, cost["sort"]),
            row("3 quantiles, slices of 10,000, against river Quantile", "large", cost["p2"], 3, cost["sort"]),
            row("3 quantiles, slices of 100, against np.quantile", "small", cost["numpy_small"], None),
            row("3 quantiles, slices of 100, against river Quantile", "small", cost["p2"], None),
            row("variance, slices of 100, against river Var", "moments", cost["var"], None),
            Row(
                "log sketch, bytes at 100x traffic / at 1x",
                "",
                bytes_of[2],
                bytes_of[0],
                None,
                growth,
                *at_most(growth, 4),
            ),
        ],
        notes=[
            f"largest error of a quantile at any step: {worst:.6f} of the {ACCURACY:.0%} promised (must be at most 1)",
            f"bytes of a closed slice of 1,000, 10,000, 100,000 records: {bytes_of}; as float64 8 a record",
            "np.quantile keeps every record of the window; river's are streaming estimates that never forget",
            "limit: sorting each slice",
        ],
    )
    return 0 if reached and worst <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
