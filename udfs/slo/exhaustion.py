"""When the error budget will be spent if bad events go on coming at the rate of now."""

MAX_PROJECTED_PERIODS = 100.0


def projected_exhaustion_ms(
    remaining: float | None, burn: float | None, *, period_ms: int, now_ms: int, ends_ms: int | None = None
) -> int | None:
    """Return the instant (epoch milliseconds) at which `remaining` of the budget is spent at the burn rate `burn`.

        now + remaining * period / burn

    A straight line: of a rolling period's budget what comes back as old events leave is not counted, so the true
    instant is later. `now_ms` where it is spent already. None where it is unknown, where nothing burns, where it lies
    behind the end of a calendar period (`ends_ms`), or beyond 100 periods.

    >>> projected_exhaustion_ms(0.5, 6.0, period_ms=30 * 86_400_000, now_ms=0) / 3_600_000
    60.0
    >>> projected_exhaustion_ms(0.5, 0.0, period_ms=30 * 86_400_000, now_ms=0) is None
    True
    """
    if remaining is None:
        return None
    if remaining <= 0.0:
        return now_ms
    if burn is None or burn <= 0.0 or remaining / burn > MAX_PROJECTED_PERIODS:
        return None
    at_ms = now_ms + round(remaining / burn * period_ms)
    return None if ends_ms is not None and at_ms >= ends_ms else at_ms
