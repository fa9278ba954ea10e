"""What a verdict's evidence says of the false-alarm budget that chose its threshold (spec D2)."""

from typing import Any

from udfs.budget.binned import BinnedThreshold
from udfs.budget.threshold import Threshold


def promised(threshold: Threshold | BinnedThreshold) -> dict[str, Any]:
    """Say what a budget's threshold promises: onsets a window, and why not where the promise can't be kept.

    `false_alarms_per_window` is what the joint confidence (spec D5) reads.
    """
    kept = {"kept": threshold.kept} if threshold.kept else {"kept": False, "reason": threshold.reason}
    budget = {"per_window": threshold.budget_rate, **kept}
    return {"false_alarms_per_window": threshold.onset_rate, "false_alarm_budget": budget}
