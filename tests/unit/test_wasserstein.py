"""The Wasserstein-1 distance against scipy, and from sketches within the error they state."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from schemas.status import Status
from udfs.sketches.log import LogSketch
from udfs.sketches.moments import Moments
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference
from udfs.sketches.wasserstein import wasserstein_from_logs, wasserstein_from_rank
from udfs.statistics.distance import Distance
from udfs.statistics.wasserstein import wasserstein_1

LARGEST = float(np.finfo(float).max)
values = st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=1, max_size=40)
RNG = np.random.default_rng(17)
PAIRS = {
    "latencies, shifted": (RNG.lognormal(6, 1, 2_000), RNG.lognormal(6.1, 1, 700)),
    "normal, wider": (RNG.normal(0, 1, 1_000), RNG.normal(0, 1.5, 1_500)),
    "far apart": (RNG.uniform(0, 1, 300), RNG.uniform(50, 51, 300)),
    "token counts": (RNG.geometric(0.1, 800).astype(float), RNG.geometric(0.12, 900).astype(float)),
    "equal": (np.arange(500.0), np.arange(500.0)),
}


@settings(deadline=None)
@given(values, values)
def test_equal_to_scipy(reference: list[float], window: list[float]) -> None:
    distance = wasserstein_1(reference, window)
    assert distance.value == pytest.approx(wasserstein_distance(reference, window), rel=1e-9, abs=1e-6)
    assert (distance.error, distance.n_reference, distance.n_window) == (0.0, len(reference), len(window))
    assert distance.value == wasserstein_1(window, reference).value


@settings(deadline=None)
@given(values, st.integers(-1000, 1000))
def test_a_shift_moves_it_by_the_shift(reference: list[float], shift: int) -> None:
    moved = wasserstein_1(reference, [value + shift for value in reference])
    assert moved.value == pytest.approx(abs(shift), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("relative_accuracy", [0.001, 0.01, 0.1])
def test_from_log_sketches_within_the_stated_error(name: str, relative_accuracy: float) -> None:
    exact = wasserstein_distance(*PAIRS[name])
    distance = wasserstein_from_logs(*(LogSketch.from_values(side, relative_accuracy) for side in PAIRS[name]))
    assert abs(distance.value - exact) <= distance.error
    magnitude = sum(np.abs(side).mean() for side in PAIRS[name])
    assert distance.error <= 1.3 * relative_accuracy * magnitude


@pytest.mark.parametrize("name", PAIRS)
def test_from_a_rank_sketch_within_the_stated_error(name: str) -> None:
    reference, window = PAIRS[name]
    moments = Moments.from_values(window)
    distance = wasserstein_from_rank(
        RankSketch.from_values(window, reference), minimum=moments.minimum, maximum=moments.maximum
    )
    assert abs(distance.value - wasserstein_distance(reference, window)) <= distance.error + 1e-12


@settings(deadline=None)
@given(values, values)
def test_any_rank_sketch_keeps_its_stated_error(reference: list[float], window: list[float]) -> None:
    distance = wasserstein_from_rank(
        RankSketch.from_values(window, reference), minimum=min(window), maximum=max(window)
    )
    assert abs(distance.value - wasserstein_distance(reference, window)) <= distance.error + 1e-6


def test_a_dense_reference_makes_the_rank_sketch_nearly_exact() -> None:
    reference, window = np.linspace(0, 1, 10_001), RNG.uniform(0.1, 0.9, 500)
    distance = wasserstein_from_rank(RankSketch.from_values(window, reference))
    assert distance.error <= 5.1e-5


def test_values_on_reference_points_need_no_error() -> None:
    distance = wasserstein_from_rank(RankSketch.from_values([1.0, 3.0, 3.0], [1.0, 2.0, 3.0]))
    assert (distance.value, distance.error) == (pytest.approx(1 / 3), 0.0)


@pytest.mark.parametrize(
    ("minimum", "maximum", "missing"), [(None, 9.0, "minimum"), (-9.0, None, "maximum"), (1.5, 9.0, "minimum")]
)
def test_values_beyond_the_reference_need_the_ends(minimum: float, maximum: float, missing: str) -> None:
    sketch = RankSketch.from_values([-9.0, 9.0], [1.0, 2.0])
    with pytest.raises(ValueError, match=f"{missing} must be given"):
        wasserstein_from_rank(sketch, minimum=minimum, maximum=maximum)


def test_a_rank_sketch_needs_its_reference() -> None:
    read = RankSketch.from_bytes(RankSketch.from_values([1.0], [1.0, 2.0]).to_bytes())
    with pytest.raises(ValueError, match="reference"):
        wasserstein_from_rank(read)


def _all(reference: list[float | None], window: list[float | None]) -> list[Distance]:
    return [
        wasserstein_1(reference, window),
        wasserstein_from_logs(LogSketch.from_values(reference), LogSketch.from_values(window)),
        wasserstein_from_rank(
            RankSketch.from_values(window, RankReference.from_values(reference)), minimum=-LARGEST, maximum=LARGEST
        ),
    ]


@pytest.mark.parametrize(("reference", "window"), [([1.0], [None, math.nan]), ([None], [1.0]), ([], [])])
def test_a_side_without_values_is_unknown(reference: list[float | None], window: list[float | None]) -> None:
    for distance in _all(reference, window):
        assert (distance.status, distance.value, distance.error) == (Status.INSUFFICIENT_DATA, None, None)
        assert distance.n_reference_null == sum(value is None for value in reference)


@pytest.mark.parametrize("sides", [([1.0, math.inf], [1.0]), ([1.0], [-math.inf, 1.0])])
def test_an_infinite_value_makes_it_invalid(sides: tuple[list[float], list[float]]) -> None:
    for distance in _all(*sides):
        assert (distance.status, distance.value, distance.n_infinite) == (Status.INVALID, None, 1)


def test_the_ends_of_float64() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wasserstein_1([-LARGEST], [LARGEST]).status is Status.INVALID
        assert wasserstein_1([LARGEST], [0.0]).value == LARGEST
        assert wasserstein_1([-LARGEST, LARGEST], [LARGEST, -LARGEST]).value == 0.0
        assert wasserstein_from_logs(*[LogSketch.from_values([LARGEST])] * 2).value == 0.0


def test_a_distance_is_finite_or_has_a_reason() -> None:
    for value, error, status in ((math.inf, 0.0, Status.OK), (1.0, None, Status.OK), (1.0, 0.0, Status.NO_DATA)):
        with pytest.raises(ValueError, match="a distance with status"):
            Distance(value, error, 1, 1, 0, 0, 0, status)
