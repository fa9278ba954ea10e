"""Quiet, measured (spec A7): what is counted, what is injected, what is static, and a folder of labelled series."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import orjson
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.commands.backtest_alerts import command
from infra.quiet.incidents import DAY_SECONDS, KINDS
from infra.quiet.judged import MONITORS, RULES
from infra.quiet.measured import OURS, STATIC, Goals, Measured, measure_nab, measure_replay
from infra.quiet.nab import read_nab
from infra.quiet.replayed import BEGIN_MS, StreamPlan, requests_of
from infra.quiet.score import Fired, Span, reduction, score
from infra.quiet.static_rule import StaticRule
from jobs.alert_rules import load_alert_rules
from jobs.kafka_client import ConfigurationError

LAYOUT = Path(__file__).parents[1] / "nab_layout"
MINUTE = 60_000


def test_counting_by_hand():
    incidents = [Span("a", "step", 10 * MINUTE, 20 * MINUTE), Span("b", "drop", 0, 5 * MINUTE)]
    fired = [
        Fired("a", "x", 12 * MINUTE),  # true, and the first: two windows of a minute after the begin
        Fired("a", "y", 19 * MINUTE),  # true, another figure of the same incident
        Fired("a", "y", 22 * MINUTE),  # true: within the grace
        Fired("a", "x", 23 * MINUTE),  # false: after it
        Fired("a", "x", 9 * MINUTE),  # false: before
        Fired("b", "x", 15 * MINUTE),  # false: another stream's incident
    ]
    found = score(incidents, fired, window_ms=MINUTE, grace_windows=2)
    assert (found.n_alerts, found.n_true, len(found.false_alarms)) == (6, 3, 3)
    assert (found.precision, found.recall, found.median_delay_windows) == (0.5, 0.5, 2.0)
    assert [span.kind for span in found.missed] == ["drop"]
    assert reduction(found, score([], fired * 1, window_ms=MINUTE, grace_windows=2)) == 0.5
    nothing = score([], [], window_ms=MINUTE, grace_windows=2)
    assert (nothing.precision, nothing.recall, nothing.median_delay_windows) == (None, None, None)
    assert reduction(found, nothing) is None


_spans = st.builds(
    lambda stream, at, lasts: Span(stream, "k", at, at + lasts),
    st.sampled_from("ab"),
    st.integers(0, 500),
    st.integers(0, 50),
)
_fired = st.builds(Fired, st.sampled_from("ab"), st.sampled_from("xy"), st.integers(-50, 600))


@settings(max_examples=60, deadline=None)
@given(st.lists(_spans, max_size=6), st.lists(_fired, max_size=12), st.randoms(use_true_random=False))
def test_counts_add_up_in_any_order(spans, fired, random):
    found = score(spans, fired, window_ms=10, grace_windows=1)
    assert found.n_true + len(found.false_alarms) == found.n_alerts == len(fired)
    assert len(found.found) + len(found.missed) == len(set(spans))
    assert all(0 <= delay <= 50 / 10 + 1 for delay in found.delays_windows)
    shuffled = list(fired)
    random.shuffle(shuffled)
    assert score(reversed(spans), shuffled, window_ms=10, grace_windows=1) == found


def test_goals_are_not_reached_by_what_cannot_be_told():
    silent = score([Span("a", "k", 0, 9)], [], window_ms=1, grace_windows=0)
    loud = score([Span("a", "k", 0, 9)], [Fired("a", "x", 3), Fired("a", "x", 99)], window_ms=1, grace_windows=0)
    reached = [holds for _, holds in Measured("t", {OURS: silent, STATIC: loud}, ()).goals(Goals())]
    assert reached == [True, False, False, False]  # no false alarm is no merit where nothing is found


def test_the_static_rule_is_numpys_mean_and_three_deviations():
    figures = np.random.default_rng(0).normal(5, 1, 200).tolist()
    centre, sd = np.mean(figures), np.std(figures, ddof=1)
    assert StaticRule.of_figures(figures, "both") == StaticRule(
        pytest.approx(centre - 3 * sd, rel=1e-12), pytest.approx(centre + 3 * sd, rel=1e-12)
    )
    assert StaticRule.of_figures(figures, "below").high is None
    assert StaticRule.of_figures(figures, "above", published=6.0).high == 6.0


def test_eight_kinds_a_day_apart_from_each_other_and_other_seeds_are_other_incidents():
    plan = StreamPlan("s", seed=5)
    incidents = sorted(plan.incidents, key=lambda incident: incident.start_seconds)
    assert len(incidents) == 8 * plan.incident_days
    assert {incident.kind for incident in incidents[:8]} == set(KINDS)
    assert incidents[0].start_seconds >= plan.quiet_days * DAY_SECONDS
    gaps = [after.start_seconds - before.end_seconds for before, after in pairwise(incidents)]
    assert min(gaps) > 1800  # enough for what one leaves behind to be gone
    assert plan.incidents == StreamPlan("other", seed=5).incidents
    assert plan.incidents != StreamPlan("s", seed=6).incidents


def test_each_incident_does_to_the_requests_what_it_says():
    plan = StreamPlan("s", seed=7, quiet_days=0, incident_days=1, one_in=4)
    requests = [orjson.loads(request) for request in requests_of(plan)]
    assert requests[:50] == [orjson.loads(request) for _, request in zip(range(50), requests_of(plan), strict=False)]
    at = np.array([request["event_time_ms"] for request in requests]) - BEGIN_MS

    def column(field):
        return np.array([request.get(field) if request.get(field) is not None else np.nan for request in requests])

    def ratio(kind, values, summary):
        """Of the second half of the incident to the half hour before it: what comes after may still hold a backlog."""
        (incident,) = (found for found in plan.incidents if found.kind == kind)
        start, end = incident.start_seconds * 1000, incident.end_seconds * 1000
        inside = (at > (start + end) / 2) & (at < end)
        before = (at > start - 1_800_000) & (at < start)
        return summary(values[inside]) / summary(values[before]), incident.size

    per_token = column("time_per_output_token_seconds").astype(float)
    found, size = ratio("latency_step", per_token, np.median)
    assert found == pytest.approx(size, rel=0.1)
    found, size = ratio("latency_creep", per_token, np.median)
    assert 1 + (size - 1) * 0.6 < found < 1 + (size - 1) * 0.9
    error = np.array([request["attributes"]["error"] for request in requests])
    found, size = ratio("error_burst", error, np.mean)
    assert found > size / 0.01 / 3
    hits = column("kv_cache_hit_ratio").astype(float)
    found, size = ratio("cache_hit_collapse", hits, np.mean)
    assert found == pytest.approx(size, rel=0.25)
    nulls = np.isnan(column("output_tokens").astype(float))
    found, size = ratio("null_burst", nulls, lambda values: values.mean() + 1e-3)
    assert found > 5
    found, _ = ratio("queue_build_up", column("queue_seconds").astype(float), np.mean)
    assert found > 100  # seconds for milliseconds
    found, size = ratio("token_length_drift", column("input_tokens").astype(float), np.mean)
    assert size - 0.5 < found < size + 0.5  # the trace's own mix moves by half
    (drop,) = (incident for incident in plan.incidents if incident.kind == "traffic_drop")
    rate = [
        np.mean((at > a * 1000) & (at < b * 1000)) / (b - a)
        for a, b in ((drop.start_seconds, drop.end_seconds), (drop.start_seconds - 3600, drop.start_seconds))
    ]
    assert rate[0] / rate[1] < drop.size + 0.25


def test_the_shipped_rules_are_a_rules_file_of_the_shipped_monitors():
    rules = load_alert_rules(str(RULES))
    names = {monitor["name"] for monitor in yaml.safe_load(MONITORS.read_text())["monitors"]}
    assert set(rules.monitors) <= names
    assert [rules.for_monitor(name).firing_after_windows for name in ("serving", "volume")] == [2, 3]


def test_a_folder_in_the_layout_is_measured_by_both_rules():
    measured = measure_nab(LAYOUT)
    ours = measured.scores[OURS]
    assert "2 series, 1,344 points, 1 incidents" in measured.title
    assert (ours.recall, len(ours.false_alarms)) == (1.0, 0)
    (made, quiet) = read_nab(LAYOUT).series
    assert made.step_ms == 30 * MINUTE
    assert (made.points[50][1], len(made.points), made.learning) == (None, 672, 100)
    assert (quiet.spans, made.spans[0].kind) == ((), "labelled")


def test_the_command_measures_a_folder_and_names_what_is_missing(tmp_path):
    folder = tmp_path / "flat"  # labels and series beside each other
    shutil.copytree(LAYOUT / "data", folder)
    labels = json.loads((LAYOUT / "labels" / "combined_windows.json").read_text())
    (folder / "combined_windows.json").write_text(json.dumps(labels | {"made/gone.csv": []}))
    told = CliRunner().invoke(command, ["--no-replay", "--nab", str(folder)])
    assert told.exit_code == 0, told.output
    assert "made/gone.csv" in told.output
    assert "precision = true alerts / alerts" in told.output


@pytest.mark.parametrize(
    ("labels", "rows", "problem"),
    [
        (None, "timestamp,value\n", "combined_windows.json"),
        ("[]", "timestamp,value\n", "can't be read"),
        ('{"x.csv": [["soon", "later"]]}', "timestamp,value\n", "can't be read"),
        ('{"y.csv": []}', "timestamp,value\n", "none of the labelled files"),
        ('{"x.csv": []}', "time,figure\n1,2\n", "time, figure"),
        ('{"x.csv": []}', "timestamp,value\nyesterday,2\n", "line 2"),
        ('{"x.csv": []}', "timestamp,value\n2026-01-01,high\n", "line 2"),
        ('{"x.csv": []}', "timestamp,value\n2026-01-01,1\n", "too few rows"),
    ],
)
def test_another_layout_is_refused_with_the_place(tmp_path, labels, rows, problem):
    (tmp_path / "x.csv").write_text(rows)
    if labels is not None:
        (tmp_path / "combined_windows.json").write_text(labels)
    with pytest.raises(ConfigurationError, match=problem):
        read_nab(tmp_path)


@pytest.mark.slow
def test_one_stream_of_the_tuning_part_is_quiet_and_misses_nothing():
    """All of it through the real judges, signals and lifecycle; the scoring part is for `make bench-alerts`."""
    measured = measure_replay("tuning", streams=1)
    ours = measured.scores[OURS]
    assert ours.recall == 1.0
    assert ours.precision >= 0.9
    assert not measured.missed_by_ours_alone
    kinds = [measured.of_kind(kind).scores[OURS] for kind in KINDS]
    assert all(len(kind.found) == 2 for kind in kinds)
    assert measured.reduction >= 0.8
