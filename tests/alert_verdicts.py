"""Verdicts for the alert tests: one series, windows 30 s apart, drifted or not as a line of letters says."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from schemas.verdicts import Verdict
from udfs.alerts.rule import AlertRule
from udfs.alerts.verdict_event import VerdictEvent, decode_verdict

EPOCH_MS = 1_700_000_000_000 - 1_700_000_000_000 % 60_000
SLIDE_MS = 30_000

RULE = AlertRule(
    alertname="FeatureDrift",
    severity="warning",
    owner="ml-oncall",
    runbook_url="https://wiki.example/drift",
    firing_after_windows=3,
    resolved_after_windows=3,
    resend_delay_seconds=60,
    generator_url="urn:slacktide:verdict:{verdict_id}",
)

DRIFTED = Verdict(
    monitor="chat",
    series={"service.name": "assistant", "region": "eu"},
    feature="input_tokens",
    window_start_ms=EPOCH_MS - 300_000,
    window_end_ms=EPOCH_MS,
    slide_seconds=SLIDE_MS / 1000,
    test="ks_two_sample",
    method="asymptotic",
    status="ok",
    statistic=0.182,
    p_value=0.0007,
    log10_p_value=-3.155,
    effect=0.182,
    published_score=0.9993,
    alpha=0.01,
    min_effect=0.1,
    drifted=True,
    n_reference=1000,
    n_reference_null=0,
    n_window=412,
    n_window_null=3,
    n_infinite=0,
    config_digest="sha256:c0",
    reference_digest="sha256:f0",
    model_card_digest="sha256:ca",
)
QUIET = replace(DRIFTED, statistic=0.031, p_value=0.84, log10_p_value=-0.076, effect=0.031, drifted=False)
UNKNOWN = replace(
    DRIFTED,
    status="insufficient_data",
    statistic=None,
    p_value=None,
    log10_p_value=None,
    effect=None,
    published_score=None,
    drifted=None,
    n_window=4,
)
_LETTERS = {"D": DRIFTED, "q": QUIET, "?": UNKNOWN}


def verdict(letter: str, window: int, **changes: Any) -> Verdict:
    """The verdict of window number `window`: `D` drifted, `q` quiet, `?` not judged."""
    end_ms = EPOCH_MS + window * SLIDE_MS
    return replace(_LETTERS[letter], window_start_ms=end_ms - 300_000, window_end_ms=end_ms, **changes)


def verdicts(line: str, first: int = 1, **changes: Any) -> list[Verdict]:
    """One verdict a letter, in consecutive windows from number `first`; `.` leaves a window out.

    >>> [v.drifted for v in verdicts("Dq.?")]
    [True, False, None]
    """
    return [verdict(letter, window, **changes) for window, letter in enumerate(line, first) if letter != "."]


def events(judged: Iterable[Verdict]) -> list[VerdictEvent]:
    """The verdicts as the lifecycle reads them, through their own bytes."""
    return [decode_verdict(v.to_json()) for v in judged]
