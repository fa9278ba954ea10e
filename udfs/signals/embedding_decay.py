"""Embedding decay: the mean cosine to the reference centroid over about a week, recent windows first (spec D3).

A pure state machine over the verdicts `mean_cosine(FIELD)` of one series. A request of age a weighs exp(-a / tau), so
the mean is

    sum of n_i m_i exp(-(t - t_i) / tau)  /  sum of n_i exp(-(t - t_i) / tau)

over windows i with n_i embeddings of mean cosine m_i, at event time t. Both sums decay by the time between windows,
whatever that is, so gaps are right and two steps decay as one. A window that was not judged has no mean: it adds
nothing, and the sums only age. Windows overlap, so an embedding is in window / slide of them: it is counted by
slide / window in each.

What is reported as `effective_n` is Kish's: (sum of weights)^2 / sum of squared weights.

Sources: spec D3 (tau of 7 days); Kish, "Survey Sampling", 1965, section 11.7 (effective sample size).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.embedding import TEST as MEAN_COSINE
from udfs.judging.measured import Measured
from udfs.signals.follow import field_of
from udfs.signals.signal_verdict import policy_digest, signal_verdict
from udfs.signals.versioned_state import Body, decode_state, encode_state

TEST, METHOD = "embedding_decay", "exponentially_weighted"
STATE_VERSION = 1
MIGRATIONS: dict[int, Callable[[Body], Body]] = {}


@dataclass(frozen=True, slots=True)
class DecayPolicy:
    """When a week's embeddings have decayed.

    The mean may lie `max_drop` below the reference's own mean cosine. `tau_seconds` is 7 days by spec D3; `max_drop` is
    ours, smaller than a window's because a week's mean is much steadier.
    """

    tau_seconds: float = 7 * 86_400.0
    max_drop: float = 0.03
    min_effective_n: float = 1000.0


@dataclass(frozen=True, slots=True)
class DecayState:
    """The decayed sums of one series at `last_window_end_ms`, of the windows since `first_window_start_ms`.

    `weight` sums weights, `weight_squared` their squares, `weighted` weights times cosines; `windows` is the decayed
    count of judged windows. They are of one reference: a new one starts anew.
    """

    reference_digest: str | None
    first_window_start_ms: int
    last_window_end_ms: int
    weight: float = 0.0
    weight_squared: float = 0.0
    weighted: float = 0.0
    windows: float = 0.0


@dataclass(frozen=True)
class EmbeddingDecay:
    """Follows `mean_cosine(field)` of one monitor."""

    monitor: str
    field: str
    policy: DecayPolicy

    @property
    def uid(self) -> str:
        """Names the follower's state."""
        return f"{TEST}({self.monitor},{self.field})"

    def accepts(self, verdict: Verdict) -> bool:
        """Whether it is this monitor's mean cosine of the field."""
        return (verdict.monitor, verdict.test) == (self.monitor, MEAN_COSINE) and field_of(
            verdict.feature
        ) == self.field

    def key(self, verdict: Verdict) -> str:
        """The series."""
        return verdict.series_key

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Take one window; say one verdict of it, none where it is not newer than the newest. O(1) time and state."""
        before = None if state is None else decode(state)
        if state is not None and before is not None and verdict.window_end_ms <= before.last_window_end_ms:
            return state, []
        after = self._after(before, verdict)
        return encode(after), [self._verdict(after, verdict)]

    def _after(self, before: DecayState | None, verdict: Verdict) -> DecayState:
        if before is None or before.reference_digest != verdict.reference_digest:
            before = DecayState(verdict.reference_digest, verdict.window_start_ms, verdict.window_end_ms)
        age_seconds = (verdict.window_end_ms - before.last_window_end_ms) / 1000
        kept = math.exp(-age_seconds / self.policy.tau_seconds)
        is_judged = verdict.status == Status.OK and verdict.statistic is not None
        n = verdict.n_window * _share_of_window(verdict) if is_judged else 0.0
        return replace(
            before,
            last_window_end_ms=verdict.window_end_ms,
            weight=before.weight * kept + n,
            weight_squared=before.weight_squared * kept**2 + n,
            weighted=before.weighted * kept + n * (verdict.statistic or 0.0),
            windows=before.windows * kept + is_judged,
        )

    def _verdict(self, state: DecayState, source: Verdict) -> Verdict:
        # A vanishing weight has lost its digits; its mean is no longer one.
        effective_n = state.weight**2 / state.weight_squared if state.weight_squared > 1e-300 else 0.0
        reference_mean = float(source.evidence["reference_mean_cosine"])
        is_judged = source.status == Status.OK and effective_n >= self.policy.min_effective_n
        mean = state.weighted / state.weight if is_judged else None
        measured = Measured(
            statistic=mean,
            threshold=reference_mean - self.policy.max_drop,
            wrong_side="below",
            status=Status.OK if is_judged else _unjudged(source),
            n_window=source.n_window,
            n_reference=source.n_reference,
            n_reference_null=source.n_reference_null,
            n_window_null=source.n_window_null,
            effect=None if mean is None else reference_mean - mean,
            evidence={
                "effective_n": effective_n,
                "tau_seconds": self.policy.tau_seconds,
                "reference_mean_cosine": reference_mean,
                "window_mean_cosine": source.statistic,
                "updates_per_day": self._updates_per_day(state),
            },
        )
        digest = policy_digest(self.policy, source.config_digest)
        return signal_verdict(
            source, measured, feature=f"{TEST}({self.field})", test=TEST, method=METHOD, config_digest=digest
        )

    def _updates_per_day(self, state: DecayState) -> float:
        """Judged windows a day, recent days first: their decayed count over the decayed time watched."""
        tau = self.policy.tau_seconds
        watched_seconds = (state.last_window_end_ms - state.first_window_start_ms) / 1000
        return state.windows * 86_400 / (tau * -math.expm1(-watched_seconds / tau))


def _share_of_window(verdict: Verdict) -> float:
    """What share of a window is new, the rest being of windows before; all of it by count, where the slide is 0."""
    if not verdict.slide_seconds:
        return 1.0
    return min(1.0, verdict.slide_seconds * 1000 / (verdict.window_end_ms - verdict.window_start_ms))


def _unjudged(source: Verdict) -> Status:
    return Status.INSUFFICIENT_DATA if source.status == Status.OK else Status(source.status)


def encode(state: DecayState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly."""
    return encode_state(TEST, STATE_VERSION, state)


def decode(data: bytes) -> DecayState:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    return DecayState(**decode_state(data, TEST, STATE_VERSION, MIGRATIONS))
