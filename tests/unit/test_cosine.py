"""The cosine and the angle by hand and against high precision, and where squares leave float64."""

import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from udfs.statistics.cosine import angle, cosine_similarity

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent.parent / "cases/statistics.json").read_text())}
vectors = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        *[st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=size, max_size=size)] * 2
    )
)


def test_case_cos_zero() -> None:
    case = CASES["cos-zero"]
    a, b = case["input"]["a"], case["input"]["b"]
    assert cosine_similarity(a, b) is cosine_similarity(b, a) is case["expected"]["cosine"]
    assert angle(a, b) is None


def test_case_cos_clamp() -> None:
    case = CASES["cos-clamp"]
    a, b = case["input"]["a"], case["input"]["b"]
    assert cosine_similarity(a, b) <= case["expected"]["cosine_max"]
    for found in (angle(a, b), math.acos(cosine_similarity(a, b))):
        assert found == pytest.approx(case["expected"]["angle"], abs=case["expected"]["tolerance"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_equal_to_scipy(dtype: type) -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 384, 768):
        a, b = rng.normal(size=(2, size)).astype(dtype)
        expected = 1 - cosine(a.astype(float), b.astype(float))
        assert cosine_similarity(a, b) == pytest.approx(expected, abs=1e-14)
        assert angle(a, b) == pytest.approx(math.acos(np.clip(expected, -1, 1)), abs=1e-7)


@settings(deadline=None)
@given(vectors)
def test_bounds_symmetry_and_agreement(pair: tuple[list[float], list[float]]) -> None:
    a, b = pair
    similarity = cosine_similarity(a, b)
    assert similarity == cosine_similarity(b, a)
    if not any(a) or not any(b):
        assert similarity is None
        return
    assert -1.0 <= similarity <= 1.0
    assert 0.0 <= angle(a, b) <= math.pi
    assert math.cos(angle(a, b)) == pytest.approx(similarity, abs=1e-14)
    assert angle(a, a) == 0.0
    assert cosine_similarity(a, [-entry for entry in a]) == pytest.approx(-1.0, abs=1e-15)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1.5e308, 5e-324])
def test_the_length_of_a_vector_changes_nothing(scale: float) -> None:
    a, b = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])
    assert cosine_similarity(a * scale, b) == pytest.approx(0.5, rel=1e-15)
    assert cosine_similarity(a * scale, b * scale) == pytest.approx(0.5, rel=1e-15)
    assert cosine_similarity([scale], [-scale]) == -1.0


def test_small_angles_keep_their_digits() -> None:
    for tiny in (1e-3, 1e-8, 1e-12, 1e-200):
        assert angle([1.0, 0.0], [1.0, tiny]) == pytest.approx(math.atan(tiny), rel=1e-12, abs=0)
        assert angle([1.0, 0.0], [-1.0, tiny]) == pytest.approx(math.pi - math.atan(tiny), rel=1e-15)


def test_cancelling_products_keep_their_digits() -> None:
    a, b = [1e8, 1.0, -1e8], [1e8, 1.0, 1e8]
    with localcontext(prec=50):
        x, y = [Decimal(v) for v in a], [Decimal(v) for v in b]
        dot = sum(p * q for p, q in zip(x, y, strict=True))
        exact = dot / (sum(p * p for p in x).sqrt() * sum(q * q for q in y).sqrt())
    assert cosine_similarity(a, b) == pytest.approx(float(exact), abs=1e-16)


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        ([1.0], [1.0, 2.0], "b must be as long as a: 2 is not 1"),
        ([1.0, math.nan], [1.0, 2.0], "a must be a vector of finite"),
        ([1.0, 2.0], [1.0, math.inf], "b must be a vector of finite"),
        ([1.0, None], [1.0, 2.0], "a must be a vector of"),
        ([[1.0]], [1.0], "a must be a vector of numbers"),
        (["a"], [1.0], "a must be a vector of numbers"),
    ],
)
def test_what_is_no_vector_is_refused(a, b, problem: str) -> None:
    for figure in (cosine_similarity, angle):
        with pytest.raises(ValueError, match=problem):
            figure(a, b)


def test_vectors_of_no_entries_have_no_direction() -> None:
    assert cosine_similarity([], []) is None
