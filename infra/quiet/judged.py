"""From streams of requests to alerts, by the monitors and the lifecycle that the jobs run, and by the static rule."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import orjson
import yaml

from infra.commands.monitors import backtest_of
from infra.monitor_history.alerts_of import alerts_of
from infra.quiet.incidents import DAY_SECONDS
from infra.quiet.replayed import BEGIN_MS, FIELDS, StreamPlan, requests_of
from infra.quiet.score import Fired
from infra.quiet.static_rule import StaticRule, WrongSide, static_rules
from jobs.alert_rules import load_alert_rules
from jobs.monitors import Monitors, load_monitors
from schemas.alerts import AlertState
from schemas.model_card import CARDS_FOLDER
from schemas.verdicts import Verdict, VerdictKind
from udfs.alerts.rule import AlertRules
from udfs.references.profile import ReferenceProfile
from udfs.signals.seasonal_threshold import SeasonalThreshold

MONITORS = Path(__file__).with_name("monitors.yaml")
RULES = Path(__file__).with_name("alert_rules.yaml")
CARD = CARDS_FOLDER / "azure_llm_conversation_2023.json"
_DAY_MS = round(DAY_SECONDS * 1000)


def monitors_of(tuning: StreamPlan) -> Monitors:
    """Return the monitors of monitors.yaml, their reference built of the quiet days of `tuning`."""
    until_ms = BEGIN_MS + tuning.quiet_days * _DAY_MS
    bodies = map(orjson.loads, requests_of(tuning))
    rows = list(takewhile(lambda body: body["event_time_ms"] < until_ms, bodies))
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in FIELDS}
    profile = ReferenceProfile.build("quiet", columns, source="the tuning part's quiet days", created_at_ms=0)
    with tempfile.TemporaryDirectory() as folder:
        file = yaml.safe_load(MONITORS.read_text())
        for monitor in file["monitors"]:
            monitor |= {"reference": str(profile.save(folder)), "model_card": str(CARD)}
        path = Path(folder) / "monitors.yaml"
        path.write_text(yaml.safe_dump(file))
        return load_monitors(path)


def verdicts_of(plan: StreamPlan, monitors: Monitors) -> list[Verdict]:
    """Return all verdicts of the whole windows of a stream. About 30 seconds a million requests."""
    history = backtest_of(monitors)
    history.take(requests_of(plan))
    until_ms = BEGIN_MS + plan.days * _DAY_MS
    return [verdict for verdict in history.verdicts() if verdict.window_end_ms <= until_ms]


def scored(plan: StreamPlan, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return those after the quiet days: what these are for is to learn."""
    return [v for v in verdicts if v.window_start_ms >= BEGIN_MS + plan.quiet_days * _DAY_MS]


def watched(monitors: Monitors) -> dict[str, SeasonalThreshold]:
    """Return the usual figures that are followed by a dynamic threshold, by their names: the static rule watches them.

    A distance from the reference (a field's own name) is no usual figure: nobody sets a fixed threshold on it.
    """
    return {f.name: f for f in monitors.followers if isinstance(f, SeasonalThreshold) and "(" in f.name}


def static_of(quiet: Iterable[Verdict], monitors: Monitors) -> dict[str, StaticRule]:
    """Return the static rules, made of the verdicts of quiet days."""
    followed = watched(monitors)
    sides: dict[str, WrongSide] = {name: follower.policy.wrong_side for name, follower in followed.items()}
    figures = (
        (name, _figure(follower, verdict))
        for verdict in quiet
        for name, follower in followed.items()
        if follower.accepts(verdict)
    )
    return static_rules(figures, sides)


def alerts_of_static(
    stream: str, verdicts: Iterable[Verdict], monitors: Monitors, rules: Mapping[str, StaticRule], in_a_row: int = 1
) -> list[Fired]:
    """Return what the static rules would have fired after `in_a_row` windows beyond them; an alert ends as ours do."""
    judged = (
        replace(rules[name].judged(verdict, _figure(follower, verdict)), feature=f"static({name})")
        for verdict in verdicts
        for name, follower in watched(monitors).items()
        if follower.accepts(verdict)
    )
    ours = load_alert_rules(str(RULES))
    rule = replace(ours.default, firing_after_windows=in_a_row)
    return list(fired(stream, judged, replace(ours, default=rule, monitors={})))


def alerts_of_ours(stream: str, verdicts: Iterable[Verdict], monitors: Monitors) -> list[Fired]:
    """Return what the alert job would have fired of drift tests, findings and dynamic thresholds.

    The figures that dynamic thresholds follow are not judged a second time by the limits of their `limit` tests.
    """
    measured = {follower.feature for follower in watched(monitors).values()}
    judged = (v for v in verdicts if v.kind != VerdictKind.DRIFT or v.feature not in measured)
    return list(fired(stream, judged, load_alert_rules(str(RULES))))


def _figure(follower: SeasonalThreshold, verdict: Verdict) -> float | None:
    return float(verdict.n_window) if follower.policy.figure == "n_window" else verdict.statistic


def fired(stream: str, verdicts: Iterable[Verdict], rules: AlertRules) -> Iterator[Fired]:
    """Yield what the alert lifecycle fires of verdicts."""
    for alert in alerts_of(verdicts, rules):
        if alert.state == AlertState.FIRING:
            yield Fired(stream, alert.feature, alert.starts_at_ms)
