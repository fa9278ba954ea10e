"""What a verdict's evidence says of the false-alarm budget that chose its threshold (spec D2)."""

from collections.abc import Sequence
from typing import Any

from udfs.budget.binned import BinnedThreshold
from udfs.budget.threshold import Threshold
from udfs.slicing.series_cap import OTHER_LABEL

POOLED = "it pools the series beyond the cap, which the budget wasn't divided among"


def promised(threshold: Threshold | BinnedThreshold, labels: Sequence[str]) -> dict[str, Any]:
    """Say what a budget's threshold promises: onsets a window, and why not where the promise can't be kept.

    `labels` are those of the series; the pooled one (`udfs.slicing.series_cap`) is promised nothing.
    `false_alarms_per_window` is what the joint confidence (spec D5) reads.
    """
    is_pooled = bool(labels) and set(labels) == {OTHER_LABEL}
    reason = POOLED if is_pooled else threshold.reason
    kept = {"kept": False, "reason": reason} if reason else {"kept": True}
    budget = {"per_window": threshold.budget_rate, **kept}
    return {"false_alarms_per_window": threshold.onset_rate, "false_alarm_budget": budget}
