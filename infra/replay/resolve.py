"""From a plan to a replay that can be sent; what can't be is refused here, before anything is sent."""

import time
from dataclasses import replace
from typing import TypeVar

from infra.replay.arrivals import ArrivalSource, arrival_source
from infra.replay.faults import SKEW_NS
from infra.replay.labels import Arms, ModelVersion
from infra.replay.plan import SECOND_NS, ReplayPlan
from infra.replay.position import Position
from infra.replay.resolved import ResolvedReplay
from infra.replay.served import last_end_ns
from infra.replay.service_model import load_constants
from infra.replay.trace import read_trace
from jobs.kafka_client import ConfigurationError
from schemas.times import rfc3339

Label = TypeVar("Label", Arms, ModelVersion)

# Ingest takes an event up to 5 minutes ahead of Kafka's timestamp; the rest of them is for clocks that differ.
MAX_AHEAD_SECONDS = 270


def refuse(option: str, problem: str, remedy: str) -> ConfigurationError:
    """Return the error of an option that can't be followed."""
    return ConfigurationError("command line", option, problem, remedy)


def read_source(plan: ReplayPlan) -> tuple[ArrivalSource, float]:
    """Return the requests that `plan` names, and how much denser they come than in the trace."""
    whole = read_trace(plan.trace)
    try:
        low, high = (place.offset_ns(whole.duration_ns + 1) for place in (plan.part_from, plan.part_until))
    except ValueError:
        raise refuse("--from, --until", "is an instant", "Give a share (50%) or a time after the begin (30m)") from None
    part = whole.part(low, high)
    if len(part) == 0:
        problem = f"no request of {plan.trace.name} lies between them"
        raise refuse("--from, --until", problem, f"The trace lasts {whole.duration_ns / 1e9:.0f} s")
    duration_ns = None if plan.duration_seconds is None else round(plan.duration_seconds * SECOND_NS)
    source = arrival_source(part, plan.limit, duration_ns, plan.rate_per_second)
    if source.count < 1:
        raise refuse("--limit, --duration", "leaves no request", "Make it larger")
    own_rate = len(whole) / max(whole.duration_ns / 1e9, 1e-9)
    return source, (plan.rate_per_second or own_rate) / own_rate


def resolve(plan: ReplayPlan, now_ns: int | None = None) -> ResolvedReplay:
    """Read the trace, place every time, and check the whole. Raises ConfigurationError naming option and remedy.

    Without a start it costs one run of the service model more (8 microseconds a request), to know when the last ends.
    """
    now_ns = time.time_ns() if now_ns is None else now_ns
    _check_numbers(plan)
    source, rate_ratio = read_source(plan)
    constants = load_constants(plan.service_model)
    begin = _known_start_ns(plan, now_ns)
    drifts = tuple((drift, _place(drift.at, source, begin, "--drift")) for drift in plan.drifts)
    slowdowns = tuple((slow, _place(slow.at, source, begin, "--latency")) for slow in plan.slowdowns)
    draft = ResolvedReplay(
        plan=plan,
        source=source,
        constants=constants,
        rate_ratio=rate_ratio,
        start_ns=begin or 0,
        last_end_ns=None,
        drifts=drifts,
        slowdowns=slowdowns,
        arms=_in_order([(arms, _place(arms.at, source, begin, "--arms")) for arms in plan.arms], "--arms"),
        versions=_in_order(
            [(version, _place(version.at, source, begin, "--model-version")) for version in plan.versions],
            "--model-version",
        ),
    )
    if begin is None:
        end_ns = last_end_ns(draft)
        draft = replace(draft, start_ns=_whole_ms(now_ns - end_ns), last_end_ns=end_ns)
    _check_faults(draft)
    _check_clock(draft, now_ns)
    return draft


def _known_start_ns(plan: ReplayPlan, now_ns: int) -> int | None:
    if plan.live:
        return _whole_ms(now_ns)
    return plan.start * 1_000_000 if isinstance(plan.start, int) else None


