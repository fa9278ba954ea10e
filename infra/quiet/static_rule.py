"""The usual fixed thresholds: what most monitoring is set up with, on the same windows and figures as ours.

Per figure, on the side that is wrong: mean + 3 standard deviations (or - 3) over the windows of the tuning part that
lie in no incident, and the limits that are published for a service as such. A window beyond either alerts at once; the
alert is over after as many windows within them as ours.

Sources: the three-sigma rule of control charts (Shewhart, 1931; NIST/SEMATECH e-Handbook, section 6.3.1); a published
matrix of service levels with time to first token, P95 < 800 ms (spec S2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev
from typing import Literal

from schemas.status import Status
from schemas.verdicts import Verdict

SIGMAS = 3.0
PUBLISHED: Mapping[str, float] = {"p95(time_to_first_token_seconds)": 0.8}  # spec S2
WrongSide = Literal["above", "below", "both"]


@dataclass(frozen=True, slots=True)
class StaticRule:
    """A figure is wrong above `high` or below `low`; None where that side is not wrong."""

    low: float | None
    high: float | None

    @classmethod
    def of_figures(cls, figures: Sequence[float], side: WrongSide, published: float | None = None) -> "StaticRule":
        """Return the rule made of quiet figures, at least two; `published` is a limit above that holds as well.

        >>> StaticRule.of_figures([9.0, 10.0, 11.0], "above", published=12.5)
        StaticRule(low=None, high=12.5)
        """
        centre, reach = mean(figures), SIGMAS * stdev(figures)
        low = centre - reach if side != "above" else None
        high = centre + reach if side != "below" else None
        return cls(low, high if high is None or published is None else min(high, published))

    def judged(self, verdict: Verdict, figure: float | None) -> Verdict:
        """Return the verdict as this rule has it on the figure of its window; not judged where there is none."""
        name = f"static({verdict.feature})"
        if figure is None:
            unjudged = Status.NO_DATA if verdict.status == Status.OK else verdict.status
            return replace(verdict, feature=name, status=str(unjudged), statistic=None, threshold=None, drifted=None)
        is_low = self.low is not None and figure < self.low
        is_high = self.high is not None and figure > self.high
        edge = self.low if is_low or self.high is None else self.high
        return replace(verdict, feature=name, status="ok", statistic=figure, threshold=edge, drifted=is_low or is_high)


def static_rules(quiet: Iterable[tuple[str, float | None]], sides: Mapping[str, WrongSide]) -> dict[str, StaticRule]:
    """Return a rule for each figure of `sides`, of the (figure's name, figure) of quiet windows."""
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for name, figure in quiet:
        if figure is not None:
            figures[name].append(figure)
    return {name: StaticRule.of_figures(figures[name], side, PUBLISHED.get(name)) for name, side in sides.items()}
