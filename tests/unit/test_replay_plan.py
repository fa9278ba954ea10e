"""What can't be replayed is refused before anything is sent, naming the option and the remedy."""

from dataclasses import replace
from pathlib import Path

import pytest

from infra.replay import Drift, FaultShares, Position, ReplayPlan, Slowdown
from infra.replay.resolve import resolve
from jobs.kafka_client import ConfigurationError

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
INSTANT = Position(instant_ms=NOW_MS)
LATE, SKEW = FaultShares(late=0.01), FaultShares(skew=0.01)


@pytest.mark.parametrize(
    ("plan", "option", "because"),
    [
        (ReplayPlan(speed_up=0.0), "--speed-up", "not above 0"),
        (ReplayPlan(rate_per_second=-1.0), "--rate", "not above 0"),
        (ReplayPlan(rate_per_second=float("nan")), "--rate", "not above 0"),
        (ReplayPlan(batch_spans=0), "--batch", "not above 0"),
        (ReplayPlan(encoding="jaeger_proto"), "--encoding", "not known"),
        (ReplayPlan(trace=Path("none.csv")), "(file)", "no such file"),
        (ReplayPlan(service_model=Path("none.yaml")), "(file)", "no such file"),
        (ReplayPlan(part_from=Position(share=0.5), part_until=Position(share=0.5)), "--from, --until", "no request"),
        (ReplayPlan(part_from=INSTANT), "--from, --until", "is an instant"),
        (ReplayPlan(drifts=(Drift("prompt_entropy", INSTANT),)), "--drift", "start is not known"),
        (ReplayPlan(drifts=(Drift("prompt_entropy", Position(seconds=7200.0)),)), "--drift", "outside the replay"),
        (ReplayPlan(slowdowns=(Slowdown(2.0, Position(seconds=7200.0)),)), "--latency", "outside the replay"),
        (ReplayPlan(start=NOW_MS), "--start", "in the future"),
        (ReplayPlan(start="now", speed_up=2.0), "--start", "in the future"),
        (ReplayPlan(start=NOW_MS + 1000, speed_up=1.0), "--start", "in the future"),
        (ReplayPlan(rate_per_second=100.0, limit=6_000, shares=LATE), "--late", "the replay lasts 60 s"),
        (ReplayPlan(limit=5_500, shares=FaultShares(late=0.2)), "--duplicates, --malformed, --late, --skew", "come to"),
        (ReplayPlan(start=NOW_MS - 25 * HOUR_MS, shares=SKEW), "--skew", "not be ahead"),
        (ReplayPlan(flush_seconds=400.0), "--flush", "takes at most 300 s"),
    ],
)
def test_refused(plan: ReplayPlan, option: str, because: str) -> None:
    with pytest.raises(ConfigurationError, match=because) as refused:
        resolve(plan, NOW_MS * 1_000_000)
    assert refused.value.field == option
    assert refused.value.remedy


def test_what_is_live_starts_now() -> None:
    for plan in (ReplayPlan(start="now"), ReplayPlan(rate_per_second=50.0)):
        assert (plan.pace, plan.live) == (1.0, True)
        assert resolve(plan, NOW_MS * 1_000_000 + 999_999).start_ns == NOW_MS * 1_000_000
    for plan in (ReplayPlan(), ReplayPlan(start=NOW_MS), ReplayPlan(rate_per_second=50.0, speed_up=float("inf"))):
        assert not plan.live
    assert (ReplayPlan().pace, ReplayPlan(speed_up=3.0).pace) == (60.0, 3.0)


def test_an_instant_is_placed_where_the_start_is_given() -> None:
    plan = ReplayPlan(
        start=NOW_MS - HOUR_MS, drifts=(Drift("prompt_entropy", Position(instant_ms=NOW_MS - HOUR_MS + 5_000)),)
    )
    assert [at_ns for _, at_ns in resolve(plan, NOW_MS * 1_000_000).drifts] == [5_000_000_000]


def test_the_late_share_is_of_all_requests() -> None:
    resolved = resolve(ReplayPlan(shares=LATE), NOW_MS * 1_000_000)
    lasts = resolved.source.last_ns / 1e9
    assert resolved.late_share == pytest.approx(0.01 * lasts / (lasts - 900))
    assert resolve(replace(resolved.plan, shares=FaultShares()), NOW_MS * 1_000_000).late_share == 0.0
