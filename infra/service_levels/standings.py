"""The newest standing of each SLO and series, and its past, from verdict records of any source."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from infra.errors import StackError
from infra.plots.judged_window import instant_ms, series_of
from infra.plots.record_sources import sorted_in
from schemas.status import Status
from schemas.times import epoch_ms
from schemas.verdicts import VerdictKind

BUDGET_TEST = "error_budget"


@dataclass(frozen=True, slots=True)
class Burn:
    """One burn-rate rule at an instant; the rates are None where its window has no usable counts."""

    rule: str
    severity: str
    factor: float
    long: float | None
    short: float | None
    firing: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """An SLO and series at `at_ms` (epoch milliseconds). Figures are None where `status` is not `ok`."""

    at_ms: int
    status: str
    target: float
    sli: float | None
    total: int
    remaining: float | None
    exhausted_ms: int | None
    burns: tuple[Burn, ...]

    @property
    def firing(self) -> tuple[str, ...]:
        """The severities that fire, each once."""
        return tuple(dict.fromkeys(burn.severity for burn in self.burns if burn.firing))


@dataclass(slots=True)
class SloHistory:
    """All standings of one SLO and series, by instant, and the windows of its figure."""

    name: str
    series: dict[str, str]
    service: str = ""
    period: str = ""
    by_end: dict[int, Standing] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and series, as a person writes them."""
        labels = ",".join(f"{name}={value}" for name, value in sorted(self.series.items()))
        return f"{self.name}/{labels}" if labels else self.name

    @property
    def standings(self) -> list[Standing]:
        """In order of time."""
        return [standing for _, standing in sorted(self.by_end.items())]


@dataclass(slots=True)
class SloBook:
    """All SLOs and series there are, by series key, and how many records could not be read."""

    histories: dict[str, SloHistory] = field(default_factory=dict)
    n_skipped: int = 0

    @classmethod
    def of(cls, records: Iterable[dict[str, Any] | None], wanted: str | None = None) -> "SloBook":
        """Sort verdict records; other kinds are passed over. Given `wanted`, only SLOs called so, or labelled so."""
        book = cls()
        book.n_skipped = sorted_in(records, lambda record: book._add(record, wanted))
        return book

    def _add(self, record: dict[str, Any], wanted: str | None) -> None:
        if record.get("kind") != VerdictKind.SLO or record["test"] != BUDGET_TEST:
            return
        key, _ = series_of(record)
        history = SloHistory(record["monitor"], dict(record["series"]))
        if wanted is not None and wanted not in (history.name, history.label):
            return
        evidence = evidence_of(record)
        standing = standing_of(record, evidence)
        history = self.histories.setdefault(key, history)
        history.by_end[standing.at_ms] = standing
        history.service, history.period = str(evidence["service"]), str(evidence["period"])

    def find(self, wanted: str) -> SloHistory:
        """Return the one SLO and series called so. Raises StackError with the names there are for none or several."""
        if len(self.histories) == 1:
            return next(iter(self.histories.values()))
        if not self.histories:
            remedy = "`slacktide slo` lists those there are; `slacktide submit slo` starts the job that tells of them"
            raise StackError(f"there is no verdict on a service level called {wanted}", remedy)
        names = ", ".join(sorted(history.label for history in self.histories.values()))
        raise StackError(f"{wanted} has {len(self.histories)} series: {names}", "Give one of these names")


def evidence_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the evidence, which a Delta table has as JSON text."""
    evidence = record["evidence"]
    found = orjson.loads(evidence) if isinstance(evidence, str) else evidence
    if not isinstance(found, dict):
        raise ValueError("evidence is no object")
    return found


def standing_of(record: dict[str, Any], evidence: dict[str, Any]) -> Standing:
    """Read one verdict on a budget. Raises KeyError, TypeError or ValueError where it is none."""
    status = Status(record["status"])
    is_known = status is Status.OK
    exhausted = evidence["projected_exhaustion"]
    return Standing(
        at_ms=instant_ms(record["window_end"]),
        status=status.value,
        target=_finite(evidence["target"]),
        sli=_finite(evidence["sli"]) if is_known else None,
        total=int(evidence["total"]),
        remaining=_finite(record["statistic"]) if is_known else None,
        exhausted_ms=None if exhausted is None else epoch_ms(exhausted),
        burns=tuple(_burn(window) for window in evidence["windows"]),
    )


def _burn(window: dict[str, Any]) -> Burn:
    long, short = (None if window[name] is None else _finite(window[name]) for name in ("burn_long", "burn_short"))
    return Burn(window["rule"], window["severity"], _finite(window["factor"]), long, short, bool(window["firing"]))


def _finite(number: Any) -> float:
    if not math.isfinite(number):
        raise ValueError(f"{number} is no figure")
    return float(number)
