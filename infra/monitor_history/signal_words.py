"""What a signal will do, in a sentence."""

from udfs.signals.follow import Follower
from udfs.signals.seasonal_threshold import SeasonalThreshold


def signal_in_words(follower: Follower) -> str:
    """Return when a dynamic threshold speaks first and what it takes for a breach; of other signals where to read.

    >>> from udfs.signals.seasonal_threshold import SeasonalPolicy
    >>> print(signal_in_words(SeasonalThreshold("chat", "mean(queue_seconds)", SeasonalPolicy())))
    breach: 4 spreads above, until within 2.5; first after 1 period of 168 h and 60 windows; frozen for 24 h at most
    """
    if not isinstance(follower, SeasonalThreshold):
        return "see docs/signals.md"
    policy, band = follower.policy, follower.policy.band
    side = "above or below" if policy.wrong_side == "both" else policy.wrong_side
    season = ""
    if band.period_seconds is not None:
        periods = f"{band.min_periods} period{'s' if band.min_periods > 1 else ''}"
        season = f"{periods} of {band.period_seconds / 3600:g} h and "
    return (
        f"breach: {policy.enter_spreads:g} spreads {side}, until within {policy.leave_spreads:g}; "
        f"first after {season}{band.min_windows} windows; frozen for {policy.relearn_after_seconds / 3600:g} h at most"
    )
