"""The states of signals and the sketch of embeddings, as every version wrote them: they must stay readable."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.feedback import Feedback
from schemas.verdicts import VerdictKind
from tests.signal_verdicts import DAY_MS, EPOCH_MS, HOUR_MS, window
from udfs.judging.embedding import EmbeddingJudge, EmbeddingPolicy
from udfs.judging.frame import Frame
from udfs.references.embedding_reference import build_embedding_reference
from udfs.signals import baseline, embedding_decay, feedback, joint_confidence, time_sensitive, versioned_state
from udfs.signals.baseline import BaselineDrop, BaselinePolicy
from udfs.signals.embedding_decay import DecayPolicy, EmbeddingDecay
from udfs.signals.feedback import FeedbackPolicy, FeedbackScore, FeedbackState
from udfs.signals.follow import Follower
from udfs.signals.joint_confidence import JointConfidence, JointPolicy
from udfs.signals.time_sensitive import TimeSensitive, TimeSensitivePolicy

GOLDEN = Path(__file__).parents[1] / "golden" / "signals"
FIGURES = [0.875, 0.5, None, 0.75]


def _followed(follower: Follower, test: str, feature: str, evidence: dict[str, Any] | None = None) -> bytes:
    state = None
    for hour, figure in enumerate(FIGURES):
        verdict = window(test, feature, hour * HOUR_MS, figure, window_ms=HOUR_MS, evidence=evidence or {})
        state, _ = follower.step(state, verdict)
    assert state is not None
    return state


def _decay() -> bytes:
    follower = EmbeddingDecay("chat", "e", DecayPolicy())
    return _followed(follower, "mean_cosine", "mean_cosine(e)", {"reference_mean_cosine": 0.9})


def _score() -> bytes:
    follower = TimeSensitive("chat", "r", TimeSensitivePolicy(alarm_threshold=0.3))
    return _followed(follower, "kl_divergence", "kl_divergence(r)")


def _baseline() -> bytes:
    return _followed(BaselineDrop("chat", "p50(q)", BaselinePolicy(learn_windows=4)), "quantile", "p50(q)")


def _joint() -> bytes:
    return _followed(JointConfidence("chat", JointPolicy(("tokens",), "e")), "ks_two_sample", "tokens")


def _feedback() -> bytes:
    frame = Frame("chat", "feedback(h)", ("model",), DAY_MS, HOUR_MS, "sha256:c", None, "sha256:m", VerdictKind.SIGNAL)
    score, state = FeedbackScore(frame, "h", FeedbackPolicy(baseline=0.8)), FeedbackState()
    for name, value in (("b", 1.0), ("a", 0.25), ("b", 0.5)):
        at_ms = EPOCH_MS + len(state.labels) * 1000
        state = score.add(state, Feedback(name, "h", value, 0.5, at_ms, EPOCH_MS, "s", {"model": "m1"}, trace_id="t"))
    return feedback.encode(state)


STATES: dict[str, tuple[Callable[[], bytes], Any]] = {
    "embedding_decay": (_decay, embedding_decay),
    "time_sensitive_score": (_score, time_sensitive),
    "baseline_drop": (_baseline, baseline),
    "joint_confidence": (_joint, joint_confidence),
    "feedback": (_feedback, feedback),
}
VERSIONS = {"feedback": 2}
"""Those that this code writes, where it isn't the first."""
EVERY = pytest.mark.parametrize("name", STATES)


@EVERY
def test_the_version_is_still_written_as_committed_and_read(name: str) -> None:
    made, module = STATES[name]
    committed = (GOLDEN / f"{name}_v{VERSIONS.get(name, 1)}.json").read_bytes()
    assert made() == committed
    assert module.encode(module.decode(committed)) == committed


@pytest.mark.parametrize("name", VERSIONS)
def test_earlier_versions_are_read_as_the_same_state(name: str) -> None:
    made, module = STATES[name]
    for version in range(1, VERSIONS[name]):
        assert module.decode((GOLDEN / f"{name}_v{version}.json").read_bytes()) == module.decode(made())


def test_when_labels_are_due_is_written_as_committed_and_read() -> None:
    committed = b'{"state":"feedback_due","version":1,"body":{"end_ms":3600000}}'
    assert feedback.encode_due(feedback.Due(3_600_000)) == committed
    assert feedback.decode_due(committed) == feedback.Due(3_600_000)
    with pytest.raises(versioned_state.UnknownStateVersionError, match="version 2"):
        feedback.decode_due(committed.replace(b'"version":1', b'"version":2'))


@EVERY
def test_a_state_of_something_else_is_refused(name: str) -> None:
    other = "feedback" if name != "feedback" else "embedding_decay"
    with pytest.raises(versioned_state.UnknownStateVersionError, match=other):
        STATES[name][1].decode((GOLDEN / f"{other}_v1.json").read_bytes())


def test_a_step_in_the_migrations_turns_one_version_into_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a state is changed: raise its version and add the step from the one before."""
    monkeypatch.setattr(baseline, "STATE_VERSION", 2)
    monkeypatch.setitem(baseline.MIGRATIONS, 1, lambda body: body | {"baseline": 0.5})
    read = baseline.decode((GOLDEN / "baseline_drop_v1.json").read_bytes())
    assert read.baseline == 0.5
    assert baseline.decode(baseline.encode(read)) == read


def _embeddings() -> EmbeddingJudge:
    reference = build_embedding_reference([[1.0, 0.0]] * 3 + [[0.0, 1.0]], name="golden", source="a test")
    frame = Frame("chat", "mean_cosine(e)", (), HOUR_MS, HOUR_MS, "sha256:c", "sha256:r", "sha256:m")
    return EmbeddingJudge(frame, "e", reference, EmbeddingPolicy(min_samples=1))


def test_the_embedding_sketch_of_version_1_is_written_and_read() -> None:
    judge = _embeddings()
    committed = bytes.fromhex((GOLDEN / "embedding_sketch_v1.hex").read_text())
    assert judge.sketch([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0], None]) == committed
    mean, distribution = judge.judge([], HOUR_MS, [committed])
    assert (mean.n_window, mean.n_window_null, distribution.n_window) == (2, 1, 2)
