"""Business feedback: the weighted mean of late labels over a sliding window, against a baseline (spec D4).

    weight = confidence * 2^(-delay / half_life)        delay: from the request to its label
    mean   = sum of w x / sum of w
    n_eff  = (sum of w)^2 / sum of w^2                  Kish
    se     = sqrt(n / (n - 1) * sum of w^2 (x - mean)^2) / sum of w

Windows are over *label time*: a label that comes days after its request counts in the windows in which it came, by what
its delay left of it. So no window is reopened, and none waits for labels that may never come.

A pure state machine with two steps: `add` a label, `close` a window. Within one window the order of labels changes
nothing. A label that comes after windows it was in were closed counts in those still open, as `late`.

Bounded: at most `max_labels` labels, about 150 bytes each. Beyond, those with the smallest hash of their id are
kept, a random sample that doesn't depend on the order; the rest is counted. A `feedback_id` counts once while its
label is in the window (or until it is dropped from the sample); of two that differ the one with the later label time
stays, so a person may change their mind.

Sources: Kish, "Survey Sampling", 1965, section 11.7 (effective n); Cochran, "Sampling Techniques", 1977, chapter 6 (a
weighted mean is a ratio of two sums; its linearised standard error).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from schemas.feedback import Feedback
from schemas.ids import record_id
from schemas.status import Status
from schemas.verdicts import Verdict, series_key
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.signals.versioned_state import Body, decode_state, encode_state

TEST, METHOD = "feedback", "weighted_mean"
DUE = "feedback_due"
STATE_VERSION, DUE_VERSION = 2, 1
# From version 2 on a `Due` stands beside the state. The number went up so that code which keeps none refuses the state:
# it would leave one behind that is no longer true.
MIGRATIONS: dict[int, Callable[[Body], Body]] = {1: lambda body: body}


@dataclass(frozen=True, slots=True)
class FeedbackPolicy:
    """When feedback has fallen: its mean below `baseline` by more than `max_drop`.

    `baseline` is what is usual, from 0 to 1: the mean of a good month. No figures are published for spec D4, so all are
    ours: after `half_life_seconds` a label counts half, because the model it speaks of is older by as much.
    """

    baseline: float
    max_drop: float = 0.1
    half_life_seconds: float = 3 * 86_400.0
    min_effective_n: float = 30.0
    max_labels: int = 2000


@dataclass(frozen=True, slots=True)
class KeptLabel:
    """What is kept of one label."""

    feedback_id: str
    label_ms: int
    delay_seconds: float
    value: float
    confidence: float

    @property
    def newness(self) -> tuple[int, float, float]:
        """Of two labels of one id the larger stays."""
        return self.label_ms, self.value, self.confidence

    @property
    def rank(self) -> str:
        """Its place in the order by which labels are kept: a hash, so that what is kept is a random sample."""
        return record_id(self.feedback_id)


@dataclass(frozen=True, slots=True)
class FeedbackState:
    """The labels in open windows, ordered by id; counts are of what came since the last window was closed.

    `closed_end_ms` is the newest window's end that was closed, `closed_empty` whether it had no label.
    """

    labels: tuple[KeptLabel, ...] = ()
    closed_end_ms: int | None = None
    closed_empty: bool = False
    n_repeated: int = 0
    n_late: int = 0
    n_not_kept: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """Kept beside a state, so that the labels, up to 300 kB, are read only when a window of theirs ends.

    `end_ms` is what `next_end_ms` says of the state: the end of the next window to close, None where there is none.
    """

    end_ms: int | None

    def by(self, time_ms: int) -> bool:
        """Whether a window ends by then."""
        return self.end_ms is not None and self.end_ms <= time_ms


@dataclass(frozen=True)
class FeedbackScore:
    """Follows one score of one monitor's series; `frame` is made for `feedback(SCORE)`, of kind SIGNAL."""

    frame: Frame
    score: str
    policy: FeedbackPolicy

    def accepts(self, label: Feedback) -> bool:
        """Whether the label is of this score."""
        return label.score == self.score

    def labels(self, label: Feedback) -> tuple[str, ...]:
        """Return the labels of the series that it counts for, in the order of `group_by`; one that it lacks is empty,
        as a request's is (docs/monitors.md)."""
        return tuple(label.series.get(name, "") for name in self.frame.group_by)

    def key(self, label: Feedback) -> str:
        """Return the series that an accepted label counts for."""
        series = dict(zip(self.frame.group_by, self.labels(label), strict=True))
        return series_key(self.frame.monitor, self.frame.feature, series)

    def add(self, state: FeedbackState, label: Feedback) -> FeedbackState:
        """Return the state with an accepted label in it. O(labels kept)."""
        added = KeptLabel(label.feedback_id, label.label_time_ms, label.delay_seconds, label.value, label.confidence)
        closed_ms = state.closed_end_ms
        if closed_ms is not None and added.label_ms < closed_ms:
            state = replace(state, n_late=state.n_late + 1)
            if added.label_ms < closed_ms + self.frame.slide_ms - self.frame.window_ms:
                return state  # no window still open has it
        same = [kept for kept in state.labels if kept.feedback_id == added.feedback_id]
        labels = [kept for kept in state.labels if kept.feedback_id != added.feedback_id]
        labels.append(max([*same, added], key=lambda kept: kept.newness))
        if len(labels) > self.policy.max_labels:
            labels.remove(max(labels, key=lambda kept: kept.rank))
            state = replace(state, n_not_kept=state.n_not_kept + 1)
        labels.sort(key=lambda kept: kept.feedback_id)
        return replace(state, labels=tuple(labels), n_repeated=state.n_repeated + len(same))

    def next_end_ms(self, state: FeedbackState) -> int | None:
        """Return the end of the next window to close, when the watermark has reached it; None while there is none.

        After the last label has left, one more window is closed, and says `no_data`.
        """
        following_ms = None if state.closed_end_ms is None else state.closed_end_ms + self.frame.slide_ms
        if following_ms is not None and not state.closed_empty:
            return following_ms
        if not state.labels:
            return None
        first_ms = min(kept.label_ms for kept in state.labels)
        first_end_ms = first_ms // self.frame.slide_ms * self.frame.slide_ms + self.frame.slide_ms
        return first_end_ms if following_ms is None else max(first_end_ms, following_ms)

    def close(self, state: FeedbackState, labels: tuple[str, ...], end_ms: int) -> tuple[FeedbackState, list[Verdict]]:
        """Close the window that ends at `end_ms`; `labels` are the series' in the order of `group_by`.

        Says nothing of a window that was closed before. O(labels kept).
        """
        if state.closed_end_ms is not None and end_ms <= state.closed_end_ms:
            return state, []
        start_ms = end_ms - self.frame.window_ms
        inside = [kept for kept in state.labels if start_ms <= kept.label_ms < end_ms]
        said = measured_verdict(self.frame, labels, end_ms, self._measured(inside, state), test=TEST, method=METHOD)
        leaves_at_ms = start_ms + self.frame.slide_ms
        staying = tuple(kept for kept in state.labels if kept.label_ms >= leaves_at_ms)
        return FeedbackState(staying, end_ms, closed_empty=not inside), [said]

    def _measured(self, labels: list[KeptLabel], state: FeedbackState) -> Measured:
        summary = weighted_summary(
            [(kept.value, self._weight(kept)) for kept in labels],
        )
        is_known = summary.mean is not None and summary.effective_n >= self.policy.min_effective_n
        mean = summary.mean if is_known else None
        return Measured(
            statistic=mean,
            threshold=self.policy.baseline - self.policy.max_drop,
            wrong_side="below",
            status=Status.OK if is_known else Status.INSUFFICIENT_DATA if labels else Status.NO_DATA,
            n_window=len(labels),
            effect=None if mean is None else self.policy.baseline - mean,
            evidence={
                "baseline": self.policy.baseline,
                "effective_n": summary.effective_n,
                "standard_error": summary.standard_error,
                "mean_delay_seconds": _mean_delay(labels),
                "n_repeated": state.n_repeated,
                "n_late": state.n_late,
                "n_not_kept": state.n_not_kept,
            },
        )

    def _weight(self, kept: KeptLabel) -> float:
        return float(kept.confidence * 2.0 ** (-kept.delay_seconds / self.policy.half_life_seconds))


