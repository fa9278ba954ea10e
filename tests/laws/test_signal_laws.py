"""What holds for every follower of verdicts, whatever comes."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.feedback import Feedback
from schemas.verdicts import Verdict, VerdictKind
from tests.signal_verdicts import DAY_MS, EPOCH_MS, HOUR_MS, window
from udfs.judging.frame import Frame
from udfs.signals import baseline, embedding_decay, feedback, joint_confidence, seasonal_state, time_sensitive
from udfs.signals.baseline import BaselineDrop, BaselinePolicy
from udfs.signals.embedding_decay import DecayPolicy, EmbeddingDecay
from udfs.signals.feedback import FeedbackPolicy, FeedbackScore, FeedbackState, weighted_summary
from udfs.signals.follow import Follower, History
from udfs.signals.joint_confidence import JointConfidence, JointPolicy
from udfs.signals.p90_gate import DynamicThreshold, DynamicThresholdPolicy
from udfs.signals.seasonal_band import BandPolicy
from udfs.signals.seasonal_threshold import SeasonalPolicy, SeasonalThreshold
from udfs.signals.time_sensitive import TimeSensitive, TimeSensitivePolicy

EXAMPLES = settings(max_examples=60)

BAND = BandPolicy(
    period_seconds=7200.0, slot_seconds=3600.0, min_windows=2, residual_windows=5, max_gap_seconds=20_000.0
)
SEASONAL = SeasonalPolicy(relearn_after_seconds=10_000.0, wrong_side="both", band=BAND)
FOLLOWERS: dict[str, Follower] = {
    "embedding_decay": EmbeddingDecay("chat", "e", DecayPolicy(min_effective_n=50)),
    "time_sensitive_score": TimeSensitive("chat", "r", TimeSensitivePolicy(alarm_threshold=0.3)),
    "baseline_drop": BaselineDrop("chat", "p50(q)", BaselinePolicy(learn_windows=3, adapt_tau_seconds=86_400.0)),
    "joint_confidence": JointConfidence("chat", JointPolicy(("tokens",), "e", "helpful", feedback_valid_seconds=7200)),
    "dynamic_threshold": SeasonalThreshold("chat", "p50(q)", SEASONAL),
}
MODULES: dict[str, Any] = {
    "embedding_decay": embedding_decay,
    "time_sensitive_score": time_sensitive,
    "baseline_drop": baseline,
    "joint_confidence": joint_confidence,
    "dynamic_threshold": seasonal_state,
}
EVERY = pytest.mark.parametrize("name", FOLLOWERS)


def _source(feature: str, hour: int, figure: float | None, series: str) -> Verdict:
    """An hour's verdict on one of the features that the followers take, of series `series`."""
    test = {"tokens": "ks_two_sample", "p50(q)": "quantile"}.get(feature, feature.split("(", maxsplit=1)[0])
    found = window(test, feature, hour * HOUR_MS, figure, window_ms=HOUR_MS, series={"model": series})
    if feature == "tokens":
        log10_p = None if figure is None else -20 * figure
        return replace(found, log10_p_value=log10_p, p_value=None if log10_p is None else 10**log10_p, alpha=0.01)
    evidence = {"reference_mean_cosine": 0.9, "baseline": 0.9, "mean_delay_seconds": 3600.0}
    return replace(found, effect=None if figure is None else 0.9 - figure, threshold=0.7, evidence=evidence)


FEATURES = ("tokens", "mean_cosine(e)", "embedding_decay(e)", "feedback(helpful)", "kl_divergence(r)", "p50(q)")
FIGURES = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.0, 1.0, 1e-300]))
VERDICTS = st.builds(
    _source, st.sampled_from(FEATURES), st.integers(0, 30), FIGURES, st.sampled_from(["m1", "m1", "m2"])
)


def _one_of_each(verdicts: list[Verdict]) -> list[Verdict]:
    """In the order of window ends, one verdict for a feature, series and window: what a job delivers."""
    whole = {(v.window_end_ms, v.feature, v.series["model"]): v for v in verdicts}
    return [whole[place] for place in sorted(whole)]


TIMELINES = st.lists(VERDICTS, max_size=60).map(_one_of_each)


