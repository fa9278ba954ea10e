"""The state machine of one SLO and series: closed slices of events in, verdicts out.

What it guarantees, whatever comes in:

- The same slices give the same verdicts and the same state, byte for byte. Event time is the only clock.
- A slice that is not newer than the newest one changes nothing and says nothing.
- A slice without events, also one that was skipped, is `no_data`, and is told for `quiet_ms` after the last event; then
  the series is silent until events come again.
- What is not judged is never a pass. No figure is NaN or infinite.
"""

from dataclasses import dataclass
from functools import reduce

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.slo.budget_verdicts import budget_verdicts, standing
from udfs.slo.budgeting import Method
from udfs.slo.indicators import NOTHING, Tally
from udfs.slo.periods import MINUTE_MS
from udfs.slo.slo import Slo
from udfs.slo.state import NEVER_MS, SloState, decode, encode
from udfs.slo.window_figure import window_verdict


@dataclass(frozen=True)
class SloSeries:
    """An SLO and the labels of one of its series; slices are `slice_ms` long, a whole part of a minute."""

    slo: Slo
    labels: tuple[str, ...]
    slice_ms: int

    def step(self, state: bytes | None, slice_end_ms: int, tally: Tally) -> tuple[bytes | None, list[Verdict]]:
        """Return the state after the slice that ends at `slice_end_ms`, and what there is to say of it.

        None is the state of a new series. Returns `state` itself where the slice is not newer. O(slots): about 0.3 ms
        for a slice on which budgets are told.
        """
        now = SloState.begin(self.slo) if state is None else decode(state, self.slo)
        if now.last_end_ms != NEVER_MS and slice_end_ms <= now.last_end_ms:
            return state, []
        verdicts: list[Verdict] = []
        if now.last_end_ms != NEVER_MS:
            speaks_until_ms = now.last_data_ms + self.slo.quiet_ms
            for end_ms in range(now.last_end_ms + self.slice_ms, min(slice_end_ms, speaks_until_ms + 1), self.slice_ms):
                verdicts += self._advance(now, end_ms, NOTHING)
        verdicts += self._advance(now, slice_end_ms, tally)
        return encode(now), verdicts

    def _advance(self, now: SloState, end_ms: int, tally: Tally) -> list[Verdict]:
        """Move `now` on by one slice."""
        slo = self.slo
        if slo.judge is not None and not slo.judge.is_qualified:
            tally = Tally(n_null=tally.n_null, n_unqualified=tally.n_unqualified + tally.total)
        if now.begun_ms == NEVER_MS:
            now.begun_ms = now.last_data_ms = end_ms
        now.last_end_ms = end_ms
        if tally.n_unqualified:
            now.last_unqualified_ms = end_ms
        if tally != NOTHING:
            now.last_data_ms = end_ms
        if end_ms > now.last_data_ms + slo.quiet_ms:
            return []
        verdicts = self._window(now, end_ms, tally)
        if not (slo.window and slo.window.is_point):
            self._count(now, end_ms, tally)
        self._close(now, end_ms)
        if end_ms % slo.evaluate_ms == 0:
            unqualified = now.last_unqualified_ms != NEVER_MS
            where = standing(slo, now.counts, end_ms, unqualified=unqualified, sampled=now.sampled)
            verdicts += budget_verdicts(slo, self.labels, end_ms, where)
        return verdicts

    def _window(self, now: SloState, end_ms: int, tally: Tally) -> list[Verdict]:
        """Keep the slice for the window, tell the figure where a window ends, and count it where it is a point."""
        rule = self.slo.window
        if rule is None:
            return []
        start_ms = end_ms - rule.window_ms
        kept = [(end, of) for end, of in now.recent if end > start_ms]
        now.recent = (*kept, *([] if tally == NOTHING else [(end_ms, tally)]))
        if end_ms % rule.slide_ms:
            return []
        whole = reduce(Tally.plus, (of for _, of in now.recent), NOTHING)
        is_whole = now.begun_ms <= start_ms
        verdict = window_verdict(self.slo, rule, self.labels, end_ms, whole, is_whole=is_whole)
        if rule.is_point and verdict.status == Status.OK:
            self._count(now, end_ms, Tally(int(not verdict.drifted), 1))
        return [verdict]

    def _count(self, now: SloState, end_ms: int, tally: Tally) -> None:
        """Take events into the budget: at once, or into the open time slice."""
        if not tally.total and not tally.good:
            return
        budgeting = self.slo.budgeting
        if budgeting.method is Method.OCCURRENCES:
            now.counts.add((end_ms - 1) // MINUTE_MS, tally.good, tally.total)
            if now.sampled is not None:
                now.sampled.add((end_ms - 1) // MINUTE_MS, 0, tally.n_sampled)
            return
        ends_ms = -(-end_ms // budgeting.slice_ms) * budgeting.slice_ms
        if ends_ms != now.open_end_ms:
            self._close(now, ends_ms)
            now.open_end_ms, now.open_good, now.open_total, now.open_sampled = ends_ms, 0, 0, 0
        now.open_good += tally.good
        now.open_total += tally.total
        now.open_sampled += tally.n_sampled

    def _close(self, now: SloState, end_ms: int) -> None:
        """Take the open time slice into the budget where it is over."""
        if now.open_end_ms == NEVER_MS or end_ms < now.open_end_ms:
            return
        n_events = now.open_sampled if self.slo.is_sampled else None
        good, total = self.slo.budgeting.of_slice(now.open_good, now.open_total, n_events)
        if total or good:
            now.counts.add((now.open_end_ms - 1) // MINUTE_MS, good, total)
        now.open_end_ms, now.open_good, now.open_total, now.open_sampled = NEVER_MS, 0, 0, 0
