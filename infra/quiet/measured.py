"""One measurement: both rules over the same labelled data, and the goals it is held to."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.quiet.incidents import KINDS
from infra.quiet.judged import alerts_of_ours, alerts_of_static, monitors_of, scored, static_of, verdicts_of
from infra.quiet.nab import alerts_of_series, read_nab
from infra.quiet.replayed import StreamPlan
from infra.quiet.score import Fired, Score, Span, missed_by_ours_alone, reduction, score

Say = Callable[[str], None]
# Other seeds: other incidents, other requests. The scoring part was drawn when nothing was left to choose.
PARTS = {
    "tuning": (201, 202, 203, 204, 205, 1, 2, 3, 101, 102, 103, 104, 105),
    "scoring": (301, 302, 303, 304, 305),
}
QUIET_SEED = 1  # of the quiet days that the reference and the static thresholds are made of
GRACE_WINDOWS = 2.0
OURS, STATIC, STATIC_TWICE = "ours", "static", "static, 2 windows in a row"


@dataclass(frozen=True)
class Goals:
    """What the replay must reach; issue and spec A7."""

    least_reduction: float = 0.95
    least_precision: float = 0.90
    most_delay_windows: float = 2.0


@dataclass(frozen=True)
class Measured:
    """The scores of the rules on one set of data; the first is ours, the second the static rule."""

    title: str
    scores: dict[str, Score]
    notes: tuple[str, ...]

    @property
    def reduction(self) -> float | None:
        """Of our false alarms against the static rule's."""
        return reduction(self.scores[OURS], self.scores[STATIC])

    @property
    def missed_by_ours_alone(self) -> Sequence[Span]:
        """Incidents that the static rule found and ours missed."""
        return missed_by_ours_alone(self.scores[OURS], self.scores[STATIC])

    def of_kind(self, kind: str) -> "Measured":
        """The same for the incidents of one kind; alerts in others count for nothing there."""
        return replace(self, scores={name: _of_kind(found, kind) for name, found in self.scores.items()})

    def goals(self, goals: Goals) -> list[tuple[str, bool]]:
        """Each goal in words with what was reached, and whether it holds. What can't be told is not reached."""
        ours, cut, delay = self.scores[OURS], self.reduction, self.scores[OURS].median_delay_windows
        alone, precision = len(self.missed_by_ours_alone), ours.precision
        return [
            (
                f"false alarms fewer by {share(cut)}, goal {goals.least_reduction:.0%}",
                at_least(cut, goals.least_reduction),
            ),
            (f"{alone} incidents missed that the static rule finds, goal 0", not alone),
            (
                f"precision {share(precision)}, goal {goals.least_precision:.0%}",
                at_least(precision, goals.least_precision),
            ),
            (
                f"median delay {'-' if delay is None else f'{delay:.2f}'} windows, goal {goals.most_delay_windows:g}",
                delay is not None and delay <= goals.most_delay_windows,
            ),
        ]


def share(value: float | None) -> str:
    """A share in percent; `-` where there is none.

    >>> share(0.961), share(None)
    ('96.1 %', '-')
    """
    return "-" if value is None else f"{100 * value:.1f} %"


def at_least(value: float | None, bound: float) -> bool:
    """Whether a figure is there and reaches its bound."""
    return value is not None and value >= bound


def measure_replay(part: str, streams: int | None = None, say: Say = lambda _: None) -> Measured:
    """Measure the replay's `part`, with its first `streams` streams or all. About 20 seconds a stream."""
    tuning = StreamPlan("tuning", QUIET_SEED, incident_days=0)
    say("tuning: the quiet days, for the reference and the static thresholds")
    monitors = monitors_of(tuning)
    rules = static_of(verdicts_of(tuning, monitors), monitors)
    plans = [StreamPlan(f"{part}-{seed}", seed) for seed in PARTS[part][:streams]]
    fired: dict[str, list[Fired]] = {OURS: [], STATIC: [], STATIC_TWICE: []}
    for plan in plans:
        say(f"{plan.name}: {plan.days} days, {len(plan.spans)} incidents")
        verdicts = scored(plan, verdicts_of(plan, monitors))
        fired[OURS] += alerts_of_ours(plan.name, verdicts, monitors)
        fired[STATIC] += alerts_of_static(plan.name, verdicts, monitors, rules)
        fired[STATIC_TWICE] += alerts_of_static(plan.name, verdicts, monitors, rules, in_a_row=2)
    window_ms = monitors.monitors[0].window_ms
    spans = [span for plan in plans for span in plan.spans]
    days = sum(plan.incident_days for plan in plans)
    return Measured(
        f"replay, {part} part: {len(spans)} incidents of {len(KINDS)} kinds in {days} days, windows of "
        f"{window_ms // 60_000} min",
        _scores(spans, fired, window_ms, GRACE_WINDOWS),
        (),
    )


def measure_nab(folder: Path) -> Measured:
    """Measure a folder of labelled series. About 0.5 ms a point. Raises ConfigurationError as `read_nab`."""
    found = read_nab(folder)
    parts = []
    for series in found.series:
        ours, static = alerts_of_series(series)
        parts.append(_scores(series.spans, {OURS: ours, STATIC: static}, series.step_ms, 0.0))
    scores = {name: _together([part[name] for part in parts]) for name in (OURS, STATIC)}
    notes = [f"labelled but not there, and left out: {', '.join(found.missing)}"] if found.missing else []
    n_points = sum(len(series.points) for series in found.series)
    title = f"{folder.name}: {len(found.series)} series, {n_points:,} points, {len(scores[OURS].incidents)} incidents"
    return Measured(title, scores, tuple(notes))


def _scores(spans: Iterable[Span], fired: dict[str, list[Fired]], window_ms: int, grace: float) -> dict[str, Score]:
    labelled = list(spans)
    return {name: score(labelled, alerts, window_ms=window_ms, grace_windows=grace) for name, alerts in fired.items()}


def _together(parts: Sequence[Score]) -> Score:
    """Scores of separate data, whose windows may be of different lengths, as one."""
    return Score(
        n_alerts=sum(part.n_alerts for part in parts),
        n_true=sum(part.n_true for part in parts),
        incidents=tuple(span for part in parts for span in part.incidents),
        found=tuple(span for part in parts for span in part.found),
        delays_windows=tuple(delay for part in parts for delay in part.delays_windows),
        false_alarms=tuple(alarm for part in parts for alarm in part.false_alarms),
    )


def _of_kind(found: Score, kind: str) -> Score:
    delays = [delay for span, delay in zip(found.found, found.delays_windows, strict=True) if span.kind == kind]
    return replace(
        found,
        incidents=tuple(span for span in found.incidents if span.kind == kind),
        found=tuple(span for span in found.found if span.kind == kind),
        delays_windows=tuple(delays),
    )