def said_by(name: str, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What one follower says of the verdicts; those it said before don't come back to it."""
    follower, states, said = FOLLOWERS[name], dict[str, bytes](), list[Verdict]()
    for verdict in verdicts:
        if follower.accepts(verdict):
            key = follower.key(verdict)
            states[key], spoken = follower.step(states.get(key), verdict)
            said += spoken
    return said


@EVERY
@EXAMPLES
@given(TIMELINES)
def test_figures_go_with_status_and_are_finite(name: str, verdicts: list[Verdict]) -> None:
    for verdict in said_by(name, verdicts):
        assert verdict.kind == VerdictKind.SIGNAL
        assert (verdict.status == "ok") == (verdict.statistic is not None) == (verdict.drifted is not None)
        assert verdict.statistic is None or math.isfinite(verdict.statistic)
        body = verdict.to_json()
        assert b"NaN" not in body
        assert Verdict.from_json(body) == verdict


@EVERY
@EXAMPLES
@given(TIMELINES)
def test_each_window_of_a_series_is_said_once_and_in_order(name: str, verdicts: list[Verdict]) -> None:
    said = said_by(name, verdicts)
    assert len({verdict.verdict_id for verdict in said}) == len(said)
    for model in ("m1", "m2"):
        ends = [verdict.window_end_ms for verdict in said if verdict.series["model"] == model]
        assert ends == sorted(set(ends))


@EVERY
@EXAMPLES
@given(TIMELINES, st.data())
def test_a_replay_from_a_checkpoint_says_the_same(name: str, verdicts: list[Verdict], data: st.DataObject) -> None:
    """Repeats of what was taken before say nothing, and change nothing of what is said later."""
    cut = data.draw(st.integers(0, len(verdicts)))
    again = data.draw(st.integers(0, cut))
    ends = {verdict.window_end_ms for verdict in verdicts[cut:]}
    replayed = [*verdicts[:cut], *(v for v in verdicts[again:cut] if v.window_end_ms not in ends), *verdicts[cut:]]
    assert said_by(name, replayed) == said_by(name, verdicts)


@EVERY
@EXAMPLES
@given(TIMELINES, st.randoms(use_true_random=False))
def test_the_order_within_a_window_end_changes_nothing(name: str, verdicts: list[Verdict], random: Any) -> None:
    shuffled = []
    for _, group in groupby(verdicts, key=lambda verdict: verdict.window_end_ms):
        of_window = list(group)
        random.shuffle(of_window)
        shuffled += of_window
    first, second = said_by(name, verdicts), said_by(name, shuffled)
    assert {v.verdict_id: v.to_json() for v in first} == {v.verdict_id: v.to_json() for v in second}


@EVERY
@EXAMPLES
@given(TIMELINES)
def test_the_state_reads_back_and_stays_small(name: str, verdicts: list[Verdict]) -> None:
    follower, module, state = FOLLOWERS[name], MODULES[name], None
    for verdict in verdicts:
        if follower.accepts(verdict) and verdict.series["model"] == "m1":
            state, _ = follower.step(state, verdict)
            assert module.encode(module.decode(state)) == state
            assert len(state) < 4000


@EVERY
def test_a_follower_pickles(name: str) -> None:
    follower: Follower = pickle.loads(pickle.dumps(FOLLOWERS[name]))
    assert follower == FOLLOWERS[name]
    assert follower.uid == FOLLOWERS[name].uid


@EXAMPLES
@given(TIMELINES)
def test_followers_may_follow_followers(verdicts: list[Verdict]) -> None:
    """Decay is made of cosines and votes in the joint confidence, in one pass as in a job."""
    cosines = [verdict for verdict in verdicts if verdict.feature in ("mean_cosine(e)", "tokens")]
    said = History(list(FOLLOWERS.values())).take(cosines)
    decayed = said_by("embedding_decay", cosines)
    assert [v for v in said if v.test == "embedding_decay"] == decayed
    joint = {v.verdict_id for v in said if v.test == "joint_confidence"}
    together = _one_of_each([*(v for v in cosines if v.feature == "tokens"), *decayed])
    assert joint == {v.verdict_id for v in said_by("joint_confidence", together)}


@EXAMPLES
@given(st.lists(st.one_of(st.none(), st.floats(0, 10)), max_size=80), st.lists(st.integers(1, 30), max_size=80))
def test_the_gate_moves_by_five_percent_an_hour_at_most(figures: list[float | None], gaps: list[int]) -> None:
    policy, gate, hour = DynamicThresholdPolicy(min_hours=2), DynamicThreshold(), 0
    for figure, gap in zip(figures, gaps, strict=False):
        hour += gap
        after = gate.after(hour, figure, policy)
        if gate.threshold is not None and after.threshold is not None:
            assert after.threshold <= max(gate.threshold, policy.floor) * 1.05**gap * (1 + 1e-12)
            if gate.threshold > policy.floor:
                assert after.threshold >= gate.threshold * 0.95**gap * (1 - 1e-12)
        gate = after


WEIGHTED = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


@EXAMPLES
@given(WEIGHTED, st.randoms(use_true_random=False))
def test_a_weighted_mean_is_between_its_values_whatever_their_order(weighted: Any, random: Any) -> None:
    summary, shuffled = weighted_summary(weighted), list(weighted)
    random.shuffle(shuffled)
    assert weighted_summary(shuffled) == summary
    if summary.mean is not None:
        used = [value for value, weight in weighted if weight > 0]
        assert min(used) - 1e-12 <= summary.mean <= max(used) + 1e-12
        assert 1 - 1e-9 <= summary.effective_n <= len(used) * (1 + 1e-9)


LABELS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3 * 3600), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30
)


@EXAMPLES
@given(LABELS, st.randoms(use_true_random=False))
def test_feedback_is_the_same_in_any_order_within_an_open_window(labels: Any, random: Any) -> None:
    frame = Frame(
        "chat", "feedback(h)", ("model",), DAY_MS, 4 * HOUR_MS, "sha256:c", None, "sha256:m", VerdictKind.SIGNAL
    )
    score = FeedbackScore(frame, "h", FeedbackPolicy(baseline=0.8, max_labels=8, min_effective_n=0.5))

    def closed(order: Any) -> tuple[Any, bytes]:
        state = FeedbackState()
        for name, at_seconds, value, confidence in order:
            at_ms = EPOCH_MS + at_seconds * 1000
            state = score.add(
                state, Feedback(f"f{name}", "h", value, confidence, at_ms, at_ms, "s", {"model": "m1"}, trace_id="t")
            )
        assert feedback.decode(feedback.encode(state)) == state
        kept = replace(state, n_repeated=0, n_not_kept=0)
        _, (verdict,) = score.close(kept, ("m1",), EPOCH_MS + 4 * HOUR_MS)
        return kept, verdict.to_json()

    shuffled = list(labels)
    random.shuffle(shuffled)
    assert closed(shuffled) == closed(labels)
    assert len(closed(labels)[0].labels) == min(8, len({name for name, *_ in labels}))
