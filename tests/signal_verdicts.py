"""Verdicts for the tests of signals: one series, one window after the other."""

from dataclasses import replace
from typing import Any

from schemas.verdicts import Verdict

EPOCH_MS = 1_700_000_000_000 - 1_700_000_000_000 % 3_600_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_WINDOW = Verdict(
    monitor="chat",
    series={"model": "m1"},
    feature="",
    window_start_ms=0,
    window_end_ms=0,
    slide_seconds=0.0,
    test="",
    method="",
    status="ok",
    statistic=None,
    p_value=None,
    log10_p_value=None,
    effect=None,
    published_score=None,
    alpha=None,
    min_effect=None,
    drifted=False,
    n_reference=1000,
    n_reference_null=0,
    n_window=1000,
    n_window_null=0,
    n_infinite=0,
    config_digest="sha256:c0",
    reference_digest="sha256:f0",
    model_card_digest="sha256:ca",
)


def window(test: str, feature: str, end_ms: int, statistic: float | None, *, window_ms: int, **changes: Any) -> Verdict:
    """A judged window of `test` that ends at `EPOCH_MS + end_ms`; not judged where `statistic` is None."""
    unjudged: dict[str, Any] = {"status": "insufficient_data", "drifted": None} if statistic is None else {}
    return replace(
        _WINDOW,
        feature=feature,
        test=test,
        method="test",
        window_start_ms=EPOCH_MS + end_ms - window_ms,
        window_end_ms=EPOCH_MS + end_ms,
        statistic=statistic,
        **{"slide_seconds": window_ms / 1000} | unjudged | changes,
    )
