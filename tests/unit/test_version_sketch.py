"""Version sketches: exact sums, what is counted apart, and bytes that stay readable."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from udfs.versions.score_sum import ScoreSum
from udfs.versions.version_sketch import VersionSketch

GOLDEN = Path(__file__).parent.parent / "golden/sketches/version_sketch_v1.hex"
GOLDEN_SKETCH = VersionSketch.from_scores(
    js_bits=[0.1, 0.25, None, 3.0], agreement=[True, False, None, True], kl_nats=[0.5, -1.0, 744.0, float("nan")]
)


def test_golden_bytes_read_and_written_alike() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())
    assert VersionSketch.from_bytes(golden) == GOLDEN_SKETCH
    assert GOLDEN_SKETCH.to_bytes() == golden


def test_a_mean_is_the_exact_mean_of_the_scores_rounded_to_their_unit() -> None:
    values = np.random.default_rng(1).random(20_000)
    units = sum(round(Fraction(float(value)) * 2**40) for value in values)
    scores = ScoreSum.from_values(values)
    assert (scores.n, scores.total) == (20_000, units)
    assert scores.mean == pytest.approx(float(np.mean(values)), abs=1e-12)


def test_the_largest_scores_do_not_overflow() -> None:
    scores = ScoreSum.from_values(np.full(10_000, 1024.0), highest=1024.0)
    for _ in range(50):
        scores = scores.merge(scores)
    assert scores.n == 10_000 * 2**50
    assert ScoreSum.from_bytes(scores.to_bytes()) == scores
    assert scores.mean == 1024.0


def test_what_is_out_of_range_or_missing_moves_no_mean() -> None:
    clean = VersionSketch.from_scores(js_bits=[0.2, 0.4], agreement=[1, 0], kl_nats=[0.1, 9.0])
    inf, nan = float("inf"), float("nan")
    dirty = VersionSketch.from_scores(
        js_bits=[0.2, nan, 0.4, inf, -0.1, 1.1],
        agreement=[1, None, 0, 2.0, -1.0, inf],
        kl_nats=[0.1, None, 9.0, -inf, 1e9, -0.5],
    )
    for name in ("js_bits", "agreement", "kl_nats"):
        part, expected = getattr(dirty, name), getattr(clean, name)
        assert (part.n, part.total, part.n_invalid, part.n_null) == (2, expected.total, 3, 1)


def test_rounding_of_float32_beyond_the_edge_is_taken_for_the_edge() -> None:
    scores = ScoreSum.from_values([np.float32(1.0000001), np.float32(-1e-8)])
    assert (scores.n, scores.mean, scores.n_invalid) == (2, 0.5, 0)


def test_a_request_counts_for_the_scores_it_carries() -> None:
    sketch = VersionSketch.from_scores(agreement=[1, 1])
    assert (sketch.agreement.n, sketch.js_bits, sketch.kl_nats) == (2, ScoreSum(), ScoreSum())


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b"\x02" + b[1:], lambda b: b[:40] + b"!" + b[41:]])
def test_changed_bytes_are_refused(change) -> None:
    with pytest.raises(ValueError, match="not VSK bytes"):
        VersionSketch.from_bytes(change(GOLDEN_SKETCH.to_bytes()))


def test_text_is_refused() -> None:
    with pytest.raises(ValueError, match="must be numbers"):
        ScoreSum.from_values(["0.5"])


@pytest.mark.parametrize("highest", [0.0, -1.0, float("nan"), float("inf"), 1025.0])
def test_a_range_that_could_overflow_is_refused(highest: float) -> None:
    with pytest.raises(ValueError, match="highest must be"):
        ScoreSum.from_values([0.5], highest=highest)
