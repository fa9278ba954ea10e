"""Time-sensitive score: an hourly KL series summed with the newest hours first, behind a P90 gate (spec D8).

    score = min(cap, sum over i of kl_i * 0.7^i),   i = 0 for the newest hour, in nats

A slow creep never crosses a static limit on one hour; summed over hours it stands out of its own noise.

An hour that is missing is not an hour without drift. Its place in the sum is kept, and the sum is scaled up by the
weights that are there: score = sum of weights there * their KL, times (sum of all weights) / (sum of weights there).
With less than `min_coverage` of the weights there is no score. The plain sum, where missing hours count 0, is
kept as the verdict's `published_score`.

Two thresholds: the score must be above `alarm_threshold` (chosen for a false-alarm budget, spec D2) *and*, to start an
episode, above the P90 of the last 24 hours' scores (`udfs.signals.p90_gate`). Within an episode the alarm
threshold alone decides: the P90 catches up with any lasting drift within a day, and would end its alarm. The gate
learns from episodes too; if it didn't, it could never rise above the alarm threshold, and would gate nothing. So after
an episode it stays high for a day and then falls by 5 % an hour: until then only a larger drift starts another.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.measured import Measured
from udfs.signals.follow import field_of
from udfs.signals.p90_gate import HOUR_MS, DynamicThreshold, DynamicThresholdPolicy
from udfs.signals.signal_verdict import policy_digest, signal_verdict
from udfs.signals.versioned_state import Body, decode_state, encode_state

TEST, METHOD = "time_sensitive_score", "decayed_sum"
SOURCE_TEST = "kl_divergence"
STATE_VERSION = 1
MIGRATIONS: dict[int, Callable[[Body], Body]] = {}


@dataclass(frozen=True, slots=True)
class TimeSensitivePolicy:
    """`alarm_threshold` is a score, below `cap`; take it from quiet weeks and a false-alarm budget (docs/signals.md).

    `decay` and `cap` are published (spec D8). Ours: `horizon_hours`, beyond which an hour weighs less than 0.0002;
    `min_coverage`, the share of the weights that must have a figure.
    """

    alarm_threshold: float
    decay: float = 0.7
    cap: float = 1.0
    horizon_hours: int = 24
    min_coverage: float = 0.5
    gate: DynamicThresholdPolicy = field(default_factory=DynamicThresholdPolicy)

    def __post_init__(self) -> None:
        if not 0 < self.alarm_threshold < self.cap:
            raise ValueError(f"alarm_threshold must be above 0 and below the cap of {self.cap:g}")


@dataclass(frozen=True, slots=True)
class ScoreState:
    """One series after `last_hour` (whole hours since 1970): its hourly KL, oldest first, as [hour, nats], its gate,
    and whether an episode is going on. All of one reference."""

    reference_digest: str | None
    last_hour: int | None = None
    series: tuple[tuple[int, float], ...] = ()
    gate: DynamicThreshold = field(default_factory=DynamicThreshold)
    in_episode: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """The score of the newest hour; None where it can't be told. `coverage` is the share of weights with a figure."""

    score: float | None
    plain: float
    coverage: float


def time_sensitive_score(series: tuple[tuple[int, float], ...], hour: int, policy: TimeSensitivePolicy) -> Score:
    """Return the score at `hour` of a series of [hour, KL in nats]. O(horizon).

    By hand: 0.1 + 0.7 * 0.2 + 0.49 * 0.3 = 0.387; of horizon 3 all weights are there.

    >>> policy = TimeSensitivePolicy(alarm_threshold=0.2, horizon_hours=3)
    >>> whole = time_sensitive_score(((0, 0.3), (1, 0.2), (2, 0.1)), 2, policy)
    >>> round(whole.score, 6), round(whole.plain, 6), round(whole.coverage, 6)
    (0.387, 0.387, 1.0)
    >>> gap = time_sensitive_score(((0, 0.3), (2, 0.1)), 2, policy)
    >>> round(gap.score, 6), round(gap.plain, 6), round(gap.coverage, 6)
    (0.36304, 0.247, 0.680365)
    """
    weights = {hour - back: policy.decay**back for back in range(policy.horizon_hours)}
    there = [(weights[at], kl) for at, kl in series if at in weights]
    weighted, weight = sum(w * kl for w, kl in there), sum(w for w, _ in there)
    coverage = weight / sum(weights.values())
    plain = min(policy.cap, weighted)
    is_known = coverage >= policy.min_coverage and any(at == hour for at, _ in series)
    return Score(min(policy.cap, weighted / coverage) if is_known else None, plain, coverage)


