"""The outcome of a simulation, small enough to ship: the level of the statistic for each of a ladder of onset rates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

RATES = tuple(float(f"{mantissa}e{exponent}") for exponent in range(-2, -10, -1) for mantissa in (1, 0.5, 0.2))
"""The ladder, onsets a window: 1e-2, 5e-3, 2e-3, 1e-3 ... 2e-10. Between, log rate is linear in the squared level."""


@dataclass(frozen=True)
class OnsetLevels:
    """Level and relative standard error of the rate, for each of `RATES`.

    `counted_to` is the rarest rate whose level was counted in the simulation; those of rarer rates are from the fitted
    tail, and None where none could be fitted. `windows` is how many windows were simulated. `reference_error` is the
    distance between the distribution function of a reference and the true one that 99 of 100 references keep.
    """

    levels: tuple[float | None, ...]
    relative_errors: tuple[float | None, ...]
    counted_to: float
    windows: int
    reference_error: float

    def level_of(self, rate: float) -> tuple[float, float] | None:
        """Return level and relative error for `rate`; None where it is above the ladder's first or its level unknown.

        Below the last of the ladder the last step is continued.
        """
        if not 0.0 < rate <= RATES[0]:
            return None
        after = min(next((i for i, r in enumerate(RATES) if r <= rate), len(RATES) - 1), len(RATES) - 1)
        after = max(after, 1)
        low, high = self.levels[after - 1], self.levels[after]
        low_error, high_error = self.relative_errors[after - 1], self.relative_errors[after]
        if low is None or high is None or low_error is None or high_error is None:
            return None
        share = math.log(RATES[after - 1] / rate) / math.log(RATES[after - 1] / RATES[after])
        level = math.sqrt(max(low**2 + share * (high**2 - low**2), 0.0))
        return level, low_error + share * (high_error - low_error)

    def rate_of(self, level: float) -> float:
        """Return the rate at a level: that of the ladder's first where it is lower, 0 above the ladder's last."""
        known = [(lv, rate) for lv, rate in zip(self.levels, RATES, strict=True) if lv is not None]
        if level <= known[0][0]:
            return known[0][1]
        if level > known[-1][0]:
            return 0.0
        squares, logs = [lv**2 for lv, _ in known], [math.log(rate) for _, rate in known]
        return float(math.exp(np.interp(level**2, squares, logs)))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON; levels with six digits, errors with three."""
        return {
            "levels": [None if level is None else _short(level) for level in self.levels],
            "relative_errors": [None if error is None else _short(error, 3) for error in self.relative_errors],
            "counted_to": self.counted_to,
            "windows": self.windows,
            "reference_error": _short(self.reference_error),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "OnsetLevels":
        """Read it back. Raises ValueError on anything else than `to_json` writes."""
        try:
            levels, errors = tuple(body["levels"]), tuple(body["relative_errors"])
            counted_to, windows = float(body["counted_to"]), int(body["windows"])
            reference_error = float(body["reference_error"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"no onset levels: {error!r}") from error
        known = [level for level in levels if level is not None]
        is_number = all(isinstance(figure, int | float) for figure in (*known, *(e for e in errors if e is not None)))
        if not is_number or len(levels) != len(RATES) or len(errors) != len(RATES) or known != sorted(known):
            raise ValueError("no onset levels: they must be a number or null for each rate, ascending")
        return cls(levels, errors, counted_to, windows, reference_error)


def _short(figure: float, digits: int = 6) -> float:
    return float(f"{figure:.{digits}g}")