@dataclass(frozen=True, slots=True)
class WeightedSummary:
    """Weighted mean, Kish's effective n, and the mean's standard error; None where they can't be told."""

    mean: float | None
    effective_n: float
    standard_error: float | None


def weighted_summary(weighted: list[tuple[float, float]]) -> WeightedSummary:
    """Summarise values with their weights, of at least 0. The same in whatever order they come. O(n).

    With equal weights the standard error is that of a plain mean, s / sqrt(n).

    >>> weighted_summary([(1.0, 0.5), (0.0, 0.5), (1.0, 0.5), (0.0, 0.5)])
    WeightedSummary(mean=0.5, effective_n=4.0, standard_error=0.28867513459481287)
    """
    largest = max((weight for _, weight in weighted), default=0.0)
    if not largest > 0:
        return WeightedSummary(None, 0.0, None)
    scaled = [(value, weight / largest) for value, weight in weighted if weight > 0]
    total = math.fsum(weight for _, weight in scaled)
    mean = math.fsum(value * weight for value, weight in scaled) / total
    effective_n = total**2 / math.fsum(weight**2 for _, weight in scaled)
    if len(scaled) < 2:
        return WeightedSummary(mean, effective_n, None)
    spread = math.fsum((weight * (value - mean)) ** 2 for value, weight in scaled)
    error = math.sqrt(spread * len(scaled) / (len(scaled) - 1)) / total
    return WeightedSummary(mean, effective_n, error)


def _mean_delay(labels: list[KeptLabel]) -> float | None:
    """The mean delay by confidence alone: by weight, late labels would hide how late labels are."""
    total = math.fsum(kept.confidence for kept in labels)
    return math.fsum(kept.confidence * kept.delay_seconds for kept in labels) / total if total else None


def encode(state: FeedbackState) -> bytes:
    """Return the bytes of a state; `decode` gives it back exactly."""
    return encode_state(TEST, STATE_VERSION, state)


def decode(data: bytes) -> FeedbackState:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    body: dict[str, Any] = decode_state(data, TEST, STATE_VERSION, MIGRATIONS)
    labels = tuple(KeptLabel(**label) for label in body.pop("labels"))
    return FeedbackState(labels=labels, **body)


def encode_due(due: Due) -> bytes:
    """Return the bytes of a `Due`.

    >>> decode_due(encode_due(Due(3_600_000)))
    Due(end_ms=3600000)
    """
    return encode_state(DUE, DUE_VERSION, due)


def decode_due(data: bytes) -> Due:
    """Read what this or any earlier version encoded. Raises UnknownStateVersionError."""
    return Due(**decode_state(data, DUE, DUE_VERSION, {}))
