"""Counting alerts against labelled incidents. Pure.

An *alert* is one firing of one series on one figure. It is *true* when it fires in an incident or at most `grace`
windows after its end (a window that still holds the end of it ends later), else it is a *false alarm*. An incident is
*found* by its first true alert, and *missed* without one.

    precision = true alerts / alerts                     recall = incidents found / incidents
    delay     = (first true alert - begin of the incident) / window, in windows
    reduction = 1 - our false alarms / the other's false alarms
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Span:
    """A labelled incident: epoch milliseconds [start, end], and what it was. `stream` keeps separate data apart."""

    stream: str
    kind: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Fired:
    """One firing of an alert: when, and on what."""

    stream: str
    name: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Score:
    """What came of one rule on one set of data. Ratios are None where there is nothing to divide by."""

    n_alerts: int
    n_true: int
    incidents: tuple[Span, ...]
    found: tuple[Span, ...]
    delays_windows: tuple[float, ...]
    false_alarms: tuple[Fired, ...]

    @property
    def missed(self) -> tuple[Span, ...]:
        """The incidents without a true alert."""
        return tuple(span for span in self.incidents if span not in self.found)

    @property
    def precision(self) -> float | None:
        """True alerts among all alerts."""
        return self.n_true / self.n_alerts if self.n_alerts else None

    @property
    def recall(self) -> float | None:
        """Incidents found among all incidents."""
        return len(self.found) / len(self.incidents) if self.incidents else None

    @property
    def median_delay_windows(self) -> float | None:
        """Of the incidents that were found."""
        return median(self.delays_windows) if self.delays_windows else None


def score(incidents: Iterable[Span], fired: Iterable[Fired], *, window_ms: int, grace_windows: float) -> Score:
    """Count alerts against incidents. O(alerts x incidents of a stream).

    >>> incidents = [Span("a", "step", 1000, 3000), Span("a", "drop", 8000, 9000)]
    >>> found = score(incidents, [Fired("a", "x", 2000), Fired("a", "y", 6000)], window_ms=1000, grace_windows=2)
    >>> found.precision, found.recall, found.median_delay_windows, len(found.missed), len(found.false_alarms)
    (0.5, 0.5, 1.0, 1, 1)
    """
    spans = tuple(sorted(set(incidents), key=lambda span: (span.stream, span.start_ms, span.end_ms, span.kind)))
    alerts = sorted(fired, key=lambda alert: (alert.stream, alert.at_ms, alert.name))
    grace_ms = grace_windows * window_ms
    first: dict[Span, int] = {}
    false_alarms = []
    for alert in alerts:
        explained = [
            span
            for span in spans
            if span.stream == alert.stream and span.start_ms <= alert.at_ms <= span.end_ms + grace_ms
        ]
        for span in explained:
            first.setdefault(span, alert.at_ms)
        if not explained:
            false_alarms.append(alert)
    return Score(
        n_alerts=len(alerts),
        n_true=len(alerts) - len(false_alarms),
        incidents=spans,
        found=tuple(span for span in spans if span in first),
        delays_windows=tuple((first[span] - span.start_ms) / window_ms for span in spans if span in first),
        false_alarms=tuple(false_alarms),
    )


def reduction(ours: Score, other: Score) -> float | None:
    """Return how many of the other's false alarms ours does without; None where the other has none.

    >>> alarms = [Fired("a", "x", at) for at in range(20)]
    >>> reduction(*(score([], some, window_ms=1, grace_windows=0) for some in (alarms[:1], alarms)))
    0.95
    """
    loud = len(other.false_alarms)
    return 1 - len(ours.false_alarms) / loud if loud else None


def missed_by_ours_alone(ours: Score, other: Score) -> Sequence[Span]:
    """Return the incidents that the other rule found and ours missed."""
    return [span for span in ours.missed if span in other.found]