def _in_order(placed: list[tuple[Label, int]], option: str) -> tuple[tuple[Label, int], ...]:
    """Return labels by their begin; two that begin at once can't both hold."""
    if len({place for _, place in placed}) < len(placed):
        raise refuse(option, "is given twice for the same time", "Give each a time of its own, as @50%")
    return tuple(sorted(placed, key=lambda pair: pair[1]))


def _whole_ms(ns: int) -> int:
    return ns // 1_000_000 * 1_000_000


def _place(at: Position, source: ArrivalSource, start_ns: int | None, option: str) -> int:
    try:
        place = at.offset_ns(source.last_ns, None if start_ns is None else start_ns // 1_000_000)
    except ValueError:
        raise refuse(
            option, "is an instant, but the start is not known", "Give --start, or a time like 50% or 30m"
        ) from None
    if not 0 <= place <= source.last_ns:
        problem = f"lies outside the replay, which lasts {source.last_ns / 1e9:.0f} s of event time"
        raise refuse(option, problem, "Give a time within it, as 50%")
    return place


def _check_numbers(plan: ReplayPlan) -> None:
    positive = {
        "--speed-up": plan.pace,
        "--rate": plan.rate_per_second,
        "--limit": plan.limit,
        "--duration": plan.duration_seconds,
        "--batch": plan.batch_spans,
        "--flush": plan.flush_seconds,
        "--late-by": plan.late_by_seconds,
        "--users": plan.users,
    }
    for option, number in positive.items():
        if number is not None and not number > 0:
            raise refuse(option, f"{number} is not above 0", "Give a positive number")
    if plan.encoding not in ("otlp_proto", "otlp_json"):
        raise refuse("--encoding", f"{plan.encoding!r} is not known", "Use otlp_proto or otlp_json")


def _check_faults(resolved: ResolvedReplay) -> None:
    plan, lasts = resolved.plan, resolved.source.last_ns / 1e9
    if plan.shares.late and plan.late_by_seconds >= lasts:
        problem = (
            f"a late request is sent {plan.late_by_seconds:.0f} s after its end, but the replay lasts {lasts:.0f} s"
        )
        raise refuse("--late", problem, "Replay more, or give a smaller --late-by")
    total = plan.shares.total - plan.shares.late + resolved.late_share
    if total > 1:
        raise refuse("--duplicates, --malformed, --late, --skew", f"come to {total:.0%} of requests", "Ask for less")


def _check_clock(resolved: ResolvedReplay, now_ns: int) -> None:
    """Refuse event times ahead of the time of sending, and skewed ones that would not be ahead."""
    plan, lasts_ns = resolved.plan, resolved.source.last_ns
    sending_ns = lasts_ns / plan.pace
    if resolved.start_ns + lasts_ns > now_ns + sending_ns:
        ahead = (resolved.start_ns + lasts_ns - now_ns - sending_ns) / 1e9
        raise refuse("--start", f"events would lie up to {ahead:.0f} s in the future", "Start earlier, or --speed-up 1")
    if plan.shares.skew and resolved.start_ns + SKEW_NS < now_ns + sending_ns + 300 * SECOND_NS:
        problem = (
            f"an event of {rfc3339(resolved.start_ns // 1_000_000)} moved by a day would still not be ahead of now"
        )
        raise refuse("--skew", problem, "Start within the last day")
    if plan.flush_seconds is not None:
        ahead = (
            plan.flush_seconds + (resolved.start_ns + (resolved.last_end_ns or lasts_ns) - now_ns - sending_ns) / 1e9
        )
        if ahead > MAX_AHEAD_SECONDS:
            problem = f"would lie {ahead:.0f} s ahead of now, and ingest takes at most 300 s"
            raise refuse(
                "--flush", problem, f"Give at most {max(0, plan.flush_seconds - ahead + MAX_AHEAD_SECONDS):.0f} s"
            )
