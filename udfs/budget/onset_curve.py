"""How often alarms begin, as a function of the threshold: the onset rate of every level at once.

With a threshold d, a window drifted when its statistic is above d, and an alarm begins at a drifted window before which
`quiet` windows had not drifted (`episodes.py`). So window t begins an alarm exactly for the levels from the largest of
the `quiet` statistics before it up to its own, and one pass over a simulation gives every level's rate.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OnsetCurve:
    """Of simulated streams: each window's statistic and the largest of the `quiet` before it, both of shape
    (streams, windows), and the `step` in which the statistic moves.

    Memory: 16 bytes a window.
    """

    statistics: Floats
    before: Floats
    step: float

    @classmethod
    def of(cls, statistics: Floats, *, quiet: int, step: float) -> "OnsetCurve":
        """Take the statistics of successive windows, shape (streams, windows).

        The first `quiet` of a stream only serve as the past. Raises ValueError where nothing is left.

        >>> curve = OnsetCurve.of(np.array([[0.0, 0.1, 0.5, 0.2, 0.6, 0.1]]), quiet=1, step=0.1)
        >>> curve.rate(0.45), curve.rate(0.55), curve.rate(0.15)  # onsets of 5 windows
        (0.4, 0.2, 0.2)
        """
        from scipy.ndimage import maximum_filter1d  # at first use: slow to import, and few need it

        n = statistics.shape[1]
        if n <= quiet:
            raise ValueError(f"streams of {n} windows are too short for {quiet} quiet windows before each")
        # The filter at i is the maximum over i - q // 2 ... i - q // 2 + q - 1.
        begin = quiet // 2
        before = maximum_filter1d(statistics, quiet, axis=1)[:, begin : begin + n - quiet]
        return cls(statistics[:, quiet:], before, step)

    @property
    def windows(self) -> int:
        """How many windows were looked at."""
        return self.statistics.size

    def rate(self, level: float) -> float:
        """Onsets a window at a threshold of `level`."""
        return float(np.count_nonzero((self.before <= level) & (level < self.statistics))) / self.windows

    def between_steps(self, levels: Floats) -> Floats:
        """Return the middles between two possible values of the statistic nearest to `levels`, each once, ascending.

        There no rounding decides whether a statistic is above a level, and the counts at the middles belong to a smooth
        curve.
        """
        middles: Floats = (np.unique(np.floor(levels / self.step)) + 0.5) * self.step
        return middles

    @cached_property
    def _ascending(self) -> tuple[Floats, Floats, Floats]:
        both = np.minimum(self.statistics, self.before)
        return np.sort(self.statistics, axis=None), np.sort(both, axis=None), np.sort(self.before, axis=None)

    def counts(self, levels: Floats) -> tuple[Counts, Counts]:
        """Return, for each level, the onsets, and the windows that could have been one: the past of which was quiet."""
        above, both, before = (each.size - np.searchsorted(each, levels, side="right") for each in self._ascending)
        return above - both, self.windows - before

    def group_counts(self, levels: Floats, groups: int) -> tuple[Counts, Counts]:
        """Return `counts` for each of some groups of streams, of shape (groups, levels)."""
        parts = [slice(group, None, groups) for group in range(min(groups, self.statistics.shape[0]))]
        found = [OnsetCurve(self.statistics[p], self.before[p], self.step).counts(levels) for p in parts]
        return np.array([onsets for onsets, _ in found]), np.array([quiet for _, quiet in found])

    def level_of(self, rate: float) -> float:
        """Return the smallest level from which on the onset rate is at most `rate`, between two steps.

        >>> OnsetCurve.of(np.array([[0.0, 0.1, 0.5, 0.2, 0.6, 0.1]]), quiet=1, step=0.1).level_of(0.2)
        0.55
        """
        levels = self.between_steps(np.unique(self._ascending[0]))
        onsets, _ = self.counts(levels)
        too_many = np.flatnonzero(onsets > rate * self.windows)
        return float(levels[too_many[-1] + 1] if too_many.size else levels[0])
