"""Where a figure is expected to lie now: its season, its trend, its own recent level, and a robust spread (spec A2).

Time is cut into slots of `slot_seconds`; `period_seconds` of them make a period, an hour of the week by default. With
t the middle of a window, m_b the median figure of past slot b and s(b) its place in the period:

    trend    = median over slots one period apart of (m_b - m_b') / period           [no period: Theil-Sen over slots]
    season   = median over past slots in this place of (m_b + trend (t - t_b)), between two middles a straight line
    residual = figure - season at that time                                          [no period: the figure itself]
    level    = median of the last `residual_windows` residuals                       [no period: moved on by the trend]
    expected = season + level
    spread   = 1.4826 median |residual - level|, or (P90 - P50) / 1.2816 above and (P50 - P10) / 1.2816 below,
               and at least `min_spread` and `min_relative_spread` of the expected figure

1.4826 and 1.2816 make either the standard deviation of normal residuals. A median has a breakdown point of a half: what
less than half of the windows or of the past periods did moves none of these far.

Figures that breach the band are not learnt (`udfs.signals.seasonal_threshold`), but kept aside, so that a change that
lasts can be learnt at once when it is time.

Sources: Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., 2021, chapter 3 (season, trend and
remainder); Sen, J. American Statistical Association 63, 1968 (slope); Rousseeuw & Croux, J. American Statistical
Association 88, 1993 (median absolute deviation).
"""

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Spread = Literal["mad", "quantile"]

MAD_TO_SD = float(1.0 / ndtri(0.75))
P90_TO_SD = float(ndtri(0.9))
MOST_SLOTS = 2016  # of a period: five minutes of a week
MOST_OPEN = 128  # figures of the slot that is still open; more are not needed for a median
FEWEST_SLOTS_FOR_TREND = 6


@dataclass(frozen=True, slots=True)
class BandPolicy:
    """How a band is learnt. All ours; docs/signals.md says why.

    All figures are on the scale that the threshold gives. `period_seconds` None means no season. `periods` are how many
    past periods are kept, `min_periods` how many a place in the period must have had. `residual_windows` is the memory
    of level and spread; below `min_windows` of them there is no band. After `max_gap_seconds` without a figure they
    start anew; the season stays.
    """

    period_seconds: float | None = 7 * 86_400.0
    slot_seconds: float = 3600.0
    periods: int = 3
    min_periods: int = 1
    residual_windows: int = 288
    min_windows: int = 60
    spread: Spread = "mad"
    min_spread: float = 0.0
    min_relative_spread: float = 0.01
    max_gap_seconds: float = 86_400.0

    def __post_init__(self) -> None:
        if not self.slot_seconds > 0 or not self.max_gap_seconds > 0:
            raise ValueError("slot_seconds and max_gap_seconds must be above 0")
        if self.period_seconds is not None and not 2 <= self.slots <= MOST_SLOTS:
            raise ValueError(f"a period must be of 2 to {MOST_SLOTS} slots, not {self.slots}")
        if self.period_seconds is not None and self.slots * self.slot_seconds != self.period_seconds:
            raise ValueError("period_seconds must be a whole number of slot_seconds")
        if not 1 <= self.min_periods <= self.periods:
            raise ValueError("min_periods must be from 1 to periods")
        if not 2 <= self.min_windows <= self.residual_windows:
            raise ValueError("min_windows must be from 2 to residual_windows")
        if not (0 <= self.min_spread < math.inf and 0 <= self.min_relative_spread < 1):
            raise ValueError("min_spread must be at least 0, and min_relative_spread from 0, below 1")

    @property
    def slots(self) -> int:
        """Slots in a period; 1 without one."""
        return 1 if self.period_seconds is None else round(self.period_seconds / self.slot_seconds)

    @property
    def slots_kept(self) -> int:
        """How many past slots are kept: whole periods, or two days of hours to tell the trend by."""
        return 48 if self.period_seconds is None else self.periods * self.slots


def _no_floats() -> Floats:
    return np.empty(0)


