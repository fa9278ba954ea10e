"""Judges the scores of two adjacent versions: the mean of each against its limit (spec D6)."""

from dataclasses import dataclass

from schemas.status import Status
from udfs.versions.score_sum import UNIT, ScoreSum
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit

PCR, CSE, JS = "prediction_consistency_rate", "confidence_shift_entropy_nats", "js_divergence_bits"


@dataclass(frozen=True, slots=True)
class VersionJudgement:
    """What a window says of two versions.

    `quantity` names `statistic`; it alerts on the wrong side of `threshold`, equality is still right. Where `status` is
    not `ok`, `statistic` and `alerts` are None: unknown, never a pass. `n` scores took part; invalid and missing ones
    are counted beside them.
    """

    quantity: str
    statistic: float | None
    threshold: float
    alerts: bool | None
    n: int
    n_invalid: int
    n_null: int
    status: Status


def judge_consistency(agreement: ScoreSum, limit: ConsistencyLimit | None = None) -> VersionJudgement:
    """Judge a block of `limit.every` agreements; fewer are `insufficient_data`.

    >>> from udfs.versions.score_sum import UNIT, ScoreSum
    >>> judged = judge_consistency(ScoreSum.from_values([1] * 849 + [0] * 151))
    >>> judged.statistic, judged.alerts
    (0.849, True)
    """
    limit = limit or ConsistencyLimit()
    return _judged(PCR, agreement, limit.alert_below, limit.every, below=True)


def judge_confidence_shift(kl_nats: ScoreSum, limit: ConfidenceShiftLimit | None = None) -> VersionJudgement:
    """Judge the relative entropies of one sliding window.

    >>> judge_confidence_shift(ScoreSum.from_values([0.5] * 99)).status.value
    'insufficient_data'
    """
    limit = limit or ConfidenceShiftLimit()
    return _judged(CSE, kl_nats, limit.alert_above, limit.min_samples, below=False)


def judge_divergence(js_bits: ScoreSum, limit: DivergenceLimit) -> VersionJudgement:
    """Judge the Jensen-Shannon divergences of one window.

    >>> judge_divergence(ScoreSum.from_values([0.02] * 100), DivergenceLimit(alert_above=0.1)).alerts
    False
    """
    return _judged(JS, js_bits, limit.alert_above, limit.min_samples, below=False)


def _judged(quantity: str, scores: ScoreSum, threshold: float, min_samples: int, *, below: bool) -> VersionJudgement:
    status, mean = _status(scores, min_samples), scores.mean
    if status is not Status.OK or mean is None:
        return VersionJudgement(quantity, None, threshold, None, scores.n, scores.n_invalid, scores.n_null, status)
    if abs(mean - threshold) <= UNIT:
        mean = threshold  # closer than that may be the rounding of the scores
    alerts = mean < threshold if below else mean > threshold
    return VersionJudgement(quantity, mean, threshold, alerts, scores.n, scores.n_invalid, scores.n_null, status)


def _status(scores: ScoreSum, min_samples: int) -> Status:
    if scores.n >= min_samples:
        return Status.OK
    if scores.n:
        return Status.INSUFFICIENT_DATA
    if scores.n_invalid:  # also beside nulls, which say nothing
        return Status.INVALID
    return Status.INSUFFICIENT_DATA if scores.n_null else Status.NO_DATA
