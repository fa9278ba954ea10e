"""The figure of one SLO: its budget over time, and its burn rates against their factors."""

import math
from datetime import UTC, datetime
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from infra.service_levels.standings import SloHistory, Standing
from schemas.status import Status

BUDGET, SPENT = "budget left", "spent"
_COLOURS = ("#c0392b", "#e67e22", "#2a9d8f", "#7d3c98", "#1f4e79")


def draw_slo(history: SloHistory) -> Figure:
    """Return the figure: the share of the budget that is left; below, the burn rate of each long window.

    A line breaks where there is no figure. The dashed lines are the factors at which rules fire; bars below mark when
    they did.
    """
    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    budget, burn = figure.subplots(2, 1, sharex=True)
    standings = history.standings
    title = f"{history.label}: {history.period}, target {standings[-1].target:g}"
    budget.set_title(title, loc="left", fontsize="medium", parse_math=False)
    _draw_budget(budget, standings)
    _draw_burns(burn, standings)
    for axes in (budget, burn):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]  # matplotlib has no types for dates
    burn.xaxis.set_major_locator(locator)
    burn.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]  # as above
    burn.set_xlabel("event time, UTC")
    return figure


def _draw_budget(axes: Axes, standings: list[Standing]) -> None:
    times = [_utc(standing.at_ms) for standing in standings]
    left = [math.nan if standing.remaining is None else 100.0 * standing.remaining for standing in standings]
    axes.plot(times, left, label=BUDGET, color="#1f4e79", linewidth=1.4)
    axes.axhline(0.0, color="#c0392b", linestyle="--", linewidth=1.0, label=SPENT)
    axes.set_ylabel("% of the error budget")
    unknown = sorted({standing.status for standing in standings if standing.status != Status.OK})
    for number, status in enumerate(unknown):
        at = [time for time, standing in zip(times, standings, strict=True) if standing.status == status]
        axes.plot(at, [0.0] * len(at), label=status, color=_COLOURS[-1 - number], linestyle="none", marker="|")


def _draw_burns(axes: Axes, standings: list[Standing]) -> None:
    rules = list(dict.fromkeys(burn.rule for standing in standings for burn in standing.burns))
    for number, rule in enumerate(rules):
        rows = [(standing.at_ms, burn) for standing in standings for burn in standing.burns if burn.rule == rule]
        times = [_utc(at_ms) for at_ms, _ in rows]
        colour = _COLOURS[number % len(_COLOURS)]
        rates = [math.nan if burn.long is None else burn.long for _, burn in rows]
        last = rows[-1][1]
        axes.plot(times, rates, label=f"{rule} ({last.severity} at {last.factor:g})", color=colour, linewidth=1.2)
        axes.axhline(last.factor, color=colour, linestyle="--", linewidth=0.8)
        firing = [rate if burn.firing else math.nan for rate, (_, burn) in zip(rates, rows, strict=True)]
        axes.plot(times, firing, color=colour, linestyle="none", marker="o", markersize=4)
    axes.set_ylabel("burn rate of the long window")
    if not rules:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no burn rate alerts", ha="center", va="center", transform=axes.transAxes)


def _utc(epoch_ms: int) -> Any:
    """An instant on the axis of time; matplotlib takes datetimes, its types only numbers."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)
