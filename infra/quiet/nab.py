"""Labelled time series in the layout of the Numenta Anomaly Benchmark: read, judged by both rules, counted.

A folder holds `combined_windows.json`, itself or in `labels/`: file name -> [[begin, end], ...]; and the files, itself
or in `data/`: CSV with the columns `timestamp,value`. Times have no zone and are taken as UTC.

The first 15 % of a series, at most 750 points, are for learning, as the benchmark has it: there the static rule takes
its mean and deviation from, and no alert counts. A point is a window. Our policy is below, the same for every series
and chosen without looking at any; its season is the hour of the week or of the day, the longer one that the learning
part has room for, or none.

Source of the layout and of the 15 %: Lavin & Ahmad, "Evaluating Real-time Anomaly Detection Algorithms: the Numenta
Anomaly Benchmark", ICMLA 2015.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from infra.quiet.judged import fired
from infra.quiet.score import Fired, Span
from infra.quiet.static_rule import StaticRule
from jobs.alert_rules import load_alert_rules
from jobs.kafka_client import ConfigurationError
from schemas.verdicts import Verdict
from udfs.alerts.rule import AlertRules
from udfs.signals.follow import History
from udfs.signals.seasonal_band import BandPolicy
from udfs.signals.seasonal_threshold import SeasonalPolicy, SeasonalThreshold

LABELS = "combined_windows.json"
LEARNING_SHARE, MOST_LEARNING = 0.15, 750
FIRING_AFTER_POINTS, RESOLVED_AFTER_POINTS = 2, 3
PERIODS_SECONDS = (7 * 86_400.0, 86_400.0)
SLOTS_SECONDS, POINTS_A_SLOT = (900.0, 1800.0, 3600.0), 3  # as fine as three points allow: daily edges are sharp
POLICY = SeasonalPolicy(
    wrong_side="both",
    enter_spreads=6.0,
    leave_spreads=3.0,
    band=BandPolicy(period_seconds=None, min_windows=48, min_relative_spread=0.02),
)
MONITOR, FEATURE = "series", "value"


@dataclass(frozen=True)
class Series:
    """One labelled series: (epoch milliseconds, value or None) in order of time, and its incidents."""

    name: str
    points: tuple[tuple[int, float | None], ...]
    spans: tuple[Span, ...]

    @property
    def step_ms(self) -> int:
        """The usual time from a point to the next."""
        return max(1, round(median(b[0] - a[0] for a, b in zip(self.points, self.points[1:], strict=False))))

    @property
    def learning(self) -> int:
        """How many points are for learning."""
        return min(math.floor(LEARNING_SHARE * len(self.points)), MOST_LEARNING)

    @property
    def scored_from_ms(self) -> int:
        """The first point that counts."""
        return self.points[self.learning][0]


@dataclass(frozen=True)
class NabFolder:
    """What a folder holds; `missing` are labelled files that are not there."""

    series: tuple[Series, ...]
    missing: tuple[str, ...]


def read_nab(folder: Path) -> NabFolder:
    """Read a folder. Raises ConfigurationError naming file, column and remedy where it is of another layout."""
    labels_file = next((f for f in (folder / LABELS, folder / "labels" / LABELS) if f.is_file()), None)
    if labels_file is None:
        remedy = f"Give a folder with {LABELS} or labels/{LABELS}"
        raise ConfigurationError(str(folder), "--nab", f"has no {LABELS}", remedy)
    try:
        labels = json.loads(labels_file.read_text())
        windows = {str(name): [(_ms(begin), _ms(end)) for begin, end in spans] for name, spans in labels.items()}
    except (AttributeError, TypeError, ValueError) as error:
        remedy = "Write file name -> [[begin, end], ...]"
        raise ConfigurationError(str(labels_file), "(labels)", f"can't be read: {error}", remedy) from None
    series, missing = [], []
    for name, spans in sorted(windows.items()):
        file = next((f for f in (folder / name, folder / "data" / name) if f.is_file()), None)
        if file is None:
            missing.append(name)
        else:
            series.append(_series(name, file, spans))
    if not series:
        raise ConfigurationError(str(folder), "--nab", "holds none of the labelled files", "Put them beside the labels")
    return NabFolder(tuple(series), tuple(missing))


def policy_of(series: Series) -> SeasonalPolicy:
    """Return the policy with the longest season that can be learnt, and level and spread with it, before points count.

    >>> points = tuple((minute * 300_000, 1.0) for minute in range(4032))
    >>> policy = policy_of(Series("five minutes of two weeks", points, ()))
    >>> policy.band.period_seconds, policy.band.slot_seconds
    (86400.0, 900.0)
    """
    room_seconds = (series.scored_from_ms - series.points[0][0] - POLICY.band.min_windows * series.step_ms) / 1000
    period = next((seconds for seconds in PERIODS_SECONDS if seconds <= room_seconds), None)
    fine = (seconds for seconds in SLOTS_SECONDS if seconds * 1000 >= POINTS_A_SLOT * series.step_ms)
    slot = next(fine, SLOTS_SECONDS[-1])
    return replace(POLICY, band=replace(POLICY.band, period_seconds=period, slot_seconds=slot))


def alerts_of_series(series: Series) -> tuple[list[Fired], list[Fired]]:
    """Return what ours and what the static rule fired on a series after its learning part."""
    points = list(_verdicts(series))
    learning = [v.statistic for v in points[: series.learning] if v.statistic is not None]
    rule = StaticRule.of_figures(learning, "both")
    static = (rule.judged(verdict, verdict.statistic) for verdict in points[series.learning :])
    follower = SeasonalThreshold(MONITOR, FEATURE, policy_of(series))
    ours = (v for v in History([follower]).take(points) if v.window_end_ms >= series.scored_from_ms)
    return list(fired(series.name, ours, _rules(FIRING_AFTER_POINTS))), list(fired(series.name, static, _rules(1)))


def _rules(firing_after: int) -> AlertRules:
    shipped = load_alert_rules()
    rule = replace(shipped.default, firing_after_windows=firing_after, resolved_after_windows=RESOLVED_AFTER_POINTS)
    return replace(shipped, default=rule)


def _series(name: str, file: Path, spans: list[tuple[int, int]]) -> Series:
    points = sorted(_points(file), key=lambda point: point[0])
    usable = sum(value is not None for _, value in points[: math.floor(LEARNING_SHARE * len(points))])
    if usable < 2:
        raise ConfigurationError(str(file), "value", "has too few rows to learn from", "Give some hundred rows")
    found = Series(name, tuple(points), ())
    labelled = tuple(Span(name, "labelled", begin, end) for begin, end in spans if end >= found.scored_from_ms)
    return replace(found, spans=labelled)


def _points(file: Path) -> Iterator[tuple[int, float | None]]:
    with file.open(newline="") as rows:
        reader = csv.DictReader(rows)
        if not {"timestamp", "value"} <= set(reader.fieldnames or ()):
            problem = f"has the columns {', '.join(reader.fieldnames or ()) or 'none'}"
            raise ConfigurationError(str(file), "timestamp,value", problem, "Begin with the line timestamp,value")
        for row in reader:
            try:
                yield _ms(row["timestamp"]), _value(row)
            except (TypeError, ValueError) as error:
                place = f"line {reader.line_num}"
                raise ConfigurationError(str(file), place, str(error), "Write 2014-02-26 13:45:00,0.5") from None


def _value(row: Mapping[str, str]) -> float | None:
    """An empty or infinite value, or NaN, is a missing one."""
    value = float(row["value"] or "nan")
    return value if math.isfinite(value) else None


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def _verdicts(series: Series) -> Iterator[Verdict]:
    """Each point as the verdict of a window that ends there, on a grid, so that windows can be in a row."""
    step_ms = series.step_ms
    for at_ms, value in series.points:
        end_ms = round(at_ms / step_ms) * step_ms
        yield Verdict(
            monitor=MONITOR,
            series={"series": series.name},
            feature=FEATURE,
            window_start_ms=end_ms - step_ms,
            window_end_ms=end_ms,
            slide_seconds=step_ms / 1000,
            test="value",
            method="value",
            status="no_data" if value is None else "ok",
            statistic=value,
            p_value=None,
            log10_p_value=None,
            effect=None,
            published_score=None,
            alpha=None,
            min_effect=None,
            drifted=None if value is None else False,
            n_reference=0,
            n_reference_null=0,
            n_window=1,
            n_window_null=0,
            n_infinite=0,
            config_digest="sha256:series",
            reference_digest=None,
            model_card_digest="sha256:series",
        )
