"""Dynamic threshold: the P90 of the last 24 hours, updated hourly, moved by at most 5 % an hour (spec D8).

By construction a tenth of quiet hours lie above it: it is a gate in front of an alarm threshold, never the alarm.

The move is relative, so a threshold at 0 would stay there: moves are taken relative to at least `floor`. After a gap of
g hours the threshold may have moved by g steps, as if it had been updated all the while. Hours without a figure are
not there: neither zero nor a repeat of the last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class DynamicThresholdPolicy:
    """Source: spec D8 (P90 of 24 h, 5 % an hour).

    Ours: `min_hours`, the figures below which there is no threshold (of fewer than 10 a P90 is just the largest);
    `floor`, in the unit of the figures.
    """

    quantile: float = 0.9
    hours: int = 24
    most_move_per_hour: float = 0.05
    min_hours: int = 12
    floor: float = 0.001


@dataclass(frozen=True, slots=True)
class DynamicThreshold:
    """The figures of the last hours, oldest first, as [hour, figure], and the threshold after `last_hour`.

    Hours are whole hours since 1970. At most `hours` figures, so the state is bounded. `threshold` is None until
    there are enough.
    """

    figures: tuple[tuple[int, float], ...] = ()
    threshold: float | None = None
    last_hour: int | None = None

    def after(self, hour: int, figure: float | None, policy: DynamicThresholdPolicy) -> "DynamicThreshold":
        """Return the threshold after an hour's figure, None where the hour has none. Hours must ascend (ValueError).

        O(hours).

        >>> quiet = DynamicThreshold()
        >>> for hour in range(24):
        ...     quiet = quiet.after(hour, 0.2 + 0.01 * (hour % 3), DynamicThresholdPolicy())
        >>> quiet.threshold
        0.22
        >>> round(quiet.after(24, 9.0, DynamicThresholdPolicy()).after(25, 9.0, DynamicThresholdPolicy()).threshold, 6)
        0.22
        """
        if self.last_hour is not None and hour <= self.last_hour:
            raise ValueError(f"hour {hour} is not after hour {self.last_hour}")
        added = self.figures if figure is None else (*self.figures, (hour, figure))
        figures = tuple(entry for entry in added if entry[0] > hour - policy.hours)
        if len(figures) < policy.min_hours:
            return DynamicThreshold(figures, self.threshold, hour)
        wanted = linear_quantile([found for _, found in figures], policy.quantile)
        if self.threshold is None or self.last_hour is None:
            return DynamicThreshold(figures, wanted, hour)
        return DynamicThreshold(figures, _moved(self.threshold, wanted, hour - self.last_hour, policy), hour)

    def quantile(self, q: float) -> float | None:
        """Return a quantile of the last hours' figures (numpy's linear); None where there are none."""
        return linear_quantile([found for _, found in self.figures], q) if self.figures else None


def linear_quantile(figures: Sequence[float], q: float) -> float:
    """Return numpy's default quantile of at least one figure; of some tens of them 30 times faster. O(n log n).

    >>> linear_quantile([4.0, 1.0, 3.0, 2.0], 0.5)
    2.5
    """
    ordered = sorted(figures)
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _moved(threshold: float, wanted: float, hours: int, policy: DynamicThresholdPolicy) -> float:
    step = policy.most_move_per_hour
    # (1 + step)^hours overflows after some 14,000 hours; long before, the bound is no bound.
    up = max(threshold, policy.floor) * (1 + step) ** min(hours, 1000)
    down = threshold * (1 - step) ** hours if threshold > policy.floor else 0.0
    return min(max(wanted, down), up)
