"""SLOs for the tests, and their state machine run over slices."""

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.slo.burn_rules import workbook_rules
from udfs.slo.conditions import NumberIs, TextIs
from udfs.slo.indicators import Quantile, Ratio, Tally
from udfs.slo.periods import DAY_MS, Rolling
from udfs.slo.slo import Slo, WindowRule
from udfs.slo.step import SloSeries

START_MS = 1_700_000_040_000  # a whole minute
SLICE_MS = 30_000
FRAME = Frame("slo", "", ("model",), 60_000, 60_000, "sha256:" + "c" * 64, None, "sha256:" + "a" * 64, VerdictKind.SLO)
ERRORS = Ratio((), (TextIs("is_error", ("true",)),), part_is_good=False)
TTFT = Quantile("time_to_first_token_seconds", 0.95, (TextIs("is_streaming", ("true",)),))
TTFT_WINDOW = WindowRule(0.8, "above", 60_000, 30_000, is_point=True, equal_breaches=True)
FAST = Ratio((), (NumberIs("time_to_first_token_seconds", "lt", 0.8),))


def slo(name: str = "errors", **changes: Any) -> Slo:
    """Return an SLO on errors, 99 % over 30 days, with the workbook's rules; `changes` are laid over it."""
    frame = Frame(**{**{f: getattr(FRAME, f) for f in FRAME.__dataclass_fields__}, "monitor": name})
    period = changes.get("period", Rolling(30 * DAY_MS))
    fields: dict[str, Any] = {
        "name": name,
        "service": "chat",
        "indicator": ERRORS,
        "target": 0.99,
        "period": period,
        "frame": frame,
        "burn_rules": workbook_rules(period.length_ms),
    }
    return Slo(**(fields | changes))


def run(
    of: Slo, slices: Mapping[int, Tally] | Iterable[Tally], *, state: bytes | None = None, slice_ms: int = SLICE_MS
) -> tuple[bytes | None, list[Verdict]]:
    """Step through slices, by their ends or one after the other from `START_MS` on."""
    if not isinstance(slices, Mapping):
        slices = {START_MS + (number + 1) * slice_ms: tally for number, tally in enumerate(slices)}
    series = SloSeries(of, ("m1",), slice_ms)
    verdicts = []
    for end_ms, tally in slices.items():
        state, said = series.step(state, end_ms, tally)
        verdicts += said
    return state, verdicts


def about(verdicts: Iterable[Verdict], what: str) -> list[Verdict]:
    """Return the verdicts on `what(...)`."""
    return [verdict for verdict in verdicts if verdict.feature.startswith(f"{what}(")]