def _no_ints() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BandState:
    """What is known of one series; bounded by the policy, whatever comes.

    `slot_numbers` (int64, ascending, slots since 1970) and `slot_medians` are the past slots, `slope` their trend in
    the figure's unit a second. `residuals` with their times (`residual_ms`, ascending) are the quiet windows,
    `aside` with `aside_ms` the breaching ones since the breach began. `open_figures` are those of slot `open_slot`.
    """

    slot_numbers: Ints = field(default_factory=_no_ints)
    slot_medians: Floats = field(default_factory=_no_floats)
    slope: float = 0.0
    residual_ms: Ints = field(default_factory=_no_ints)
    residuals: Floats = field(default_factory=_no_floats)
    aside_ms: Ints = field(default_factory=_no_ints)
    aside: Floats = field(default_factory=_no_floats)
    open_slot: int | None = None
    open_figures: Floats = field(default_factory=_no_floats)


@dataclass(frozen=True, slots=True)
class Band:
    """What is expected of a figure at one instant. All finite; `upper_spread` and `lower_spread` are above 0 or 0."""

    expected: float
    season: float
    level: float
    upper_spread: float
    lower_spread: float

    def z(self, figure: float) -> float:
        """How many spreads above (or, below 0, under) the expected figure; finite."""
        gone = figure - self.expected
        spread = self.upper_spread if gone > 0 else self.lower_spread
        if not gone:
            return 0.0
        return math.copysign(min(_LARGEST_Z, abs(gone) / spread if spread > 0 else math.inf), gone)


_LARGEST_Z = 1e6


def season_at(state: BandState, at_ms: int, policy: BandPolicy) -> float | None:
    """Return the seasonal figure at an instant; 0 without a period, None where this place in it is not known yet."""
    if policy.period_seconds is None:
        return 0.0
    slot_ms = policy.slot_seconds * 1000
    here = at_ms / slot_ms
    number = math.floor(here)
    own = _of_place(state, number, at_ms, policy)
    if own is None:
        return None
    towards = number + (1 if here - number >= 0.5 else -1)
    beside = _of_place(state, towards, at_ms, policy)
    share = abs(here - number - 0.5)
    return own if beside is None else own + share * (beside - own)


def band_at(state: BandState, at_ms: int, policy: BandPolicy) -> Band | None:
    """Return the band at an instant (epoch milliseconds), None while there is too little to tell. O(windows kept).

    >>> policy = BandPolicy(period_seconds=None, min_windows=3, residual_windows=5)
    >>> state = BandState()
    >>> for minute, figure in enumerate([9.0, 10.0, 11.0]):
    ...     state = learnt(state, minute * 60_000, figure, policy)
    >>> band_at(state, 180_000, policy).expected, round(band_at(state, 180_000, policy).upper_spread, 4)
    (10.0, 1.4826)
    """
    season = season_at(state, at_ms, policy)
    if season is None or state.residuals.size < policy.min_windows:
        return None
    residuals = _moved_on(state, at_ms, policy)
    level = float(np.median(residuals))
    expected = season + level
    lower, upper = _spreads(residuals, level, policy.spread)
    least = max(policy.min_spread, policy.min_relative_spread * abs(expected))
    found = (expected, season, level, max(upper, least), max(lower, least))
    return Band(*found) if all(map(math.isfinite, found)) else None


def learnt(state: BandState, at_ms: int, figure: float, policy: BandPolicy) -> BandState:
    """Return the state after a quiet figure; later instants only. O(kept), more where a slot closes."""
    after = _into_slot(state, at_ms, figure, policy)
    season = season_at(after, at_ms, policy)
    if season is None:
        return after
    kept = policy.residual_windows
    return replace(
        after,
        residual_ms=np.append(after.residual_ms, at_ms)[-kept:],
        residuals=np.append(after.residuals, figure - season)[-kept:],
        aside_ms=_no_ints(),
        aside=_no_floats(),
    )


