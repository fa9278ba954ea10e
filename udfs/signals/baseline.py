"""Quality baseline: a series against its own P50, learnt once and never taught by a breach (spec D9).

Of one prompt template the factuality P50 of a sliding window is followed. The baseline is the median of the first
`learn_windows` windows that don't overlap, or given (`reference`). The drop is 1 - P50 / baseline.

Then the baseline stays, or, with `adapt_tau_seconds`, moves towards windows that are no breach:
baseline += (P50 - baseline) * (1 - exp(-age / tau)). While a breach lasts it is frozen, so a step is never absorbed;
a slow decline *is*, by what `tau` lets through, which is why it is off by default.

A pure state machine. A window that was not judged teaches nothing and is no pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.measured import Measured
from udfs.signals.follow import field_of
from udfs.signals.signal_verdict import policy_digest, signal_verdict
from udfs.signals.versioned_state import Body, decode_state, encode_state

TEST, METHOD = "baseline_drop", "own_median"
STATE_VERSION = 1
MIGRATIONS: dict[int, Callable[[Body], Body]] = {}


@dataclass(frozen=True, slots=True)
class BaselinePolicy:
    """A drop of more than `max_drop` is a breach: 15 % by spec D9.

    Ours: `learn_windows`, an odd number so that less than half of them being bad leaves the median good; `reference`, a
    P50 to start from instead, as the template's on the day it was approved; `adapt_tau_seconds`, None for never.
    """

    max_drop: float = 0.15
    learn_windows: int = 9
    reference: float | None = None
    adapt_tau_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.learn_windows < 1 or not 0 < self.max_drop < 1:
            raise ValueError("learn_windows must be at least 1, and max_drop between 0 and 1")
        if self.reference is not None and not 0 < self.reference < math.inf:
            raise ValueError("reference must be a P50 above 0: a drop is relative to it")
        if self.adapt_tau_seconds is not None and not self.adapt_tau_seconds > 0:
            raise ValueError("adapt_tau_seconds must be above 0, or None")


@dataclass(frozen=True, slots=True)
class BaselineState:
    """`learnt` are the P50s while the baseline is not known, `last_learnt_end_ms` the end of the newest of them."""

    last_window_end_ms: int
    baseline: float | None = None
    learnt: tuple[float, ...] = ()
    last_learnt_end_ms: int | None = None


@dataclass(frozen=True)
class BaselineDrop:
    """Follows `feature` (as in `p50(factuality)`) of one monitor, a series for each template that it groups by."""

    monitor: str
    feature: str
    policy: BaselinePolicy

    @property
    def uid(self) -> str:
        """Names the follower's state."""
        return f"{TEST}({self.monitor},{self.feature})"

    def accepts(self, verdict: Verdict) -> bool:
        """Whether it is this monitor's verdict on the feature."""
        return (verdict.monitor, verdict.feature) == (self.monitor, self.feature)

    def key(self, verdict: Verdict) -> str:
        """The series."""
        return verdict.series_key

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Take one window; say one verdict of it, none where it is not newer than the newest. O(windows learnt)."""
        if state is None:
            before = BaselineState(verdict.window_start_ms, self.policy.reference)
        else:
            before = decode(state)
            if verdict.window_end_ms <= before.last_window_end_ms:
                return state, []
        p50 = verdict.statistic if verdict.status == Status.OK else None
        is_comparable = before.baseline is not None and before.baseline > 0
        drop = 1 - p50 / before.baseline if is_comparable and p50 is not None and before.baseline else None
        after = self._after(before, verdict, p50, drop)
        return encode(after), [self._verdict(before, verdict, drop)]

    def _after(self, before: BaselineState, verdict: Verdict, p50: float | None, drop: float | None) -> BaselineState:
        """The state after the window: learnt from it, or moved towards it, or frozen by it."""
        after = replace(before, last_window_end_ms=verdict.window_end_ms)
        if p50 is None:
            return after
        if before.baseline is None:
            return self._learnt(after, verdict, p50)
        is_breached = drop is None or drop > self.policy.max_drop
        if is_breached or self.policy.adapt_tau_seconds is None:
            return after
        age_seconds = (verdict.window_end_ms - before.last_window_end_ms) / 1000
        share = -math.expm1(-age_seconds / self.policy.adapt_tau_seconds)
        return replace(after, baseline=before.baseline + (p50 - before.baseline) * share)

    def _learnt(self, after: BaselineState, verdict: Verdict, p50: float) -> BaselineState:
        if after.last_learnt_end_ms is not None and verdict.window_start_ms < after.last_learnt_end_ms:
            return after
        learnt = (*after.learnt, p50)
        if len(learnt) < self.policy.learn_windows:
            return replace(after, learnt=learnt, last_learnt_end_ms=verdict.window_end_ms)
        return replace(after, learnt=(), last_learnt_end_ms=None, baseline=median(learnt))

    def _verdict(self, before: BaselineState, source: Verdict, drop: float | None) -> Verdict:
        measured = Measured(
            statistic=drop,
            threshold=self.policy.max_drop,
            wrong_side="above",
            status=Status.OK if drop is not None else _unjudged(before, source),
            n_window=source.n_window,
            n_window_null=source.n_window_null,
            effect=drop,
            evidence={
                "baseline": before.baseline,
                "window_statistic": source.statistic,
                "windows_learnt": len(before.learnt),
                "windows_to_learn": self.policy.learn_windows if before.baseline is None else 0,
            },
        )
        return signal_verdict(
            source,
            measured,
            feature=f"{TEST}({field_of(self.feature)})",
            test=TEST,
            method=METHOD,
            config_digest=policy_digest(self.policy, source.config_digest),
        )


def _unjudged(before: BaselineState, source: Verdict) -> Status:
    """A baseline of 0 or less has no relative drop; otherwise it isn't learnt yet, or the window says why."""
    if source.status != Status.OK:
        return Status(source.status)
    return Status.INSUFFICIENT_DATA if before.baseline is None else Status.INVALID


def encode(state: BaselineState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly."""
    return encode_state(TEST, STATE_VERSION, state)


def decode(data: bytes) -> BaselineState:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    body = decode_state(data, TEST, STATE_VERSION, MIGRATIONS)
    return BaselineState(learnt=tuple(body.pop("learnt")), **body)
