"""A replay in words: what it is going to do, and what it did."""

from infra.replay.report import ReplayReport
from infra.replay.resolved import ResolvedReplay
from schemas.times import rfc3339


def plan_lines(resolved: ResolvedReplay) -> list[str]:
    """Return what a resolved replay is going to do, a fact a line."""
    plan, source = resolved.plan, resolved.source
    begin_ms, lasts = resolved.start_ns // 1_000_000, source.last_ns / 1e9
    pace = "as fast as Kafka takes it" if plan.pace == float("inf") else f"{plan.pace:g} times its own speed"
    density = f"{source.rate_per_second:g} a second" if source.rate_per_second else f"as in {plan.trace.name}"
    lines = [
        f"requests      {source.count:,}, arriving {density}, seed {plan.seed}",
        f"event time    from {rfc3339(begin_ms)}, {lasts:,.0f} s long",
        f"sent          {pace}: about {lasts / plan.pace:,.0f} s, to {plan.topic} as {plan.encoding}",
    ]
    for drift, at_ns in resolved.drifts:
        how = f"x {drift.amount:g}" if drift.kind == "scale" else f"{drift.amount:+g}"
        lines.append(f"drift         {drift.feature} {how} from {rfc3339(begin_ms + at_ns // 1_000_000)}")
    for slow, at_ns in resolved.slowdowns:
        until = "to the end" if slow.duration_seconds is None else f"for {slow.duration_seconds:g} s"
        lines.append(f"slow          x {slow.factor:g} from {rfc3339(begin_ms + at_ns // 1_000_000)} {until}")
    for arms, at_ns in resolved.arms:
        shown = ", ".join(f"{name} {share:.1%}" for name, share in arms.shares)
        lines.append(f"arms          {shown} of {plan.users:,} users from {rfc3339(begin_ms + at_ns // 1_000_000)}")
    for version, at_ns in resolved.versions:
        lines.append(f"version       {version.version} from {rfc3339(begin_ms + at_ns // 1_000_000)}")
    if plan.text:
        lines.append(f"text          made up, {plan.personal_share:.0%} of prompts with made-up personal data")
    if plan.metrics:
        lines.append(f"metrics       scraped every {plan.scrape_seconds:g} s of event time, to {plan.metrics_topic}")
    shares = plan.shares
    lines.append(
        f"faults        {shares.duplicates:.2%} duplicates, {shares.malformed:.2%} malformed, {shares.late:.2%} late, "
        f"{shares.skew:.2%} skewed"
    )
    return lines


def report_lines(report: ReplayReport) -> list[str]:
    """Return what a replay did, a fact a line."""
    faults = [
        f"{counts.requests:,} {kind}" for kind, counts in report.sent.items() if kind.is_fault and counts.requests
    ]
    books = ", ".join(f"{count:,} {kind}" for kind, count in report.expected_books().items())
    seconds = max(report.seconds, 1e-9)
    lines = [
        f"requests      {report.requests:,} in {report.seconds:,.1f} s ({report.requests / seconds:,.0f} a second)",
        f"messages      {report.messages:,} sent, {report.acknowledged:,} acknowledged, "
        f"{sum(report.delivery_errors.values()):,} failed",
        f"faults        {', '.join(faults) or 'none'}",
        f"ingest books  {books}",
    ]
    if report.metric_messages:
        lines.append(f"metrics       {report.metric_points:,} points in {report.metric_messages:,} messages")
    if report.first_event_ms is not None and report.last_event_ms is not None:
        lines.insert(1, f"event time    {rfc3339(report.first_event_ms)} to {rfc3339(report.last_event_ms)}")
    for drift in report.drifts:
        sent = "never sent" if drift.sent_ms is None else f"sent at {rfc3339(drift.sent_ms)}"
        lines.append(
            f"drift         {drift.feature} from event time {rfc3339(drift.event_time_ms)}, {sent}, "
            f"{drift.requests:,} requests"
        )
    lines += [f"failed        {count:,} messages: {error}" for error, count in report.delivery_errors.items()]
    if report.most_behind_seconds > 1:
        lines.append(f"behind        up to {report.most_behind_seconds:.1f} s: Kafka or this machine was too slow")
    if report.interrupted:
        lines.append("interrupted   the rest was not sent")
    return lines
