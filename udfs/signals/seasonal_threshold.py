"""Dynamic threshold: a figure against its own season, trend and spread, with hysteresis (spec A2).

The band of `seasonal_band` is learnt on line from each series' own verdicts. A breach begins when the figure lies more
than `enter_spreads` outside what is expected, on a wrong side, and ends when it is back within `leave_spreads`: between
the two nothing changes, so a figure on the edge does not flap.

- **Its own breaches teach it nothing.** While a breach lasts, season, trend, level and spread are frozen.
- **But not without end.** After `relearn_after_seconds` of one breach the new level is taken for the usual one, with
  the spread that it had meanwhile; the breach is over then, and the evidence says `relearnt`.
- **Warm-up** is `insufficient_data`: until there are `min_windows` quiet figures, and, with a period, until this place
  in the period was seen `min_periods` times. A window that was not judged has its own status; it teaches nothing, and
  neither begins nor ends a breach. So does a missing one.
- **Gate** (spec D8), where `p90_gate`: to begin a breach the figure must also lie above the P90 of its last 24 hours.

The clock is the windows' ends. A window that is not newer than the newest changes nothing and says nothing.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.measured import Measured, Side
from udfs.signals.p90_gate import HOUR_MS, DynamicThreshold, DynamicThresholdPolicy
from udfs.signals.seasonal_band import (
    Band,
    BandPolicy,
    BandState,
    band_at,
    learnt,
    relearnt,
    season_at,
    set_aside,
    without_stale,
)
from udfs.signals.seasonal_state import SeasonalState, decode, encode
from udfs.signals.signal_verdict import policy_digest, signal_verdict

TEST = "dynamic_threshold"
MOST_FIGURE = 1e300  # beyond it, differences of figures would leave float64
MOST_LOG = math.log(MOST_FIGURE)
Figure = Literal["statistic", "n_window"]
Scale = Literal["linear", "log"]
WrongSide = Literal["above", "below", "both"]


@dataclass(frozen=True, slots=True)
class SeasonalPolicy:
    """What is a breach. `figure` `n_window` follows the number of usable values instead: it falls when traffic does.

    On the `log` scale season, trend and spread are factors: for what swings by a share of itself, as traffic does. A
    spread of 0.1 is then 10 %, and a figure of 0 or less is as far below as can be.

    All ours. At 4 spreads a normal figure is outside once in 16,000 windows a side; with real tails, the rule of some
    windows in a row (docs/alerts.md) does the rest.
    """

    enter_spreads: float = 4.0
    leave_spreads: float = 2.5
    wrong_side: WrongSide = "above"
    figure: Figure = "statistic"
    scale: Scale = "linear"
    relearn_after_seconds: float = 86_400.0
    p90_gate: bool = False
    band: BandPolicy = field(default_factory=BandPolicy)

    def __post_init__(self) -> None:
        if not 0 < self.leave_spreads <= self.enter_spreads < math.inf:
            raise ValueError("leave_spreads must be above 0 and at most enter_spreads")
        if not self.relearn_after_seconds > 0:
            raise ValueError("relearn_after_seconds must be above 0")
        if self.p90_gate and self.wrong_side != "above":
            raise ValueError("p90_gate holds back what is above, so wrong_side must be above")


@dataclass(frozen=True, slots=True)
class _Judged:
    """One figure against its band: `in_breach` before it, `breaches` with it."""

    figure: float
    scaled: float
    band: Band
    in_breach: bool
    breaches: bool
    gate: float | None


@dataclass(frozen=True)
class SeasonalThreshold:
    """Follows one feature of one monitor, a series each: `mean(end_to_end_seconds)`, or `input_tokens` (its D)."""

    monitor: str
    feature: str
    policy: SeasonalPolicy

    @property
    def _band(self) -> BandPolicy:
        """On the log scale a share is a distance."""
        band = self.policy.band
        if self.policy.scale == "linear":
            return band
        return replace(band, min_spread=max(band.min_spread, band.min_relative_spread), min_relative_spread=0.0)

    @property
    def name(self) -> str:
        """What is followed, as the verdicts name it."""
        return self.feature if self.policy.figure == "statistic" else f"{self.policy.figure}({self.feature})"

    @property
    def uid(self) -> str:
        """Names the follower's state."""
        return f"{TEST}({self.monitor},{self.name})"

    def accepts(self, verdict: Verdict) -> bool:
        """Whether it is this monitor's verdict on the feature."""
        return (verdict.monitor, verdict.feature) == (self.monitor, self.feature)

    def key(self, verdict: Verdict) -> str:
        """The series."""
        return verdict.series_key

    def step(self, state: bytes | None, verdict: Verdict) -> tuple[bytes, list[Verdict]]:
        """Take one window; say one verdict of it, none where it is not newer than the newest. O(windows kept)."""
        before = SeasonalState(verdict.window_end_ms - 1) if state is None else decode(state)
        if state is not None and verdict.window_end_ms <= before.last_window_end_ms:
            return state, []
        after, said = self._step(before, verdict)
        return encode(after), [said]

    def _step(self, before: SeasonalState, verdict: Verdict) -> tuple[SeasonalState, Verdict]:
        figure, at_ms = self._figure(verdict), (verdict.window_start_ms + verdict.window_end_ms) // 2
        after = replace(before, last_window_end_ms=verdict.window_end_ms)
        if figure is None:
            unjudged = Status(verdict.status) if verdict.status != Status.OK else Status.INVALID
            return after, self._unjudged(verdict, unjudged, {"why": "the window has no figure"})
        after = replace(after, gate=self._gate(before, verdict, figure))
        in_breach = before.breach_since_ms is not None
        relearns = before.breach_since_ms is not None and (
            verdict.window_end_ms - before.breach_since_ms >= self.policy.relearn_after_seconds * 1000
        )
        policy = self._band
        known = without_stale(relearnt(before.band) if relearns else before.band, at_ms, policy)
        band, scaled = band_at(known, at_ms, policy), self._scaled(figure)
        if band is None:
            evidence = self._warming_up(known, at_ms) | {"figure": figure}
            after = replace(after, band=learnt(known, at_ms, scaled, policy), breach_since_ms=None)
            return after, self._unjudged(verdict, Status.INSUFFICIENT_DATA, evidence)
        judged = self._judged(band, figure, in_breach and not relearns, before.gate.threshold)
        since = before.breach_since_ms if judged.in_breach else verdict.window_end_ms
        teach = set_aside if judged.breaches else learnt
        after = replace(
            after,
            band=teach(known, at_ms, scaled, policy),
            breach_since_ms=since if judged.breaches else None,
        )
        evidence = self._evidence(judged) | {
            "season_slot": self._slot(at_ms),
            "trend_per_hour": known.slope * 3600,
            "windows_learnt": int(known.residuals.size),
            "relearnt": relearns,
        }
        return after, self._verdict(verdict, judged, evidence)

    def _figure(self, verdict: Verdict) -> float | None:
        """The figure to judge. The count is known also where there were too few values for a statistic."""
        if self.policy.figure == "n_window":
            return float(verdict.n_window)
        found = verdict.statistic if verdict.status == Status.OK else None
        return found if found is not None and abs(found) < MOST_FIGURE else None

    def _scaled(self, figure: float) -> float:
        if self.policy.scale == "linear":
            return figure
        return math.log(max(figure, 1 / MOST_FIGURE))

    def _unscaled(self, scaled: float) -> float:
        return scaled if self.policy.scale == "linear" else math.exp(max(-MOST_LOG, min(MOST_LOG, scaled)))

    def _gate(self, before: SeasonalState, verdict: Verdict, figure: float) -> DynamicThreshold:
        """The gate after this window: of each hour the first figure counts."""
        hour = verdict.window_end_ms // HOUR_MS
        is_known = before.gate.last_hour is not None and hour <= before.gate.last_hour
        if not self.policy.p90_gate or is_known:
            return before.gate
        return before.gate.after(hour, figure, DynamicThresholdPolicy())

    def _judged(self, band: Band, figure: float, in_breach: bool, gate: float | None) -> _Judged:
        scaled = self._scaled(figure)
        z = band.z(scaled)
        wrong = {"above": z, "below": -z, "both": abs(z)}[self.policy.wrong_side]
        if in_breach:
            breaches = wrong > self.policy.leave_spreads
        else:
            is_held_back = self.policy.p90_gate and gate is not None and figure <= gate
            breaches = wrong > self.policy.enter_spreads and not is_held_back
        return _Judged(figure, scaled, band, in_breach, breaches, gate)

    def _warming_up(self, state: BandState, at_ms: int) -> dict[str, Any]:
        knows_season = season_at(state, at_ms, self.policy.band) is not None
        return {
            "why": "warming up" if knows_season else "this place in the period was not seen often enough yet",
            "windows_learnt": int(state.residuals.size),
            "windows_to_learn": self.policy.band.min_windows,
            "season_slot": self._slot(at_ms),
        }

    def _slot(self, at_ms: int) -> int | None:
        band = self.policy.band
        return None if band.period_seconds is None else math.floor(at_ms / (band.slot_seconds * 1000)) % band.slots

    def _evidence(self, judged: _Judged) -> dict[str, Any]:
        band, z, reach = judged.band, judged.band.z(judged.scaled), self._reach(judged)
        expected = self._unscaled(band.expected)
        edges = (band.expected - reach * band.lower_spread, band.expected + reach * band.upper_spread)
        told = f"{abs(z):.3g} spreads {'above' if z > 0 else 'below'} the expected {expected:.6g}"
        held = "still outside" if judged.in_breach else "more than"
        evidence = {
            "figure": judged.figure,
            "expected": expected,
            "band": [self._unscaled(edge) for edge in edges],
            "z": z,
            "scale": self.policy.scale,
            "season": None if self.policy.band.period_seconds is None else band.season,
            "level": band.level,
            "spread": band.upper_spread if z > 0 else band.lower_spread,
            "enter_spreads": self.policy.enter_spreads,
            "leave_spreads": self.policy.leave_spreads,
            "in_breach": judged.in_breach,
            "why": f"{told}: {f'{held} {reach:g}' if judged.breaches else 'no breach'}",
        }
        return evidence | ({"gate": judged.gate} if self.policy.p90_gate else {})

    def _verdict(self, source: Verdict, judged: _Judged, evidence: dict[str, Any]) -> Verdict:
        side, threshold = self._threshold(judged)
        measured = Measured(
            statistic=judged.figure,
            threshold=threshold,
            wrong_side=side,
            status=Status.OK,
            n_window=source.n_window,
            n_window_null=source.n_window_null,
            n_infinite=source.n_infinite,
            effect=judged.figure - self._unscaled(judged.band.expected),
            evidence=evidence,
        )
        return self._said(source, measured, judged.breaches)

    def _unjudged(self, source: Verdict, status: Status, evidence: dict[str, Any]) -> Verdict:
        """A verdict without figures, and without a threshold: there is none yet."""
        side: Side = "below" if self.policy.wrong_side == "below" else "above"
        measured = Measured(None, 0.0, side, status, source.n_window, evidence=evidence)
        return replace(self._said(source, measured, None), n_window_null=source.n_window_null, threshold=None)

    def _said(self, source: Verdict, measured: Measured, drifted: bool | None) -> Verdict:
        return signal_verdict(
            source,
            measured,
            feature=f"{TEST}({self.name})",
            test=TEST,
            method=f"season_{self.policy.band.spread}",
            config_digest=policy_digest(self.policy, source.config_digest),
            drifted=drifted,
        )

    def _reach(self, judged: _Judged) -> float:
        return self.policy.leave_spreads if judged.in_breach else self.policy.enter_spreads

    def _threshold(self, judged: _Judged) -> tuple[Side, float]:
        """The edge of the band that decided: where both sides are wrong, that of the side where the figure lies."""
        band, reach = judged.band, self._reach(judged)
        is_above = self.policy.wrong_side == "above"
        if self.policy.wrong_side == "both":
            is_above = judged.scaled >= band.expected
        if is_above:
            return "above", self._unscaled(band.expected + reach * band.upper_spread)
        return "below", self._unscaled(band.expected - reach * band.lower_spread)
