"""The figure of one window of an SLO, held against its limit."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.measured import Measured, measured_verdict
from udfs.sketches.both_histograms import BothHistograms
from udfs.sketches.log import LogSketch
from udfs.slo.indicators import Quantile, Tally, Throughput
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.slo import Slo, WindowRule

ALL_ZERO, INFINITE = "all_zero", "infinite"
_METHODS = {Quantile: "log_sketch", MetricQuantile: "histogram"}


def window_verdict(
    slo: Slo, rule: WindowRule, labels: Sequence[str], end_ms: int, tally: Tally, *, is_whole: bool
) -> Verdict:
    """Return the verdict on the window that ends at `end_ms` (epoch milliseconds), of which `tally` is all.

    `no_data` without events, `judge_unqualified` where there are only such of an unqualified judge, `insufficient_data`
    with fewer than the rule's minimum, or for a throughput where the stream began within the window (`is_whole`);
    `invalid` where the quantile is infinite, or every value 0: a clock that nobody started. `drifted` says breached.
    """
    status, figure, evidence = _figure(slo, rule, tally, is_whole)
    measured = Measured(
        figure,
        threshold=rule.limit,
        wrong_side=rule.wrong_side,
        status=status,
        n_window=tally.n,
        n_window_null=tally.n_null,
        evidence={
            "figure": slo.figure,
            "service": slo.service,
            "good": _events(slo, tally.good) if slo.figure == "bad_ratio" else None,
            "total": _events(slo, tally.total),
            "target": slo.target,
            "min_events": rule.min_events,
            **evidence,
            "alert": slo.alert.evidence(f"{slo.name}-window", slo.alert.severity, slo.alert.firing_after_windows),
        },
    )
    method = _METHODS.get(type(slo.indicator), "counts")
    frame = slo.about("sli", rule.window_ms, rule.slide_ms)
    verdict = measured_verdict(frame, labels, end_ms, measured, test=slo.figure, method=method)
    # A censored figure is there only where it is a breach.
    breached_at_limit = verdict.statistic == rule.limit and (rule.equal_breaches or "edge" in evidence)
    return replace(verdict, drifted=True) if breached_at_limit else verdict


def _figure(slo: Slo, rule: WindowRule, tally: Tally, is_whole: bool) -> tuple[Status, float | None, dict[str, Any]]:
    if isinstance(slo.indicator, MetricQuantile) and tally.sketch and (tally.n >= rule.min_events or not tally.total):
        return _histogram_quantile(tally, slo.indicator.q, rule)
    if not tally.total:
        status = Status.JUDGE_UNQUALIFIED if tally.n_unqualified else Status.NO_DATA
        return status, None, {"n_unqualified": tally.n_unqualified}
    if tally.n < rule.min_events or (isinstance(slo.indicator, Throughput) and not is_whole):
        return Status.INSUFFICIENT_DATA, None, {}
    if isinstance(slo.indicator, Throughput):
        return Status.OK, tally.total / (rule.window_ms / 1000), {}
    if isinstance(slo.indicator, Quantile):
        return _quantile(tally, slo.indicator.q)
    return Status.OK, (tally.total - tally.good) / tally.total, {"sli": tally.good / tally.total}


def _events(slo: Slo, count: int) -> float:
    """A count of a tally in events: of a sample, an estimate."""
    return count / slo.event_unit if slo.is_sampled else count


def _quantile(tally: Tally, q: float) -> tuple[Status, float | None, dict[str, Any]]:
    sketch = LogSketch.from_bytes(tally.sketch)
    if sketch.quantile(0.0) == sketch.quantile(1.0) == 0.0:
        return Status.INVALID, None, {"flags": [ALL_ZERO]}
    figure = sketch.quantile(q)
    if figure is None or math.isinf(figure):
        return Status.INVALID, None, {"flags": [INFINITE]}
    return Status.OK, figure, {}


def _histogram_quantile(tally: Tally, q: float, rule: WindowRule) -> tuple[Status, float | None, dict[str, Any]]:
    """The quantile where the buckets tell it.

    Where it lies in a bucket without an end we know only on which side of the bucket's edge. That is a figure, the
    edge, where it is a breach for sure: the worst outage ends up in that bucket. Else it is `inconclusive`.
    """
    histogram = BothHistograms.from_bytes(tally.sketch)
    found, flags = histogram.quantile(q)
    evidence: dict[str, Any] = {"flags": list(flags)} if flags else {}
    if found.value is None or not found.censored:
        return found.status, found.value, evidence
    beyond = "above" if q > histogram.share_at_most(found.value) else "below"
    evidence |= {"edge": found.value, "quantile_is": f"{beyond} the edge"}
    # What is beyond the last bound is above it; what is in the first bucket may be equal to its bound.
    at_limit = found.value == rule.limit and (beyond == "above" or rule.equal_breaches)
    past_limit = found.value > rule.limit if beyond == "above" else found.value < rule.limit
    if beyond == rule.wrong_side and (past_limit or at_limit):
        return Status.OK, found.value, evidence
    return Status.INCONCLUSIVE, None, evidence
