"""Dependence estimated from a series: known processes are found again, and what can't be estimated is refused."""

from pathlib import Path

import numpy as np
import orjson
import pytest
from scipy.signal import lfilter

from udfs.budget.dependence import LARGEST_COEFFICIENT, autocorrelation, dependence_of
from udfs.budget.sources import Autoregressive, Recorded
from udfs.references.profile import ReferenceProfile, ReferenceProfileError


def series(coefficient: float, n: int = 20_000, seed: int = 1) -> np.ndarray:
    return Autoregressive(coefficient).draw(np.random.default_rng(seed), n)


@pytest.mark.parametrize(("coefficient", "allowed"), [(0.0, 0.0), (0.3, 0.04), (0.6, 0.04), (0.9, 0.03)])
def test_an_ar1_is_found_again(coefficient: float, allowed: float) -> None:
    found = dependence_of(series(coefficient))
    assert found.coefficient == pytest.approx(coefficient, abs=allowed)
    assert found.lag_1 == pytest.approx(coefficient, abs=0.02)
    assert found.n == 20_000


def test_only_the_order_of_the_values_matters() -> None:
    values = series(0.7)
    assert dependence_of(np.exp(3 * values)) == dependence_of(values)


def test_a_long_weak_memory_counts_for_more_than_its_neighbours_show() -> None:
    rng = np.random.default_rng(3)
    values = 0.4 * series(0.98) + rng.normal(size=20_000)
    found = dependence_of(values)
    # By hand: correlation 0.138 * 0.98^k, so tau = 1 + 2 * 0.138 * 0.98 / 0.02 = 14.5, coefficient 0.87.
    assert found.lag_1 == pytest.approx(0.135, abs=0.03)
    assert found.integrated_time == pytest.approx(14.5, rel=0.35)
    assert found.coefficient == pytest.approx(0.87, abs=0.05)
    assert dependence_of(values, longest_lag=20).coefficient < found.coefficient


def test_alternating_values_count_as_independent() -> None:
    noise = np.random.default_rng(1).normal(size=5000)
    assert dependence_of(lfilter([1.0], [1.0, 0.7], noise)).coefficient == 0.0


def test_blocks_grow_with_dependence_and_keep_it() -> None:
    lengths = [dependence_of(series(c)).block_length for c in (0.0, 0.3, 0.6, 0.9)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 1
    assert lengths[-1] > 50
    again = Recorded(series(0.9), lengths[-1]).draw(np.random.default_rng(2), 20_000)
    assert dependence_of(again).coefficient == pytest.approx(0.9, abs=0.04)


def test_nulls_are_left_out_and_infinities_ordered() -> None:
    values = series(0.6, 2000)
    with_nulls = np.insert(values, [0, 500, 2000], np.nan)
    assert dependence_of(with_nulls) == dependence_of(values)
    assert dependence_of([None, *values.tolist()]) == dependence_of(values)
    at_top = np.where(values >= np.sort(values)[-1], np.inf, values)
    assert dependence_of(at_top) == dependence_of(values)


def test_a_constant_or_a_trend_gives_figures() -> None:
    assert dependence_of(np.full(500, 7.0)).coefficient == 0.0
    assert dependence_of(np.full(500, 7.0)).block_length == 1
    trend = dependence_of(np.arange(500.0))
    assert 0.9 < trend.coefficient <= LARGEST_COEFFICIENT
    assert 1 <= trend.block_length <= 500 / 3


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="can't be estimated from 99 values"):
        dependence_of(np.arange(99.0))


def test_autocorrelation_is_that_of_the_definition() -> None:
    values = series(0.5, 300)
    found = autocorrelation(values, 5)
    from scipy.stats import norm, rankdata

    scores = norm.ppf((rankdata(values) - 0.5) / 300)
    assert found[3] == pytest.approx((scores[3:] * scores[:-3]).sum() / (scores**2).sum(), abs=1e-12)


def test_a_profile_keeps_the_dependence_of_values_in_the_order_of_time(tmp_path: Path) -> None:
    columns = {"x": series(0.6, 3000), "few": [1.0, 2.0], "c": np.ones(200)}
    ordered = ReferenceProfile.build("chat", columns, source="a test", in_time_order=True, created_at_ms=0)
    read = ReferenceProfile.load(ordered.save(tmp_path))
    assert {name: feature.autocorrelation for name, feature in read.features.items()} == {
        "x": pytest.approx(0.6, abs=0.06),
        "few": None,
        "c": 0.0,
    }
    unordered = ReferenceProfile.build("chat", columns, source="a test", created_at_ms=0)
    assert b"autocorrelation" not in unordered.save(tmp_path).read_bytes()
    assert unordered.digest != ordered.digest


def test_a_digest_from_before_autocorrelation_was_kept_still_holds() -> None:
    old = ReferenceProfile.build("chat", {"tokens": [3, 1, None]}, source="an example", created_at_ms=0)
    assert old.digest == "sha256:afc2e868a8b4140e1b1970bcc698964dcd55b355ff4eed87dcf54983b11de4d7"


@pytest.mark.parametrize("wrong", [1.0, -0.1, "much", True])
def test_an_impossible_autocorrelation_is_refused(tmp_path: Path, wrong: object) -> None:
    path = ReferenceProfile.build("chat", {"x": series(0.6, 300)}, source="", in_time_order=True).save(tmp_path)
    body = orjson.loads(path.read_bytes())
    body["features"]["x"]["autocorrelation"] = wrong
    path.write_bytes(orjson.dumps(body))
    with pytest.raises(ReferenceProfileError, match=r"features\.x\.autocorrelation"):
        ReferenceProfile.load(path)
