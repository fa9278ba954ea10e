"""Scores of two versions' softmax outputs: scipy's figures, and finite ones for any input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr, softmax
from scipy.stats import entropy

from udfs.versions.softmax_pairs import SMALLEST_PROBABILITY, scores_of_logits, scores_of_probabilities

MOST_NATS = -math.log(SMALLEST_PROBABILITY) + 1e-6
any_logits = arrays(np.float64, (3, 4), elements=st.floats() | st.floats(-50, 50))


def pair(n: int, k: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    previous = rng.normal(0, 2, (n, k))
    return previous, previous + rng.normal(0, spread, (n, k))


@pytest.mark.parametrize("k", [2, 7, 32, 1000])
@pytest.mark.parametrize("spread", [1e-7, 0.1, 2.0])
def test_figures_are_scipys(k: int, spread: float) -> None:
    """scipy's `jensenshannon` is the square root, `rel_entr` the terms p log(p / q)."""
    previous, current = pair(300, k, spread, seed=k)
    p, q = softmax(previous, axis=1), softmax(current, axis=1)
    scores = scores_of_logits(previous, current)
    with np.errstate(invalid="ignore"):  # where p nearly equals q scipy takes the root of a negative rounding
        expected = np.nan_to_num(jensenshannon(p, q, base=2, axis=1)) ** 2
    assert scores.js_bits == pytest.approx(expected, abs=1e-13)
    floored = np.maximum(p, SMALLEST_PROBABILITY), np.maximum(q, SMALLEST_PROBABILITY)
    expected_kl = (rel_entr(*floored) * (p / floored[0])).sum(axis=1)
    assert scores.kl_nats == pytest.approx(np.maximum(expected_kl, 0.0), abs=1e-13)
    none_small = np.minimum(p, q).min(axis=1) >= SMALLEST_PROBABILITY
    assert none_small.any() or (k, spread) == (1000, 2.0)
    assert scores.kl_nats[none_small] == pytest.approx(entropy(p, q, axis=1)[none_small], abs=1e-13)
    assert scores.same_label.tolist() == (p.argmax(axis=1) == q.argmax(axis=1)).tolist()
    ready = scores_of_probabilities(p, q)
    assert ready.js_bits == pytest.approx(scores.js_bits, abs=1e-13)
    assert ready.kl_nats == pytest.approx(scores.kl_nats, abs=1e-13)


def test_figures_by_hand() -> None:
    """p = (3/4, 1/4), q = (1/4, 3/4): JS = 1 - H(1/4) bits, KL = log(3) / 2 nats."""
    scores = scores_of_probabilities(np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]]))
    entropy_bits = -(0.25 * math.log2(0.25) + 0.75 * math.log2(0.75))
    assert scores.js_bits[0] == pytest.approx(1 - entropy_bits, abs=1e-15)
    assert scores.kl_nats[0] == pytest.approx(math.log(3) / 2, abs=1e-15)
    assert not scores.same_label[0]


def test_kl_is_weighted_by_the_previous_version() -> None:
    sure, unsure = np.array([[0.98, 0.01, 0.01]]), np.array([[0.4, 0.3, 0.3]])
    forward, back = scores_of_probabilities(sure, unsure), scores_of_probabilities(unsure, sure)
    assert forward.kl_nats[0] == pytest.approx(entropy(sure[0], unsure[0]), abs=1e-14)
    assert back.kl_nats[0] == pytest.approx(entropy(unsure[0], sure[0]), abs=1e-14)
    assert forward.kl_nats[0] != pytest.approx(back.kl_nats[0], abs=0.1)


def test_a_zero_probability_gives_a_finite_figure() -> None:
    p, q = np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    scores = scores_of_probabilities(p, q)
    expected = 0.5 * math.log(0.5) + 0.5 * (math.log(0.5) - math.log(SMALLEST_PROBABILITY))
    assert scores.kl_nats.tolist() == pytest.approx([expected, 0.0], abs=1e-14)
    ruled_out = scores_of_logits(np.array([[1.0, 1.0]]), np.array([[1.0, -np.inf]]))
    assert ruled_out.kl_nats[0] == pytest.approx(expected, abs=1e-14)


