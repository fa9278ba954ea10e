"""Judging two versions: the limits of spec D6 at their edges, and a status instead of a figure where there is none."""

import pytest

from schemas.status import Status
from udfs.versions.score_sum import ScoreSum
from udfs.versions.version_judgement import judge_confidence_shift, judge_consistency, judge_divergence
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit


@pytest.mark.parametrize(("same", "alerts"), [(849, True), (850, False), (1000, False), (0, True)])
def test_consistency_alerts_below_its_limit(same: int, alerts: bool) -> None:
    judged = judge_consistency(ScoreSum.from_values([True] * same + [False] * (1000 - same)))
    assert (judged.statistic, judged.threshold, judged.alerts) == (same / 1000, 0.85, alerts)


@pytest.mark.parametrize(("nats", "alerts"), [(0.32, False), (0.3201, True), (0.0, False), (15.9, True)])
def test_confidence_shift_alerts_above_its_limit(nats: float, alerts: bool) -> None:
    judged = judge_confidence_shift(ScoreSum.from_values([nats] * 100, highest=20.0))
    assert judged.statistic == pytest.approx(nats, abs=1e-12)
    assert judged.alerts is alerts


def test_a_mean_just_at_the_limit_is_not_above_it_by_rounding() -> None:
    """0.32 is no multiple of 2**-40: its rounding must not decide."""
    for limit in (0.1, 0.2, 0.3, 0.32, 0.7):
        scores = ScoreSum.from_values([limit] * 1000)
        assert judge_divergence(scores, DivergenceLimit(limit)).alerts is False
        assert judge_consistency(scores, ConsistencyLimit(limit)).alerts is False


def test_divergence_has_no_limit_by_default() -> None:
    with pytest.raises(TypeError):
        DivergenceLimit()  # type: ignore[call-arg]
    assert judge_divergence(ScoreSum.from_values([0.2] * 100), DivergenceLimit(0.1)).alerts is True


@pytest.mark.parametrize(
    ("scores", "status"),
    [
        (ScoreSum(), Status.NO_DATA),
        (ScoreSum.from_values([0.0] * 999), Status.INSUFFICIENT_DATA),
        (ScoreSum.from_values([None] * 5000), Status.INSUFFICIENT_DATA),
        (ScoreSum.from_values([7.0] * 5000), Status.INVALID),
        (ScoreSum.from_values([7.0] * 5000 + [None]), Status.INVALID),
    ],
)
def test_where_there_is_no_figure_nothing_passes(scores: ScoreSum, status: Status) -> None:
    judged = judge_consistency(scores)
    assert (judged.status, judged.statistic, judged.alerts) == (status, None, None)
    assert judged.n_invalid + judged.n_null + judged.n == scores.n + scores.n_invalid + scores.n_null


def test_invalid_scores_are_no_excuse() -> None:
    """Half the scores are missing: the rest are judged as ever, and the missing ones are told."""
    judged = judge_consistency(ScoreSum.from_values([False] * 1000 + [None] * 1000 + [9.0] * 3))
    assert (judged.statistic, judged.alerts, judged.n, judged.n_null, judged.n_invalid) == (0.0, True, 1000, 1000, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConsistencyLimit(alert_below=0.0),
        lambda: ConsistencyLimit(alert_below=float("nan")),
        lambda: ConsistencyLimit(every=0),
        lambda: ConfidenceShiftLimit(alert_above=-0.1),
        lambda: ConfidenceShiftLimit(window_seconds=60, slide_seconds=25),
        lambda: ConfidenceShiftLimit(min_samples=0),
        lambda: DivergenceLimit(float("inf")),
    ],
)
def test_impossible_limits_are_refused(make) -> None:
    with pytest.raises(ValueError, match="must"):
        make()
