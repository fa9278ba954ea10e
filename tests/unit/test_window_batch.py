"""Windows judged together, as in a batch of the job, have the verdicts, to the byte, of windows judged one by one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from tests.judges import FRAME, LIVE_FRAME
from udfs.judging.binned import BinnedNumbers
from udfs.judging.null_rate import NullRate
from udfs.judging.range import Range
from udfs.judging.reference_categories import ReferenceCategories
from udfs.judging.reference_divergence import DivergencePolicy, ReferenceDivergence
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.two_streams import TwoStreams
from udfs.judging.window_batch import verdicts_of_rows
from udfs.judging.window_judge import InputKind, WindowJudge
from udfs.judging.with_findings import WithFindings
from udfs.parts import join_parts, split_parts
from udfs.references.category_feature import CategoryReference
from udfs.sketches.reference import RankReference

REASONS = np.array(["stop", "length", "tool_calls", "content_filter"], dtype=object)
Row = tuple[int, int, str, list[bytes]]


def monitors(rng: np.random.Generator) -> list[list[WindowJudge]]:
    """Three monitors: continuous, categories and two streams; whole numbers with ties; one that takes every window."""
    continuous, whole = rng.lognormal(5.0, 1.0, 1000), rng.integers(0, 60, 2000).astype(float)
    reasons = CategoryReference.from_values(REASONS[rng.integers(0, 3, 800)], max_categories=100)
    numbers = RankReference.from_values(whole)
    psi = ReferenceDivergence(FRAME, "f", BinnedNumbers(numbers), DivergencePolicy("psi", 0.25, min_samples=50))
    return [
        [
            ks_of(continuous, "chat", min_samples=30),
            ReferenceCategories(FRAME, "reason", reasons, alpha=0.01, min_effect=0.05, min_samples=30),
            TwoStreams(LIVE_FRAME, "f", "arm"),
        ],
        [ks_of(whole, "whole", min_samples=30), psi],
        [ks_of(continuous, "small", min_samples=1)],
    ]


def ks_of(points: NDArray[np.float64], monitor: str, *, min_samples: int) -> WithFindings:
    """KS against `points`, with nulls and a range: one transport, three verdicts."""
    frame = replace(FRAME, monitor=monitor)
    main = ReferenceKs(frame, "f", 0.01, 0.05, min_samples, "asymptotic", RankReference.from_values(points))
    nulls = NullRate(frame, "f", points.size, 0, alpha=0.01, min_effect=0.02, min_samples=min_samples)
    out = Range(frame, "f", 0.0, 1e4, n_reference=points.size, max_share=0.01, min_samples=min_samples)
    return WithFindings(main, (nulls,), (out,))


def column(rng: np.random.Generator, kind: InputKind, n: int, shift: float, *, is_whole: bool) -> NDArray[np.generic]:
    """Values of one slice: nulls in some, infinities in others, on points of the reference where they are whole."""
    if kind is InputKind.TEXT:
        return REASONS[rng.integers(0, 4 if shift else 3, n)]
    values = rng.integers(0, 60, n) + round(10 * shift) if is_whole else rng.lognormal(5.0 + shift, 1.0, n)
    values = values.astype(float)
    spoiled = rng.random()
    values[rng.random(n) < (0.2 if spoiled < 0.2 else 0.0)] = np.nan
    values[rng.random(n) < (0.05 if spoiled > 0.8 else 0.0)] = np.inf
    return values


def rows_of(judges: list[list[WindowJudge]], rng: np.random.Generator, n_rows: int) -> list[Row]:
    """Windows of all monitors in turns, of several series, some empty, some too small, some drifted."""
    rows: list[Row] = []
    for number in range(n_rows):
        monitor = int(rng.integers(0, len(judges)))
        shift = float(rng.choice([0.0, 0.0, 0.1, 2.0]))
        slices = []
        for size in rng.choice([0, 3, 40, 150], size=rng.integers(1, 5)).tolist():
            parts = [
                judge.sketch(*(column(rng, i.kind, size, shift, is_whole=monitor == 1) for i in judge.inputs))
                for judge in judges[monitor]
            ]
            slices.append(join_parts(parts))
        labels = orjson.dumps([str(rng.choice(["m1", "m2", "münchen"]))]).decode()
        rows.append((monitor, 60_000 * (number + 1), labels, slices))
    return rows


def one_by_one(judges: list[list[WindowJudge]], row: Row) -> list[bytes]:
    monitor, end_ms, labels, joined = row
    of_judges = zip(*map(split_parts, joined), strict=True)
    return [
        verdict.to_json()
        for judge, sketches in zip(judges[monitor], of_judges, strict=True)
        for verdict in judge.judge(orjson.loads(labels), end_ms, sketches)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_judged_together_or_one_by_one_the_bytes_are_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    judges = monitors(rng)
    rows = rows_of(judges, rng, 80)
    together = [[verdict.to_json() for verdict in of_row] for of_row in verdicts_of_rows(judges, rows)]
    assert together == [one_by_one(judges, row) for row in rows]
    bodies = [orjson.loads(verdict) for of_row in together for verdict in of_row]
    seen = Counter((body["test"], body["status"], body["drifted"]) for body in bodies)
    assert {("ks_two_sample", "ok", True), ("ks_two_sample", "ok", False)} <= seen.keys()
    assert ("ks_two_sample", "insufficient_data", None) in seen
    assert len({(body["monitor"], body["series"]["model"]) for body in bodies}) == 9
    assert len({body["test"] for body in bodies}) >= 5


def test_no_rows_no_verdicts() -> None:
    assert verdicts_of_rows([[]], []) == []


def test_sketches_of_another_monitor_are_refused() -> None:
    judges = monitors(np.random.default_rng(4))
    ((_, end_ms, labels, joined),) = rows_of(judges[2:], np.random.default_rng(4), 1)
    with pytest.raises(ValueError, match="1 parts, 3 were expected"):
        verdicts_of_rows(judges, [(0, end_ms, labels, joined)])
    with pytest.raises(ValueError, match="reference"):
        verdicts_of_rows([[judges[1][0]]], [(0, end_ms, labels, joined)])
