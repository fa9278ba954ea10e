"""Joint confidence: a soft vote of distribution drift (D1), embedding decay (D3) and feedback (D4) (spec D5).

    confidence = sum of w_i level_i,    w_i = base_i f_i / sum of base_j f_j over the signals that are there

with base weights 0.40, 0.35, 0.25, levels from `udfs.signals.signal_level`, and the adaptation f of each signal:

    distribution   k / (k + false alarms per window)
    embedding      2 u / (u + u0)            u: judged windows of embeddings a day; 1 at u0, below 2
    feedback       h / (h + mean delay)      h: the delay that halves it

A signal that is missing or was not judged has no weight, and the others share its part. Confidence 0.5 says that the
signals stand at their own limits on the whole; all of it is in the verdict's evidence.

A pure state machine over the verdicts of one (monitor, series). The verdicts of a window may come in any order. It is
closed when all are there, or when a verdict of a later window comes. Feedback is judged more seldom than windows slide:
its newest verdict counts until it is `feedback_valid_seconds` old.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict, series_key
from udfs.judging.measured import Measured
from udfs.signals.embedding_decay import TEST as DECAY
from udfs.signals.feedback import TEST as FEEDBACK
from udfs.signals.signal_level import level, limit_ratio
from udfs.signals.signal_verdict import policy_digest, signal_verdict
from udfs.signals.versioned_state import Body, decode_state, encode_state

TEST, METHOD = "joint_confidence", "soft_vote"
STATE_VERSION = 1
MIGRATIONS: dict[int, Callable[[Body], Body]] = {}

DISTRIBUTION, EMBEDDING, FEEDBACK_SIGNAL = "distribution", "embedding", "feedback"
SIGNALS = (DISTRIBUTION, EMBEDDING, FEEDBACK_SIGNAL)


@dataclass(frozen=True, slots=True)
class JointPolicy:
    """Which verdicts vote, with what weight, and when it is drift.

    `distribution_features` are the features whose KS verdicts make the first signal (the highest level of them counts),
    `embedding_field` and `feedback_score` name the others; None where there is none. Base weights are published (spec
    D5). The rest is ours: `threshold` and `full_at` make 0.5 the limit (`signal_level`); `false_alarms_per_window` is
    what the first signal's verdicts have together where they don't say it themselves, by default one test at alpha
    0.01, and `false_alarm_k` the rate at which it counts half; `labelled_false_alarms_per_window` is what people called
    false (view `false_alarm_ledger`), and goes before both; `embedding_updates_per_day` is u0, hourly windows;
    `feedback_delay_seconds` is h, a day.
    """

    distribution_features: tuple[str, ...]
    embedding_field: str | None = None
    feedback_score: str | None = None
    distribution_weight: float = 0.40
    embedding_weight: float = 0.35
    feedback_weight: float = 0.25
    threshold: float = 0.5
    full_at: float = 2.0
    false_alarms_per_window: float = 0.01
    false_alarm_k: float = 0.1
    embedding_updates_per_day: float = 24.0
    feedback_delay_seconds: float = 86_400.0
    feedback_valid_seconds: float = 3600.0
    labelled_false_alarms_per_window: float | None = None

    def __post_init__(self) -> None:
        if not self.features:
            raise ValueError("at least one signal must be named")
        if min(self.distribution_weight, self.embedding_weight, self.feedback_weight) <= 0:
            raise ValueError("base weights must be above 0")
        if (self.labelled_false_alarms_per_window or 0.0) < 0:
            raise ValueError("labelled_false_alarms_per_window must be 0 or more")
        if min(self.full_at, self.false_alarm_k, self.embedding_updates_per_day, self.feedback_delay_seconds) <= 0:
            raise ValueError(
                "full_at, false_alarm_k, embedding_updates_per_day and feedback_delay_seconds must be above 0"
            )

    @property
    def features(self) -> dict[str, str]:
        """The features that vote, each with its signal."""
        found = dict.fromkeys(self.distribution_features, DISTRIBUTION)
        if self.embedding_field is not None:
            found[f"{DECAY}({self.embedding_field})"] = EMBEDDING
        if self.feedback_score is not None:
            found[f"{FEEDBACK}({self.feedback_score})"] = FEEDBACK_SIGNAL
        return found

    @property
    def base_weights(self) -> dict[str, float]:
        """Each signal's base weight."""
        return {
            DISTRIBUTION: self.distribution_weight,
            EMBEDDING: self.embedding_weight,
            FEEDBACK_SIGNAL: self.feedback_weight,
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """What is kept of one feature's newest verdict. `ratio` is None where it was not judged; `adapts_by` is the false
    alarms per window, updates a day or mean delay in seconds that its evidence has."""

    feature: str
    window_end_ms: int
    verdict_id: str
    ratio: float | None
    status: str
    adapts_by: float | None
    window_start_ms: int
    slide_seconds: float
    n_window: int
    model_card_digest: str


@dataclass(frozen=True, slots=True)
class JointState:
    """The newest reading of each feature, ordered by feature. `open_end_ms` is the window that is being collected,
    `said_end_ms` the newest that was said."""

    readings: tuple[Reading, ...] = ()
    open_end_ms: int | None = None
    said_end_ms: int | None = None


@dataclass(frozen=True)
class JointConfidence:
    """Follows the voting verdicts of one monitor, all series apart."""

    monitor: str
    policy: JointPolicy

    @property
    def uid(self) -> str:
        """Names the follower's state."""
        return f"{TEST}({self.monitor})"

    def accepts(self, verdict: Verdict) -> bool:
        """Whether it is a verdict of this monitor that votes."""
        return verdict.monitor == self.monitor and verdict.feature in self.policy.features

    def key(self, verdict: Verdict) -> str:
        """Return the (monitor, series): verdicts of different features share a state."""
        return series_key(verdict.monitor, TEST, verdict.series)

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Take one verdict; say a window that it closes. O(features)."""
        now = JointState() if state is None else decode(state)
        if state is not None and now.said_end_ms is not None and verdict.window_end_ms <= now.said_end_ms:
            return state, []
        if now.open_end_ms is not None and verdict.window_end_ms < now.open_end_ms:
            return encode(now), []
        said: list[Verdict] = []
        if now.open_end_ms is not None and verdict.window_end_ms > now.open_end_ms:
            now, said = self._closed(now, verdict)
        now = _with(now, self._reading(verdict))
        if all(reading.window_end_ms == now.open_end_ms for reading in now.readings) and self._is_whole(now):
            now, last = self._closed(now, verdict)
            said = [*said, *last]
        return encode(now), said

    def _is_whole(self, state: JointState) -> bool:
        return {reading.feature for reading in state.readings} == set(self.policy.features)

    def _closed(self, state: JointState, any_verdict: Verdict) -> tuple[JointState, list[Verdict]]:
        """Say the window that was collected; `any_verdict` tells monitor and series."""
        said = self._verdict(state, any_verdict)
        return replace(state, open_end_ms=None, said_end_ms=state.open_end_ms), [said]

    def _reading(self, verdict: Verdict) -> Reading:
        signal = self.policy.features[verdict.feature]
        found = verdict.evidence.get(_ADAPTS_BY[signal])
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        return Reading(
            feature=verdict.feature,
            window_end_ms=verdict.window_end_ms,
            verdict_id=verdict.verdict_id,
            ratio=limit_ratio(verdict, usual=_USUAL[signal]),
            status=verdict.status,
            adapts_by=float(found) if found is not None and is_number else None,
            window_start_ms=verdict.window_start_ms,
            slide_seconds=verdict.slide_seconds,
            n_window=verdict.n_window,
            model_card_digest=verdict.model_card_digest,
        )

    def _verdict(self, state: JointState, any_verdict: Verdict) -> Verdict:
        end_ms = state.open_end_ms or 0
        of_window = [reading for reading in state.readings if reading.window_end_ms == end_ms]
        votes = {signal: self._vote(signal, state.readings, end_ms) for signal in SIGNALS}
        total = sum(vote["base_weight"] * vote["factor"] for vote in votes.values() if vote["level"] is not None)
        is_known = total > 0
        for vote in votes.values():
            votes_here = is_known and vote["level"] is not None
            vote["weight"] = vote["base_weight"] * vote["factor"] / total if votes_here else 0.0
        confidence = min(1.0, sum(vote["weight"] * (vote["level"] or 0.0) for vote in votes.values()))
        measured = Measured(
            statistic=confidence if is_known else None,
            threshold=self.policy.threshold,
            wrong_side="above",
            status=Status.OK if is_known else Status.INSUFFICIENT_DATA,
            n_window=max(reading.n_window for reading in of_window),
            effect=confidence if is_known else None,
            evidence={"signals": votes},
        )
        source = replace(
            any_verdict,
            window_end_ms=end_ms,
            slide_seconds=min(reading.slide_seconds for reading in of_window),
            reference_digest=None,
            model_card_digest=of_window[0].model_card_digest,
        )
        return signal_verdict(
            source,
            measured,
            feature=TEST,
            test=TEST,
            method=METHOD,
            config_digest=policy_digest(self.policy),
            window_start_ms=min(reading.window_start_ms for reading in of_window),
        )

    def _vote(self, signal: str, readings: tuple[Reading, ...], end_ms: int) -> dict[str, Any]:
        """One signal's part of the evidence: its strongest reading that counts at `end_ms`, and how it is weighed."""
        valid_ms = self.policy.feedback_valid_seconds * 1000 if signal == FEEDBACK_SIGNAL else 0
        counted = [
            reading
            for reading in readings
            if self.policy.features[reading.feature] == signal and 0 <= end_ms - reading.window_end_ms <= valid_ms
        ]
        judged = [(reading.ratio, reading) for reading in counted if reading.ratio is not None]
        ratio, strongest = max(judged, key=lambda pair: (pair[0], pair[1].feature), default=(None, None))
        factor, adapts_by = self._factor(signal, [reading for _, reading in judged])
        return {
            "level": None if ratio is None else level(ratio, full_at=self.policy.full_at),
            "limit_ratio": ratio,
            "feature": None if strongest is None else strongest.feature,
            "verdict_id": None if strongest is None else strongest.verdict_id,
            "age_seconds": None if strongest is None else (end_ms - strongest.window_end_ms) / 1000,
            "statuses": sorted({reading.status for reading in counted}),
            "base_weight": self.policy.base_weights[signal],
            "factor": factor,
            _ADAPTS_BY[signal]: adapts_by,
        }

    def _factor(self, signal: str, judged: list[Reading]) -> tuple[float, float | None]:
        """How a signal's weight is adapted, and by what; 1 where it doesn't say."""
        policy, said = self.policy, [reading.adapts_by for reading in judged if reading.adapts_by is not None]
        if signal == DISTRIBUTION:
            promised = max(0.0, sum(said)) if said else policy.false_alarms_per_window
            labelled = policy.labelled_false_alarms_per_window
            rate = promised if labelled is None else labelled
            return policy.false_alarm_k / (policy.false_alarm_k + rate), rate
        if not said:
            return 1.0, None
        found = max(0.0, said[0])
        if signal == EMBEDDING:
            return 2 * found / (found + policy.embedding_updates_per_day), found
        return policy.feedback_delay_seconds / (policy.feedback_delay_seconds + found), found


_ADAPTS_BY = {
    DISTRIBUTION: "false_alarms_per_window",
    EMBEDDING: "updates_per_day",
    FEEDBACK_SIGNAL: "mean_delay_seconds",
}
"""The evidence of a signal's verdicts that its weight is adapted by."""

_USUAL = {DISTRIBUTION: None, EMBEDDING: "reference_mean_cosine", FEEDBACK_SIGNAL: "baseline"}
"""The evidence of what a signal's statistic used to be; None where it is no fall that is judged."""


def _with(state: JointState, reading: Reading) -> JointState:
    """The state with a reading of the open window; of two of one feature and window the smaller id stays."""
    others = [known for known in state.readings if known.feature != reading.feature]
    same = [
        known
        for known in state.readings
        if (known.feature, known.window_end_ms) == (reading.feature, reading.window_end_ms)
    ]
    kept = min([*same, reading], key=lambda known: known.verdict_id)
    readings = tuple(sorted([*others, kept], key=lambda known: known.feature))
    return replace(state, readings=readings, open_end_ms=reading.window_end_ms)


def encode(state: JointState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly."""
    return encode_state(TEST, STATE_VERSION, state)


def decode(data: bytes) -> JointState:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    body = decode_state(data, TEST, STATE_VERSION, MIGRATIONS)
    return JointState(readings=tuple(Reading(**reading) for reading in body.pop("readings")), **body)