@dataclass(frozen=True)
class TimeSensitive:
    """Follows the hourly `kl_divergence(field)` of one monitor: windows of one hour that end at whole hours."""

    monitor: str
    field: str
    policy: TimeSensitivePolicy

    @property
    def uid(self) -> str:
        """Names the follower's state."""
        return f"{TEST}({self.monitor},{self.field})"

    def accepts(self, verdict: Verdict) -> bool:
        """Whether it is this monitor's KL of the field over a whole hour."""
        is_hour = verdict.window_end_ms % HOUR_MS == 0 and verdict.window_end_ms - verdict.window_start_ms == HOUR_MS
        is_ours = (verdict.monitor, verdict.test) == (self.monitor, SOURCE_TEST)
        return is_hour and is_ours and field_of(verdict.feature) == self.field

    def key(self, verdict: Verdict) -> str:
        """The series."""
        return verdict.series_key

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Take one hour; say one verdict of it, none where it is not newer than the newest. O(horizon)."""
        before = ScoreState(verdict.reference_digest) if state is None else decode(state)
        if before.reference_digest != verdict.reference_digest:
            before = ScoreState(verdict.reference_digest, before.last_hour)
        hour = verdict.window_end_ms // HOUR_MS
        if state is not None and before.last_hour is not None and hour <= before.last_hour:
            return state, []
        series = self._series(before, hour, verdict)
        found = time_sensitive_score(series, hour, self.policy)
        threshold = self._threshold(before)
        in_episode = before.in_episode if found.score is None else found.score > threshold
        gate = before.gate.after(hour, found.score, self.policy.gate)
        after = ScoreState(before.reference_digest, hour, series, gate, in_episode)
        return encode(after), [self._verdict(verdict, found, threshold, before)]

    def _series(self, before: ScoreState, hour: int, verdict: Verdict) -> tuple[tuple[int, float], ...]:
        is_judged = verdict.status == Status.OK and verdict.statistic is not None
        added = ((hour, float(verdict.statistic or 0.0)),) if is_judged else ()
        return tuple(entry for entry in (*before.series, *added) if entry[0] > hour - self.policy.horizon_hours)

    def _threshold(self, before: ScoreState) -> float:
        """What the score must exceed: the gate takes part where it is known and no episode is going on."""
        if before.in_episode or before.gate.threshold is None:
            return self.policy.alarm_threshold
        return max(self.policy.alarm_threshold, before.gate.threshold)

    def _verdict(self, source: Verdict, found: Score, threshold: float, before: ScoreState) -> Verdict:
        unknown = Status.INSUFFICIENT_DATA if source.status == Status.OK else Status(source.status)
        measured = Measured(
            statistic=found.score,
            threshold=threshold,
            wrong_side="above",
            status=unknown if found.score is None else Status.OK,
            n_window=source.n_window,
            n_reference=source.n_reference,
            n_reference_null=source.n_reference_null,
            n_window_null=source.n_window_null,
            effect=found.score,
            evidence={
                "kl_nats": source.statistic,
                "coverage": found.coverage,
                "alarm_threshold": self.policy.alarm_threshold,
                "gate": before.gate.threshold,
                "p50": before.gate.quantile(0.5),
                "p90": before.gate.quantile(self.policy.gate.quantile),
                "in_episode": before.in_episode,
            },
        )
        return signal_verdict(
            source,
            measured,
            feature=f"{TEST}({self.field})",
            test=TEST,
            method=METHOD,
            config_digest=policy_digest(self.policy, source.config_digest),
            published_score=None if found.score is None else found.plain,
        )


def encode(state: ScoreState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly."""
    return encode_state(TEST, STATE_VERSION, state)


def decode(data: bytes) -> ScoreState:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    body = decode_state(data, TEST, STATE_VERSION, MIGRATIONS)
    gate = body.pop("gate")
    figures = tuple((hour, figure) for hour, figure in gate.pop("figures"))
    series = tuple((hour, kl) for hour, kl in body.pop("series"))
    return ScoreState(series=series, gate=DynamicThreshold(figures=figures, **gate), **body)
