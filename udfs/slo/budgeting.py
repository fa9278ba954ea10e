"""The three budgeting methods of OpenSLO: what becomes good and total of the events of a time slice.

- Occurrences: good and all events, as they are.
- Timeslices: a slice is good where its share of good events is at least `slice_target`; good and all slices.
- RatioTimeslices: the mean of the slices' shares; kept exact as billionths, so that sums stay mergeable.

A slice with fewer than `min_slice_events` events is not counted: without traffic nothing was good and nothing bad.
Source: OpenSLO v1, "budgetingMethod"; spec S3.
"""

from dataclasses import dataclass
from enum import StrEnum

BILLION = 1_000_000_000


class Method(StrEnum):
    """OpenSLO's names."""

    OCCURRENCES = "Occurrences"
    TIMESLICES = "Timeslices"
    RATIO_TIMESLICES = "RatioTimeslices"


@dataclass(frozen=True, slots=True)
class Budgeting:
    """A method and its numbers; `slice_ms` is a whole number of minutes and has no meaning for Occurrences."""

    method: Method = Method.OCCURRENCES
    slice_ms: int = 60_000
    slice_target: float = 1.0
    min_slice_events: int = 1

    @property
    def unit(self) -> int:
        """What one event, or one slice, counts for."""
        return BILLION if self.method is Method.RATIO_TIMESLICES else 1

    def of_slice(self, good: int, total: int, n_events: int | None = None) -> tuple[int, int]:
        """Return what a closed time slice of `good` among `total` events adds to the budget's counts. O(1).

        `n_events` is how many there really were where `total` is estimated from a sample. Counts that can't be (more
        good than all) come back as they are, to be refused where they are added.

        >>> Budgeting(Method.TIMESLICES, slice_target=0.9).of_slice(95, 100)
        (1, 1)
        >>> Budgeting(Method.RATIO_TIMESLICES).of_slice(95, 100)
        (950000000, 1000000000)
        """
        if self.method is Method.OCCURRENCES or not 0 <= good <= total:
            return good, total
        if (total if n_events is None else n_events) < max(1, self.min_slice_events):
            return 0, 0
        if self.method is Method.TIMESLICES:
            return int(good >= self.slice_target * total), 1
        return (good * BILLION + total // 2) // total, BILLION
