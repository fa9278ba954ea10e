"""Sampling by hash: uniform, nested, unbiased, and the floor where traffic is low."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from udfs.sampling.hash_fraction import hash_digits, hash_fraction, threshold_digits
from udfs.sampling.review import ReviewRule
from udfs.sampling.rule import SampleRule, widest

IDS = [f"{number:032x}" for number in range(200_000)]  # as far from random as ids get
FRACTIONS = np.array([hash_fraction(trace_id) for trace_id in IDS])
RATES = st.floats(0, 1)
RULES = st.builds(SampleRule, RATES, st.integers(0, 50))


def test_the_fraction_is_that_of_sha_256() -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    whole = int(hashlib.sha256(trace_id.encode()).hexdigest(), 16)
    assert hash_fraction(trace_id) == (whole >> (256 - 52)) / 2**52


def test_fractions_are_uniform_even_over_ids_in_a_row() -> None:
    counts, _ = np.histogram(FRACTIONS, bins=256, range=(0, 1))
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.kstest(FRACTIONS, "uniform").pvalue > 1e-3
    following = np.histogram2d(FRACTIONS[:-1], FRACTIONS[1:], bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(following.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.01, 0.05, 0.5, 1.0])
def test_the_share_that_is_chosen_is_the_rate(rate: float) -> None:
    rule = SampleRule(rate, 0)
    chosen = sum(rule.includes(fraction, place) for place, fraction in enumerate(FRACTIONS.tolist(), 1))
    assert abs(chosen - rate * len(IDS)) <= 4 * math.sqrt(rate * (1 - rate) * len(IDS))


@given(RATES, st.text("0123456789abcdef", min_size=32, max_size=32))
@example(math.nextafter(1, 0), "0" * 32)  # closer to 1 than any 13 digits
@settings(max_examples=100)
def test_texts_compare_as_numbers_do(rate: float, trace_id: str) -> None:
    threshold = threshold_digits(rate)
    by_text = threshold is None or hash_digits(trace_id) < threshold
    assert by_text == (hash_fraction(trace_id) < rate)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_what_is_no_share_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        threshold_digits(rate)
    with pytest.raises(ValueError, match="rate must be from 0 to 1"):
        SampleRule(rate)
    with pytest.raises(ValueError, match="at_least_per_minute"):
        SampleRule(0.5, -1)


@given(RULES, RULES, st.floats(0, 1, exclude_max=True), st.integers(1, 10**6))
@settings(max_examples=100)
def test_nested_and_the_widest_is_the_union(one: SampleRule, other: SampleRule, fraction: float, place: int) -> None:
    chosen = [rule.includes(fraction, place) for rule in (one, other)]
    assert widest([one, other]).includes(fraction, place) == any(chosen)
    if one.rate <= other.rate and one.at_least_per_minute <= other.at_least_per_minute:
        assert chosen[0] <= chosen[1]


@given(RATES, st.floats(0, 1, exclude_max=True), st.integers(1, 10**6))
@settings(max_examples=100)
def test_the_floor_only_adds(rate: float, fraction: float, place: int) -> None:
    if SampleRule(rate, 0).includes(fraction, place):
        assert SampleRule(rate, 5).includes(fraction, place)


@pytest.mark.parametrize("requests", [1, 4, 5, 6, 50, 500, 5000])
def test_a_quiet_minute_gets_its_floor(requests: int) -> None:
    rule = SampleRule(0.01, 5)
    minutes = len(IDS) // requests if requests < 50 else 40
    chosen = []
    for minute in range(min(minutes, 400)):
        fractions = FRACTIONS[minute * requests : (minute + 1) * requests].tolist()
        chosen.append(sum(rule.includes(fraction, place) for place, fraction in enumerate(fractions, 1)))
    assert min(chosen) >= min(requests, 5)
    expected = sum(rule.rate_at(place) for place in range(1, requests + 1))
    assert expected <= 0.01 * requests + 5 * (1 + math.log(100))
    deviation = math.sqrt(sum(rule.rate_at(p) * (1 - rule.rate_at(p)) for p in range(1, requests + 1)) / len(chosen))
    assert abs(np.mean(chosen) - expected) <= 4 * deviation + 1e-9


def test_weights_give_back_the_whole() -> None:
    """Horvitz and Thompson: the sum of 1 / sampling_rate is, on average, what there was; so is a share of bad ones."""
    rule, per_minute = SampleRule(0.01, 5), 2000
    rates = np.array([rule.rate_at(place) for place in range(1, per_minute + 1)])
    by_minute = FRACTIONS[: 100 * per_minute].reshape(100, per_minute)
    weights = np.where(by_minute < rates, 1 / rates, 0)
    deviation = math.sqrt(((1 - rates) / rates).sum() / 100)
    assert abs(weights.sum(axis=1).mean() - per_minute) < 4 * deviation
    bad = np.arange(per_minute) < 300  # the first of a minute: where the floor looks most
    assert weights[:, bad].sum() / weights.sum() == pytest.approx(300 / per_minute, abs=0.02)
    assert bad[np.nonzero(weights)[1]].mean() > 0.3  # without weights it would be told as twice the share


def test_no_rule_chooses_nothing() -> None:
    assert widest([]) == SampleRule(0.0, 0)
    assert not widest([]).includes(0.0, 1)


def test_a_review_needs_a_finite_limit() -> None:
    with pytest.raises(ValueError, match="below must be finite"):
        ReviewRule("factuality", math.nan)
    assert not ReviewRule("factuality", 0.5).asks("groundedness", 0.1)
    assert not ReviewRule("factuality", 0.5).asks("factuality", 0.5)
