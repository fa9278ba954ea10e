"""The judge of version semantics: verdicts of scores that came with the requests, on any slices in any order."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.judges import END_MS, FRAME
from udfs.judging.version_semantics import VersionSemantics
from udfs.versions.softmax_pairs import scores_of_logits
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit

ALL = VersionSemantics(
    FRAME,
    agreement="attributes.same",
    kl_nats="attributes.kl",
    js_bits="attributes.js",
    consistency=ConsistencyLimit(every=3),
    confidence_shift=ConfidenceShiftLimit(min_samples=3),
    divergence=DivergenceLimit(0.1, min_samples=3),
)
score = st.none() | st.floats() | st.floats(0, 1) | st.booleans() | st.decimals(-2, 2, places=2) | st.integers(-2, 2)
rows = st.lists(st.tuples(score, score, score), max_size=30)


def judged(slices: list[list[tuple[Any, ...]]], judge: VersionSemantics = ALL) -> list[bytes]:
    columns = [list(zip(*one, strict=True)) if one else [(), (), ()] for one in slices]
    sketches = [judge.sketch(*(np.array(column, dtype=object) for column in one)) for one in columns]
    return [verdict.to_json() for verdict in judge.judge([""] * len(FRAME.group_by), END_MS, sketches)]


@settings(max_examples=100)
@given(rows, st.lists(st.integers(0, 30), max_size=3), st.randoms(use_true_random=False))
def test_the_same_verdicts_whatever_the_slices_and_the_order(found, cuts, random) -> None:
    shuffled = random.sample(found, len(found))
    ends = sorted(min(at, len(found)) for at in cuts)
    slices = [shuffled[start:end] for start, end in zip([0, *ends], [*ends, len(found)], strict=True)]
    assert judged(slices) == judged([found])
    assert all(b"NaN" not in verdict and b"Infinity" not in verdict for verdict in judged([found]))


def test_a_window_of_two_versions_outputs_is_judged_by_its_scores() -> None:
    rng = np.random.default_rng(2)
    previous = rng.normal(0, 2, (400, 5))
    scores = scores_of_logits(previous, previous + rng.normal(0, 1.5, (400, 5)))
    sketch = ALL.sketch(scores.same_label.astype(float), scores.kl_nats, scores.js_bits)
    same, shift, divergence = ALL.judge([""] * len(FRAME.group_by), END_MS, [sketch])
    assert same.statistic == np.count_nonzero(scores.same_label) / 400
    assert same.drifted is True
    assert shift.statistic == pytest.approx(scores.kl_nats.mean(), abs=1e-12)
    assert (shift.threshold, shift.drifted) == (0.32, bool(scores.kl_nats.mean() > 0.32))
    assert divergence.statistic == pytest.approx(scores.js_bits.mean(), abs=1e-12)
    assert same.feature == "prediction_consistency_rate(attributes.same)"
    assert divergence.feature == "js_divergence_bits(attributes.js)"


def test_a_mean_at_its_limit_does_not_drift() -> None:
    at_limit = [(True, 0.32, 0.1)] * 850 + [(False, 0.32, 0.1)] * 150
    judge = VersionSemantics(FRAME, agreement="a", kl_nats="k", js_bits="j", divergence=DivergenceLimit(0.1))
    verdicts = judge.judge([""] * len(FRAME.group_by), END_MS, _sketches(judge, at_limit))
    assert [(verdict.statistic, verdict.drifted) for verdict in verdicts] == [
        (0.85, False),
        (0.32, False),
        (0.1, False),
    ]


def _sketches(judge: VersionSemantics, found: list[tuple[Any, ...]]) -> list[bytes]:
    return [judge.sketch(*(np.array(column, dtype=object) for column in zip(*found, strict=True)))]


def test_what_is_impossible_is_counted_and_told() -> None:
    found = [(1.0, 0.1, 0.2)] * 3 + [(7.0, -4.0, math.inf), (None, math.nan, None)]
    for verdict in ALL.judge([""] * len(FRAME.group_by), END_MS, _sketches(ALL, found)):
        assert (verdict.n_window, verdict.n_window_null, verdict.evidence) == (3, 2, {"n_impossible": 1})


def test_too_few_scores_are_no_pass() -> None:
    (verdict,) = VersionSemantics(FRAME, agreement="a").judge(
        [""] * len(FRAME.group_by), END_MS, [VersionSemantics(FRAME, agreement="a").sketch(np.zeros(999))]
    )
    assert (verdict.status, verdict.statistic, verdict.drifted) == ("insufficient_data", None, None)


def test_only_the_named_scores_are_collected() -> None:
    judge = VersionSemantics(FRAME, kl_nats="attributes.kl")
    assert [one.field for one in judge.inputs] == ["attributes.kl"]
    assert pickle.loads(pickle.dumps(judge)) == judge


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="name at least one"):
        VersionSemantics(FRAME)
    with pytest.raises(ValueError, match="needs a divergence limit"):
        VersionSemantics(FRAME, js_bits="attributes.js")
