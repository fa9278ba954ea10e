"""The sum of unit embeddings against numpy, and the figures that follow from it against every embedding by itself."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from udfs.sketches.vector_sum import VectorSum
from udfs.statistics.cosine import cosine_similarity
from udfs.versioned_bytes import seal

GOLDEN = Path(__file__).parent.parent / "golden/sketches/vector_sum_v1.hex"
GOLDEN_VECTORS = [[1.0, 2.0, -2.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [math.nan, 0.0, 1.0], [1.0], None]
RNG = np.random.default_rng(5)
EMBEDDINGS = RNG.normal(0.2, 1.0, (500, 64)) * RNG.lognormal(0, 3, (500, 1))


def test_centroid_is_the_mean_of_unit_vectors() -> None:
    units = EMBEDDINGS / np.linalg.norm(EMBEDDINGS, axis=1, keepdims=True)
    vectors = VectorSum.from_vectors(EMBEDDINGS, 64)
    assert vectors.n == 500
    assert np.abs(vectors.centroid() - units.mean(axis=0)).max() <= 1.2e-10
    assert vectors.resultant_length() == pytest.approx(np.linalg.norm(units.mean(axis=0)), abs=1e-9)


def test_mean_cosine_is_the_mean_over_every_embedding() -> None:
    reference = VectorSum.from_vectors(EMBEDDINGS[:300], 64)
    window = VectorSum.from_vectors(EMBEDDINGS[300:], 64)
    one_by_one = np.mean([cosine_similarity(vector, reference.centroid()) for vector in EMBEDDINGS[300:]])
    assert window.mean_cosine(reference) == pytest.approx(one_by_one, abs=1e-9)


def test_merging_is_exact_in_every_order() -> None:
    data = [VectorSum.from_vectors(part, 64).to_bytes() for part in np.split(EMBEDDINGS, [10, 11, 200, 350])]
    whole = VectorSum.from_vectors(EMBEDDINGS, 64)
    for seed in range(10):
        random.Random(seed).shuffle(data)
        merged = VectorSum.merge_all(data, 64)
        assert merged == whole
        assert merged.to_bytes() == whole.to_bytes()


def test_every_vector_is_counted_once() -> None:
    vectors = VectorSum.from_vectors(
        [[1.0, 0.0], None, [0.0, 0.0], [math.inf, 0.0], [None, 1.0], [1.0, 2.0, 3.0], [-0.0, 0.0], [0.0, 1.0]], 2
    )
    assert (vectors.n, vectors.n_zero, vectors.n_invalid, vectors.n_null) == (2, 2, 3, 1)
    assert vectors.centroid().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1.7e308, 5e-324])
def test_the_length_of_an_embedding_changes_nothing(scale: float) -> None:
    vectors = VectorSum.from_vectors([[scale, 0.0], [0.0, 1.0]], 2)
    assert vectors.centroid().tolist() == [0.5, 0.5]


def test_float32_arrays_and_lists_of_arrays() -> None:
    single = EMBEDDINGS.astype(np.float32)
    assert VectorSum.from_vectors(single, 64) == VectorSum.from_vectors(list(single), 64)
    assert VectorSum.from_vectors(single, 64).mean_cosine(VectorSum.from_vectors(EMBEDDINGS, 64)) > 0.0


def test_an_array_of_another_dimension_is_invalid_not_misread() -> None:
    vectors = VectorSum.from_vectors(np.ones((3, 4)), 2)
    assert (vectors.n, vectors.n_invalid) == (0, 3)


def test_without_embeddings_there_are_no_figures() -> None:
    some = VectorSum.from_vectors([[1.0, 0.0]], 2)
    for none in (VectorSum.empty(2), VectorSum.from_vectors([], 2), VectorSum.from_vectors([[0.0, 0.0]], 2)):
        assert none.centroid() is none.resultant_length() is None
        assert none.mean_cosine(some) is some.mean_cosine(none) is None


def test_cancelling_directions() -> None:
    opposite = VectorSum.from_vectors([[1.0, 0.0], [-3.0, 0.0]], 2)
    some = VectorSum.from_vectors([[1.0, 1.0]], 2)
    assert opposite.resultant_length() == 0.0
    assert opposite.mean_cosine(some) == 0.0
    assert some.mean_cosine(opposite) is None  # the centroid has no direction


def test_what_cannot_be_brought_together_is_refused() -> None:
    two, three = VectorSum.empty(2), VectorSum.empty(3)
    for attempt in (lambda: two.merge(three), lambda: two.mean_cosine(three)):
        with pytest.raises(ValueError, match="dimensions"):
            attempt()
    with pytest.raises(ValueError, match="must be numbers"):
        VectorSum.from_vectors([["a", "b"]], 2)


def test_more_than_can_be_held_is_refused_not_wrapped() -> None:
    full = VectorSum(np.full(2, 2**62), n=2**31)
    with pytest.raises(ValueError, match="at most"):
        full.merge(VectorSum.from_vectors([[1.0, 0.0]], 2))


def test_bytes_of_version_1_stay_readable() -> None:
    golden = bytes.fromhex(GOLDEN.read_text())
    assert VectorSum.from_bytes(golden) == VectorSum.from_vectors(GOLDEN_VECTORS, 3)
    assert VectorSum.from_vectors(GOLDEN_VECTORS, 3).to_bytes() == golden


def test_other_bytes_are_refused() -> None:
    good = VectorSum.from_vectors([[1.0, 2.0]], 2).to_bytes()
    for other in (seal(b"VEC", 1, b"short"), seal(b"VEC", 1, good[4:-5]), good[:-1], seal(b"LOG", 1, good[4:-4])):
        with pytest.raises(ValueError, match="not VEC bytes"):
            VectorSum.from_bytes(other)
