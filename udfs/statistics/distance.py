"""What a distance without a p-value returns: the figure, how far it may be off, and the counts beside it."""

import math
from dataclasses import dataclass

from schemas.status import Status


@dataclass(frozen=True, slots=True)
class Distance:
    """A distance between a reference and a window, in the unit of their values.

    Where `status` is `ok`, the true distance between both samples is within `error` of `value`, and both are finite;
    otherwise they are None. `n_reference` and `n_window` count the values that took part, nulls and NaN are counted
    apart; `n_infinite` says how many values of either side are infinite, with which the distance would be too
    (status `invalid`).
    """

    value: float | None
    error: float | None
    n_reference: int
    n_window: int
    n_reference_null: int
    n_window_null: int
    n_infinite: int
    status: Status

    def __post_init__(self) -> None:
        figures = (self.value, self.error)
        if self.status is Status.OK:
            if not all(figure is not None and math.isfinite(figure) for figure in figures):
                raise ValueError(f"a distance with status ok must be finite, not {figures}")
        elif figures != (None, None):
            raise ValueError(f"a distance with status {self.status} must have no figures, not {figures}")
