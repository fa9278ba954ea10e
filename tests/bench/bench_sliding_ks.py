"""Sliding exact D: what a record costs here, with scipy at every step, and with river's KSWIN, on one stream.

Run with `python -m tests.bench.bench_sliding_ks`: m = 1000 reference points, a window of 1000 records that slides by
100. Exits with 1 where D differs from scipy's at any step, or a target is missed.
"""

import sys
import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from river.drift import KSWIN
from scipy.stats import ks_2samp

from tests.bench.report import Row, at_least, print_table
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference
from udfs.statistics import ks

M, WINDOW, STEP, RECORDS = 1000, 1000, 100, 20_000
SLICES = WINDOW // STEP
KSWIN_RECORDS = 2000
ROUNDS = 7  # the least of these is shown: other processes only ever add time

_RNG = np.random.default_rng(20240131)
REFERENCE_POINTS = _RNG.lognormal(5.0, 1.0, M)
STREAM = np.concatenate([_RNG.lognormal(5.0, 1.0, RECORDS // 2), _RNG.lognormal(5.2, 1.0, RECORDS // 2)])
PIECES = STREAM.reshape(-1, STEP)
REFERENCE = RankReference.from_values(REFERENCE_POINTS)


def as_the_job_does() -> list[float | None]:
    """A sketch's bytes for each slice, and for each window the merge of its slices' bytes."""
    recent: deque[bytes] = deque(maxlen=SLICES)
    statistics = []
    for piece in PIECES:
        recent.append(RankSketch.from_values(piece, REFERENCE).to_bytes())
        if len(recent) == SLICES:
            statistics.append(RankSketch.merge_all(recent, REFERENCE).statistic())
    return statistics


def as_the_job_does_with_p() -> list[float | None]:
    """The same with p and the whole result; no p-value is remembered from before."""
    ks.forget_p_values()
    recent: deque[bytes] = deque(maxlen=SLICES)
    p_values = []
    for piece in PIECES:
        recent.append(RankSketch.from_values(piece, REFERENCE).to_bytes())
        if len(recent) == SLICES:
            p_values.append(RankSketch.merge_all(recent, REFERENCE).result().p_value)
    return p_values


def in_one_process() -> list[float | None]:
    """Sketches in memory: the arriving slice is added, the leaving one taken out."""
    recent: deque[RankSketch] = deque()
    window = RankSketch.merge_all([], REFERENCE)
    statistics = []
    for piece in PIECES:
        recent.append(RankSketch.from_values(piece, REFERENCE))
        window = window.merge(recent[-1])
        if len(recent) > SLICES:
            window = window.without(recent.popleft())
        if len(recent) == SLICES:
            statistics.append(window.statistic())
    return statistics


def scipy_each_step(method: str) -> list[float]:
    """`ks_2samp` of the reference and the whole window, at every step."""
    ends = range(WINDOW, RECORDS + 1, STEP)
    return [ks_2samp(REFERENCE_POINTS, STREAM[end - WINDOW : end], method=method).statistic for end in ends]


def kswin_each_record() -> None:
    """River's detector, which tests 30 recent values against 30 of the 70 before at every record."""
    detector = KSWIN(window_size=100, stat_size=30, seed=1)
    for value in STREAM[:KSWIN_RECORDS].tolist():
        detector.update(value)


def binning_alone(points: NDArray[np.float64]) -> None:
    """The limit: place each record among the points and count; no merge, no D."""
    for piece in PIECES:
        np.bincount(np.searchsorted(points, piece), minlength=M + 1)


def least_microseconds(calls: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Return microseconds of processor time a record of each call, the least of some rounds; the calls take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, (call, records) in calls.items():
            start = time.process_time()
            call()
            least[name] = min(least[name], (time.process_time() - start) / records * 1e6)
    return least


def main() -> int:
    """Measure, compare with scipy at every step, print; return the exit status."""
    theirs = scipy_each_step("asymp")
    differing = sum(a != b for ours in (as_the_job_does(), in_one_process()) for a, b in zip(ours, theirs, strict=True))
    points = np.sort(REFERENCE_POINTS)
    cost = least_microseconds(
        {
            "job": (as_the_job_does, RECORDS),
            "job_with_p": (as_the_job_does_with_p, RECORDS),
            "one_process": (in_one_process, RECORDS),
            "scipy": (lambda: scipy_each_step("asymp"), RECORDS),
            "scipy_auto": (lambda: scipy_each_step("auto"), RECORDS),
            "kswin": (kswin_each_record, KSWIN_RECORDS),
            "limit": (lambda: binning_alone(points), RECORDS),
        }
    )
    limit, peer = cost["limit"], min(cost["scipy"], cost["scipy_auto"])

    def row(name: str, ours: str, other: float, bound: float | None) -> Row:
        ratio = other / cost[ours]
        target, reached = at_least(ratio, bound) if bound else ("", None)
        return Row(name, "us/record", cost[ours], other, limit, ratio, target, reached)

    reached = print_table(
        f"Sliding exact D (m = {M}, window {WINDOW}, step {STEP}; ratio = peer / us)",
        [
            row("D in one process, against ks_2samp a step", "one_process", peer, 20),
            row("D in one process, against KSWIN(100, 30)", "one_process", cost["kswin"], 200),
            row("D through bytes as the job, against ks_2samp", "job", peer, None),
            row("D through bytes as the job, against KSWIN", "job", cost["kswin"], 200),
            row("D and p through bytes, against ks_2samp", "job_with_p", peer, None),
        ],
        notes=[
            f"D differs from scipy's at {differing} of {2 * len(theirs)} steps (must be 0)",
            f"ks_2samp: asymp {cost['scipy']:.2f}, auto {cost['scipy_auto']:.2f} us/record; the cheaper is the peer",
            f"p costs {cost['job_with_p'] - cost['job']:.2f} us/record: a kstwo.sf a step, remembered where D repeats",
            "limit: searchsorted and bincount of each slice, without merge and D",
        ],
    )
    return 0 if reached and differing == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