def set_aside(state: BandState, at_ms: int, figure: float, policy: BandPolicy) -> BandState:
    """Return the state after a breaching figure: level, spread, season and trend stay as they are. O(kept)."""
    season = season_at(state, at_ms, policy)
    if season is None:
        return state
    kept = policy.residual_windows
    return replace(
        state,
        aside_ms=np.append(state.aside_ms, at_ms)[-kept:],
        aside=np.append(state.aside, figure - season)[-kept:],
    )


def relearnt(state: BandState) -> BandState:
    """Return the state in which what was set aside is the level and the spread. The season stays."""
    return replace(state, residual_ms=state.aside_ms, residuals=state.aside, aside_ms=_no_ints(), aside=_no_floats())


def without_stale(state: BandState, at_ms: int, policy: BandPolicy) -> BandState:
    """Return the state as it serves an instant: level and spread from before a long gap say nothing of now."""
    newest = max((int(times[-1]) for times in (state.residual_ms, state.aside_ms) if times.size), default=at_ms)
    if at_ms - newest <= policy.max_gap_seconds * 1000:
        return state
    return replace(state, residual_ms=_no_ints(), residuals=_no_floats(), aside_ms=_no_ints(), aside=_no_floats())


def _of_place(state: BandState, number: int, at_ms: int, policy: BandPolicy) -> float | None:
    """The median of the past slots in this place of the period, each moved on by the trend."""
    chosen = (state.slot_numbers - number) % policy.slots == 0
    numbers = state.slot_numbers[chosen]
    if numbers.size < policy.min_periods:
        return None
    # Moved by whole periods, so that neighbours differ by the season alone.
    periods_on = round(float(number - numbers[-1]) / policy.slots)
    ages_seconds = (numbers[-1] - numbers + periods_on * policy.slots) * policy.slot_seconds
    return float(np.median(state.slot_medians[chosen] + state.slope * ages_seconds))


def _moved_on(state: BandState, at_ms: int, policy: BandPolicy) -> Floats:
    """The residuals as they would be now: with a season, the trend is in the season already."""
    if policy.period_seconds is not None or not state.slope:
        return state.residuals
    moved: Floats = state.residuals + state.slope * (at_ms - state.residual_ms) / 1000
    return moved


def _spreads(residuals: Floats, level: float, how: Spread) -> tuple[float, float]:
    """The spread below and above the level."""
    if how == "mad":
        spread = MAD_TO_SD * float(np.median(np.abs(residuals - level)))
        return spread, spread
    low, high = (float(found) for found in np.quantile(residuals, (0.1, 0.9)))
    return (level - low) / P90_TO_SD, (high - level) / P90_TO_SD


def _into_slot(state: BandState, at_ms: int, figure: float, policy: BandPolicy) -> BandState:
    """The figure in the open slot; the slot before it closed, if it is over."""
    number = math.floor(at_ms / (policy.slot_seconds * 1000))
    if state.open_slot == number:
        return replace(state, open_figures=np.append(state.open_figures, figure)[:MOST_OPEN])
    opened = replace(state, open_slot=number, open_figures=np.array([figure]))
    if state.open_slot is None:
        return opened
    numbers = np.append(state.slot_numbers, state.open_slot)
    medians = np.append(state.slot_medians, float(np.median(state.open_figures)))
    kept = numbers > number - policy.slots_kept - 1
    numbers, medians = numbers[kept], medians[kept]
    return replace(opened, slot_numbers=numbers, slot_medians=medians, slope=_slope(numbers, medians, policy))


def _slope(numbers: Ints, medians: Floats, policy: BandPolicy) -> float:
    """The trend, in the figure's unit a second; 0 while too few slots can tell."""
    if policy.period_seconds is None:
        first, second = np.triu_indices(numbers.size, 1)
        fewest = FEWEST_SLOTS_FOR_TREND * (FEWEST_SLOTS_FOR_TREND - 1) // 2
    else:
        _, first, second = np.intersect1d(numbers + policy.slots, numbers, return_indices=True)
        fewest = max(2, policy.slots // 2)
    if first.size < fewest:
        return 0.0
    apart = (numbers[second] - numbers[first]) * policy.slot_seconds
    slope = float(np.median((medians[second] - medians[first]) / apart))
    return slope if math.isfinite(slope) else 0.0