@settings(max_examples=200)
@given(any_logits, any_logits)
def test_every_logit_gives_finite_figures_or_an_invalid_row(previous: np.ndarray, current: np.ndarray) -> None:
    kept = previous.copy(), current.copy()
    scores = scores_of_logits(previous, current)
    for figures, most in ((scores.js_bits, 1.0), (scores.kl_nats, MOST_NATS)):
        assert np.isfinite(figures).all()
        assert ((figures >= 0) & (figures <= most)).all()
    assert scores.js_bits.size + scores.n_invalid == scores.usable.size == 3
    unusable = [not np.isfinite(row.max()) for pair_of_rows in (previous, current) for row in pair_of_rows]
    assert (~scores.usable).tolist() == np.logical_or(unusable[:3], unusable[3:]).tolist()
    np.testing.assert_array_equal((previous, current), kept)


@settings(max_examples=200)
@given(
    arrays(np.float64, (3, 3), elements=st.floats(0, 1) | st.floats()),
    arrays(np.float64, (3, 3), elements=st.floats(0, 1)),
)
def test_every_probability_gives_finite_figures_or_an_invalid_row(p: np.ndarray, q: np.ndarray) -> None:
    scores = scores_of_probabilities(p, q)
    assert np.isfinite(scores.js_bits).all()
    assert np.isfinite(scores.kl_nats).all()
    assert ((scores.kl_nats >= 0) & (scores.kl_nats <= MOST_NATS)).all()
    with np.errstate(all="ignore"):
        good = [np.isfinite(r).all(1) & (r >= 0).all(1) & (np.abs(r.sum(1) - 1) <= 0.01) for r in (p, q)]
    assert scores.usable.tolist() == (good[0] & good[1]).tolist()


def test_an_unusable_row_moves_no_other() -> None:
    previous, current = pair(50, 5, 0.5, seed=3)
    clean = scores_of_logits(previous, current)
    bad = np.insert(previous, [0, 20, 50], np.nan, axis=0), np.insert(current, [0, 20, 50], 1.0, axis=0)
    scores = scores_of_logits(*bad)
    assert scores.n_invalid == 3
    assert scores.js_bits.tolist() == clean.js_bits.tolist()
    assert scores.kl_nats.tolist() == clean.kl_nats.tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_are_computed_in_float64(dtype: type) -> None:
    previous, current = (array.astype(dtype) for array in pair(200, 32, 0.3, seed=4))
    narrow = scores_of_logits(previous, current)
    wide = scores_of_logits(previous.astype(np.float64), current.astype(np.float64))
    assert narrow.kl_nats.tolist() == wide.kl_nats.tolist()
    p, q = softmax(previous, axis=1).astype(dtype), softmax(current, axis=1).astype(dtype)
    assert scores_of_probabilities(p, q).n_invalid == 0


def test_adding_a_constant_to_all_logits_changes_nothing() -> None:
    previous, current = pair(100, 8, 0.5, seed=5)
    moved = scores_of_logits(previous + 300.0, current - 700.0)
    assert moved.js_bits == pytest.approx(scores_of_logits(previous, current).js_bits, abs=1e-12)


def test_the_label_is_the_first_of_the_highest() -> None:
    scores = scores_of_logits(np.array([[1.0, 1.0, 0.0]] * 2), np.array([[2.0, 2.0, 2.0], [0.0, 3.0, 3.0]]))
    assert scores.same_label.tolist() == [True, False]


def test_rows_are_scored_alike_however_many_there_are() -> None:
    previous, current = pair(20_000, 32, 0.5, seed=6)  # several parts of the array
    whole = scores_of_logits(previous, current)
    some = scores_of_logits(previous[-7:], current[-7:])
    assert whole.kl_nats[-7:].tolist() == pytest.approx(some.kl_nats.tolist(), abs=1e-15)


def test_no_rows() -> None:
    assert scores_of_logits(np.empty((0, 3)), np.empty((0, 3))).usable.size == 0


@pytest.mark.parametrize(
    ("previous", "current", "message"),
    [
        (np.zeros(3), np.zeros(3), "previous must be numbers of shape"),
        (np.zeros((2, 0)), np.zeros((2, 0)), "previous must be numbers of shape"),
        (np.zeros((2, 3)), np.array([["a"]]), "current must be numbers of shape"),
        (np.zeros((2, 3)), np.zeros((2, 4)), "current must have the shape of previous"),
    ],
)
def test_other_shapes_are_refused(previous: np.ndarray, current: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scores_of_logits(previous, current)
