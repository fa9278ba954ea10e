"""Root cause (spec A6): levels against numpy and scipy, the weights, the ranking, and what must never happen."""

import itertools
import math
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from schemas.times import rfc3339
from udfs.alerts.cause_signals import (
    CauseSignal,
    Observation,
    level_of,
    observation_of,
)
from udfs.alerts.dependencies import Dependencies
from udfs.alerts.root_cause import CandidateChange, CausePolicy, rank_causes
from udfs.judging.fixed_limit import FixedLimit, Limit
from udfs.judging.frame import Frame
from udfs.judging.reference_ks import ReferenceKs
from udfs.references.figures import ReferenceFigures
from udfs.sketches.reference import RankReference

NOW_MS = 1_800_000_000_000
FIGURES = ReferenceFigures(mean=10.0, standard_deviation=2.0, p1=5.0, p99=15.0)
ENTROPY, HEADS, GPU = "prompt_entropy", "attention_head_variance", "gpu_memory_fragmentation"


def seen(field: str, value: float, *, age_ms: int = 0, series: str = "s", figures=FIGURES) -> Observation:
    verdict_id = f"v-{value}-{figures}-{field}-{age_ms}-{series}"  # as in earnest: other figures, another id
    return Observation(field, series, verdict_id, NOW_MS - age_ms, True, value, reference=figures)


def ranked(observations=(), changes=(), **given):
    return rank_causes(observations, changes, **{"service": "chat", "onset_ms": NOW_MS, "at_ms": NOW_MS} | given)


def test_the_published_weights_and_normalisations_by_hand():
    # min-max (12.5 - 5) / 10; |z| = 1.5 of 3; logistic at one standard deviation above the mean.
    found = ranked([seen(ENTROPY, 12.5), seen(HEADS, 7.0), seen(GPU, 12.0)])
    levels = {cause.name: cause.evidence["level"] for cause in found.causes}
    assert levels == {ENTROPY: 0.75, HEADS: 0.5, GPU: pytest.approx(1 / (1 + np.exp(-1.0)), abs=1e-15)}
    assert found.confidence == pytest.approx(0.35 * 0.75 + 0.40 * 0.5 + 0.25 * levels[GPU], abs=1e-15)
    assert (found.status, found.coverage) == ("ok", pytest.approx(1.0))
    assert sum(cause.evidence["contribution"] for cause in found.causes) == pytest.approx(found.confidence)


def test_a_missing_signal_leaves_its_weight_to_the_others():
    found = ranked([seen(ENTROPY, 12.5), seen(GPU, 10.0)])
    assert found.coverage == pytest.approx(0.60)
    assert found.confidence == pytest.approx((0.35 * 0.75 + 0.25 * 0.5) / 0.60)
    nothing = ranked([seen("retrieval_recall", 4.0)])
    assert (nothing.status, nothing.confidence, nothing.coverage) == ("insufficient_data", None, 0.0)
    assert [cause.name for cause in nothing.causes] == ["retrieval_recall"]  # listed all the same


@pytest.mark.parametrize("normalisation", ["reference_range", "z_score", "logistic"])
@pytest.mark.parametrize("value", [-1e308, -1.0, 5.0, 5.0001, 1e308])
def test_a_reference_without_spread_never_gives_nan(normalisation, value):
    flat = ReferenceFigures(5.0, 0.0, 5.0, 5.0)
    level = level_of(CauseSignal("x", normalisation, "both"), value, flat)
    assert 0.0 <= level.level <= 1.0
    assert 0.0 <= level.unusual <= 1.0
    assert math.isfinite(level.z)


def test_ks_alone_is_enough_and_agrees_with_the_values():
    """A normal reference moved by one standard deviation: the shift found back from D, and the levels near."""
    points = norm.ppf((np.arange(2000) + 0.5) / 2000)
    frame = Frame("m", ENTROPY, (), 60_000, 30_000, "c", "r", "card")
    judge = ReferenceKs(frame, ENTROPY, 0.01, 0.05, 100, "asymptotic", RankReference.from_values(points))
    for shift in (1.0, -1.0):
        (verdict,) = judge.judge([], NOW_MS, [judge.sketch(points + shift)])
        found = observation_of(orjson.loads(verdict.to_json()))
        assert found.shift == pytest.approx(shift, abs=0.01)
        assert found.value is None
    expected = np.clip((-1.0 - norm.ppf(0.01)) / (norm.ppf(0.99) - norm.ppf(0.01)), 0, 1)
    assert ranked([found]).confidence == pytest.approx(expected, abs=0.01)


def test_a_limit_that_is_a_change_from_the_reference_brings_the_references_figures():
    points = np.random.default_rng(2).normal(5.0, 0.5, 1000)
    frame = Frame("m", ENTROPY, (), 60_000, 30_000, "c", "r", "card")
    figures = ReferenceFigures.of_points([*points, math.inf])
    limit = replace(Limit.changed_by(5.0, 0.15), reference=figures)
    judge = FixedLimit(frame, ENTROPY, "mean", limit, min_samples=3)
    (verdict,) = judge.judge([], NOW_MS, [judge.sketch(points + 0.5)])
    (cause,) = ranked([observation_of(orjson.loads(verdict.to_json()))]).causes
    low, high = np.quantile(points, [0.01, 0.99])
    expected = (points.mean() + 0.5 - low) / (high - low)
    assert cause.evidence["level"] == pytest.approx(expected, rel=1e-9)
    assert cause.evidence["z"] == pytest.approx(0.5 / points.std(ddof=1), rel=1e-9)


