"""The verdict of a figure that is held against a threshold and has no p-value."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.frame import Frame

Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of a window. `statistic` is finite where `status` is `ok`, else None; `effect` may be None.

    The window drifted where the statistic lies on the `wrong_side` of `threshold`; equal to it is still right.
    """

    statistic: float | None
    threshold: float
    wrong_side: Side
    status: Status
    n_window: int
    n_reference: int = 0
    n_reference_null: int = 0
    n_window_null: int = 0
    n_infinite: int = 0
    effect: float | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = self.statistic is not None and math.isfinite(self.statistic)
        if known != (self.status is Status.OK) or (self.effect is not None and not math.isfinite(self.effect)):
            raise ValueError(f"statistic {self.statistic} and effect {self.effect} don't go with status {self.status}")

    @property
    def drifted(self) -> bool | None:
        """Whether the threshold is crossed; None where there is no figure."""
        if self.statistic is None:
            return None
        return self.statistic > self.threshold if self.wrong_side == "above" else self.statistic < self.threshold

    @property
    def figures(self) -> dict[str, Any]:
        """What a verdict says of it, by the names of `Verdict`'s fields: there is no p, and nothing that needs one."""
        return {
            "status": self.status.value,
            "statistic": self.statistic,
            "p_value": None,
            "log10_p_value": None,
            "effect": self.effect,
            "published_score": None,
            "alpha": None,
            "min_effect": None,
            "threshold": self.threshold,
            "drifted": self.drifted,
            "n_reference": self.n_reference,
            "n_reference_null": self.n_reference_null,
            "n_window": self.n_window,
            "n_window_null": self.n_window_null,
            "n_infinite": self.n_infinite,
            "evidence": self.evidence,
        }


def measured_verdict(
    frame: Frame, labels: Iterable[str], window_end_ms: int, measured: Measured, *, test: str, method: str
) -> Verdict:
    """Return the verdict that says `measured` of the window that ends at `window_end_ms` (epoch milliseconds).

    >>> frame = Frame("chat", "p50(factuality)", ("model",), 60_000, 30_000, "sha256:c", None, "sha256:m")
    >>> measured = Measured(0.4, threshold=0.5, wrong_side="below", status=Status.OK, n_window=9)
    >>> verdict = measured_verdict(frame, ["m1"], 60_000, measured, test="quantile", method="log_sketch")
    >>> verdict.drifted, verdict.statistic, verdict.p_value
    (True, 0.4, None)
    """
    return frame.saying(labels, window_end_ms, test=test, method=method, **measured.figures)
