"""What a user allows: `1 per 30d`, `2 per 7d`, `1 per 1000 windows`; and the onset rate a single test gets of it."""

import math
import re
from dataclasses import dataclass

SECONDS_OF_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TEXT = re.compile(r"(?P<alarms>\d+(?:\.\d+)?)\s+per\s+(?P<period>\d+(?:\.\d+)?)\s*(?P<unit>s|m|h|d|w|windows?)")


@dataclass(frozen=True)
class FalseAlarmBudget:
    """At most `alarms` false alarms, on average, in `seconds` or in `windows`; exactly one of the two is given.

    Whatever shares it, shares it evenly (`jobs.monitor_budget` says what does): the expected number of alarms of
    several tests is the sum of theirs, however the tests depend on each other.
    """

    alarms: float
    seconds: float | None = None
    windows: float | None = None

    def __post_init__(self) -> None:
        figures = [self.alarms, *(figure for figure in (self.seconds, self.windows) if figure is not None)]
        if len(figures) != 2 or not all(math.isfinite(figure) and figure > 0 for figure in figures):
            raise ValueError("a false-alarm budget is a positive number of alarms in one positive period")

    @classmethod
    def parse(cls, text: str) -> "FalseAlarmBudget":
        """Read a budget as a monitor's YAML has it. Raises ValueError, which says what it must look like.

        Units are s, m, h, d, w (60 s, 3,600 s, 86,400 s, 604,800 s; minutes, not months) and windows.

        >>> FalseAlarmBudget.parse("1 per 30d")
        FalseAlarmBudget(alarms=1.0, seconds=2592000.0, windows=None)
        >>> FalseAlarmBudget.parse("1 per 1000 windows").windows
        1000.0
        """
        found = _TEXT.fullmatch(text.strip())
        if not found or not float(found["alarms"]) or not float(found["period"]):
            wanted = "a count and a period, such as '1 per 30d', '2 per 7d' or '1 per 1000 windows'"
            raise ValueError(f"{text!r} is no false-alarm budget: it must be {wanted}")
        alarms, period, unit = float(found["alarms"]), float(found["period"]), found["unit"]
        if unit.startswith("window"):
            return cls(alarms, windows=period)
        return cls(alarms, seconds=period * SECONDS_OF_UNIT[unit])

    def onset_rate(self, *, slide_seconds: float, tests: int = 1) -> float:
        """Return the onsets a window that one of `tests` tests may have, where a window ends every `slide_seconds`.

        Raises ValueError unless both are positive.

        >>> FalseAlarmBudget.parse("1 per 30d").onset_rate(slide_seconds=30, tests=6) == 1 / (30 * 86_400 / 30) / 6
        True
        """
        if not slide_seconds > 0 or tests < 1:
            raise ValueError(f"a slide must be positive and tests at least 1, not {slide_seconds} s and {tests}")
        windows = self.seconds / slide_seconds if self.seconds is not None else self.windows
        assert windows is not None  # one of the two is given
        return self.alarms / windows / tests