def test_a_value_counts_before_a_shift_and_the_newest_window_before_older_ones():
    shift = Observation(ENTROPY, "ks", "v", NOW_MS, True, shift=3.0)
    found = ranked([shift, seen(ENTROPY, 99.0, age_ms=60_000), seen(ENTROPY, 10.0)])
    assert [(cause.evidence["value"], cause.score) for cause in found.causes] == []  # at the mean: no cause
    assert found.confidence == pytest.approx(0.5)
    assert ranked([seen(ENTROPY, 12.0, age_ms=901_000)]).confidence is None  # too old
    assert ranked([seen(ENTROPY, 12.0, age_ms=-1)]).confidence is None  # not yet


def test_of_several_series_the_most_unusual_one_counts():
    found = ranked([seen(HEADS, 10.5, series="a"), seen(HEADS, 14.0, series="b"), seen(HEADS, 9.0, series="c")])
    assert found.causes[0].evidence["verdict_id"].endswith("-b")


def test_changes_are_ranked_by_time_and_declared_calls():
    declared = Dependencies({"chat": ("retriever",), "retriever": ("index", "chat")})
    minute = 60_000
    changes = [
        CandidateChange("own-old", "deploy", "chat", NOW_MS - 60 * minute),
        CandidateChange("own", "deploy", "chat", NOW_MS - 5 * minute),
        CandidateChange("two-calls-away", "index_rebuild", "index", NOW_MS - 30 * minute, NOW_MS),
        CandidateChange("stranger", "deploy", "billing", NOW_MS),
        CandidateChange("everyone", "flag", "*", NOW_MS - 15 * minute),
        CandidateChange("after", "deploy", "chat", NOW_MS + 1),
        CandidateChange("long-ago", "deploy", "chat", NOW_MS - 121 * minute),
    ]
    found = ranked([], changes, dependencies=declared)
    scores = {cause.name: cause.score for cause in found.causes}
    assert list(scores) == ["own", "everyone", "two-calls-away", "own-old", "stranger"]
    assert scores == pytest.approx(
        {"own": 2 ** (-5 / 15), "everyone": 0.5, "two-calls-away": 0.25, "own-old": 2**-4, "stranger": 0.05}
    )
    assert [cause.rank for cause in found.causes] == [1, 2, 3, 4, 5]
    weighed = ranked([], changes, dependencies=declared, policy=CausePolicy(kind_weights={"deploy": 0.0}))
    assert [cause.name for cause in weighed.causes] == ["everyone", "two-calls-away"]


def test_what_is_no_observation_is_left_out_quietly():
    body = {
        "status": "ok", "test": "mean", "feature": f"mean({GPU})", "statistic": 0.5, "drifted": True,
        "series_key": "k", "verdict_id": "v", "window_end": rfc3339(NOW_MS),
        "evidence": {"reference": {"mean": 0.1, "standard_deviation": 0.02, "p1": 0.05, "p99": 0.2}},
    }  # fmt: skip
    assert observation_of(body).reference.p99 == 0.2
    for wrong in (
        {"statistic": None}, {"statistic": float("nan")}, {"statistic": True}, {"status": "invalid"},
        {"window_end": "yesterday"}, {"feature": f"p99({GPU})"}, {"feature": None},
        {"feature": GPU, "test": "ks_two_sample"},
        {"evidence": {"reference": {"mean": float("inf")}}}, {"feature": f"null_rate({GPU})"},
    ):  # fmt: skip
        assert observation_of(body | wrong) is None, wrong
    assert observation_of({}) is None
    assert Observation.from_dict(orjson.loads(orjson.dumps(observation_of(body).to_dict()))) == observation_of(body)


_FIELDS = [signal.field for signal in CausePolicy().signals]
_finite = st.floats(-1e300, 1e300)
_observations = st.builds(
    lambda field, series, value, age_s, mean, sd, low, high: seen(
        field, value, age_ms=age_s * 1000, series=series,
        figures=ReferenceFigures(mean, sd, min(low, high), max(low, high)),
    ),
    st.sampled_from(_FIELDS), st.sampled_from("ab"), _finite, st.integers(0, 1000), _finite,
    st.floats(0, 1e300), _finite, _finite,
)  # fmt: skip
_changes = st.builds(
    CandidateChange, st.sampled_from("xyz"), st.just("deploy"), st.sampled_from(["chat", "b", "*"]),
    st.integers(0, 2 * NOW_MS), st.none() | st.integers(0, 2 * NOW_MS),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(_observations, max_size=4), st.lists(_changes, max_size=3))
def test_any_order_gives_the_same_and_every_number_is_finite(observations, changes):
    found = ranked(observations, changes)
    for order in itertools.islice(itertools.permutations(observations), 6):
        assert ranked(order, reversed(changes)) == found
    text = orjson.dumps(found.to_dict())
    assert orjson.loads(text) == found.to_dict()  # orjson writes NaN and infinities as null
    assert all(0.0 <= cause.score <= 1.0 for cause in found.causes)
    assert found.confidence is None or 0.0 <= found.confidence <= 1.0
