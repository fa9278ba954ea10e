"""What is said of an SLO's budget and burn rates at an instant: one verdict on each severity, and one on the budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from schemas.status import Status
from schemas.times import rfc3339
from schemas.verdicts import Verdict
from udfs.judging.measured import Measured, measured_verdict
from udfs.slo.budget import Budget, error_budget
from udfs.slo.burn_rate import burn_rate
from udfs.slo.burn_rules import TICKET, RuleOutcome, judge_rule, worst
from udfs.slo.counts import SloCounts
from udfs.slo.exhaustion import projected_exhaustion_ms
from udfs.slo.periods import HOUR_MS, MINUTE_MS, Bounds, Calendar, duration_text
from udfs.slo.ring import Counts, EstimatedCounts
from udfs.slo.slo import Slo

# What "the rate of now" is in a projection: long enough to be steady, short enough to be now.
PROJECTION_MS = 6 * HOUR_MS


@dataclass(frozen=True)
class Standing:
    """Where an SLO stands: its period and budget, its burn rates by rule, and when the budget will be gone."""

    bounds: Bounds
    counts: Counts
    budget: Budget
    outcomes: tuple[RuleOutcome, ...]
    exhausted_ms: int | None


def standing(
    slo: Slo, counts: SloCounts, end_ms: int, *, unqualified: bool = False, sampled: SloCounts | None = None
) -> Standing:
    """Return where `slo` stands at `end_ms` (epoch milliseconds, a whole minute). O(slots), some 50 microseconds.

    `unqualified`: events came, but of a judge whose scores don't count. `sampled` counts the events that `counts` are
    estimated from, where they are: a minimum of events is about those.
    """
    minute = (end_ms - 1) // MINUTE_MS
    found: dict[int, Counts] = {}

    def since(first_minute: int) -> Counts:
        estimated = counts.since(minute, first_minute)
        return (
            estimated if sampled is None else EstimatedCounts.of(estimated, sampled.since(minute, first_minute).total)
        )

    def counts_of(length_ms: int) -> Counts:
        if length_ms not in found:
            found[length_ms] = since(minute + 1 - max(1, length_ms // MINUTE_MS))
        return found[length_ms]

    bounds, elapsed = slo.period.bounds(end_ms), 1.0
    if isinstance(slo.period, Calendar):
        bounds = slo.period.bounds(end_ms - 1)
        elapsed = (end_ms - bounds.start_ms) / (bounds.end_ms - bounds.start_ms)
    of_period = since(bounds.start_ms // MINUTE_MS)
    least = slo.min_events * (1 if slo.estimates_budget else slo.budget_unit)
    budget = error_budget(
        of_period.good, of_period.total, slo.target, elapsed=elapsed, min_events=least, n_events=of_period.n
    )
    if budget.status is Status.NO_DATA and (of_period.invalid or unqualified):
        budget = replace(budget, status=Status.INVALID if of_period.invalid else Status.JUDGE_UNQUALIFIED)
    outcomes = tuple(judge_rule(rule, counts_of, slo.target, min_events=least) for rule in slo.burn_rules)
    now = counts_of(PROJECTION_MS)
    exhausted_ms = projected_exhaustion_ms(
        budget.remaining,
        burn_rate(now.good, now.total, slo.target),
        period_ms=bounds.end_ms - bounds.start_ms,
        now_ms=end_ms,
        ends_ms=bounds.end_ms if isinstance(slo.period, Calendar) else None,
    )
    return Standing(bounds, of_period, budget, outcomes, exhausted_ms)


def budget_verdicts(slo: Slo, labels: Sequence[str], end_ms: int, where: Standing) -> list[Verdict]:
    """Return one verdict on each severity of the SLO's burn rules, and the one on its budget.

    `statistic` is a burn rate held against the rule's factor, or the share of the budget that remains, held against 0.
    """
    severities = dict.fromkeys(rule.severity for rule in slo.burn_rules)
    verdicts = [_burn_verdict(slo, labels, end_ms, where, severity) for severity in severities]
    budget = where.budget
    measured = Measured(
        budget.remaining,
        threshold=0.0,
        wrong_side="below",
        status=budget.status,
        n_window=_n_events(slo, where.counts),
        effect=budget.burn_rate,
        evidence=_evidence(slo, where, where.outcomes)
        | {"alert": slo.alert.evidence(f"{slo.name}-budget-exhausted", TICKET, 1)},
    )
    frame = slo.about("budget", where.bounds.end_ms - where.bounds.start_ms, slo.evaluate_ms)
    verdict = measured_verdict(frame, labels, end_ms, measured, test="error_budget", method=slo.budgeting.method.value)
    # A calendar period has an end that is not yet: the verdict is on what has passed of it.
    return [*verdicts, replace(verdict, window_start_ms=where.bounds.start_ms)]


def _burn_verdict(slo: Slo, labels: Sequence[str], end_ms: int, where: Standing, severity: str) -> Verdict:
    outcomes = [outcome for outcome in where.outcomes if outcome.rule.severity == severity]
    telling = worst(outcomes)
    status = telling.status
    if status is Status.NO_DATA and where.budget.status is Status.JUDGE_UNQUALIFIED:
        status = Status.JUDGE_UNQUALIFIED
    measured = Measured(
        telling.burn_rate if status is Status.OK else None,
        threshold=telling.rule.factor,
        wrong_side="above",
        status=status,
        n_window=_n_events(slo, telling.long),
        evidence=_evidence(slo, where, outcomes)
        | {
            "rule": telling.rule.name,
            "alert": slo.alert.evidence(f"{slo.name}-burn-{severity}", severity, 1),
        },
    )
    frame = slo.about(f"burn_{severity}", max(o.rule.long_ms for o in outcomes), slo.evaluate_ms)
    verdict = measured_verdict(frame, labels, end_ms, measured, test="burn_rate", method="multi_window")
    return replace(verdict, drifted=telling.firing) if status is Status.OK else verdict


def _evidence(slo: Slo, where: Standing, outcomes: Sequence[RuleOutcome]) -> dict[str, Any]:
    unit, budget = slo.budget_unit, where.budget
    sampled = {"n_sampled": where.counts.n} if slo.estimates_budget else {}
    return {
        "service": slo.service,
        "period": slo.period.name,
        "period_start": rfc3339(where.bounds.start_ms),
        "period_end": rfc3339(where.bounds.end_ms),
        "budgeting_method": slo.budgeting.method.value,
        "target": slo.target,
        "good": where.counts.good / unit if unit > 1 else where.counts.good,
        "total": where.counts.total // unit,
        "n_invalid": where.counts.invalid,
        **sampled,
        "sli": budget.sli,
        "burn_rate": budget.burn_rate,
        "budget_remaining": budget.remaining,
        "projected_exhaustion": None if where.exhausted_ms is None else rfc3339(where.exhausted_ms),
        "windows": [_window(outcome, unit) for outcome in outcomes],
    }


def _n_events(slo: Slo, counts: Counts) -> int:
    """How many events, or slices, there were."""
    return counts.n if slo.estimates_budget else counts.total // slo.budget_unit


def _window(outcome: RuleOutcome, unit: int) -> dict[str, Any]:
    rule = outcome.rule
    return {
        "rule": rule.name,
        "severity": rule.severity,
        "factor": rule.factor,
        "status": outcome.status.value,
        "firing": outcome.firing,
        "long": duration_text(rule.long_ms),
        "burn_long": outcome.burn_long,
        "total_long": outcome.long.total // unit,
        "burn_short": outcome.burn_short,
        "total_short": outcome.short.total // unit,
    }
