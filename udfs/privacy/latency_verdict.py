"""Whether masking keeps its time: verdicts over what a window's ledgers say.

Two findings a window: the 99th percentile of the time a text took against its limit (spec G6: 150 ms), and the share of
texts withheld because they could not be masked. Neither is ever a silent pass: a window without texts has no verdict.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.privacy.ledger import Ledger

MONITOR, METHOD = "personal_data_masking", "log_sketch"
LATENCY, WITHHELD = "masking_latency_ms", "masking_withheld"
NO_MODEL_CARD = "sha256:" + hashlib.sha256(b"").hexdigest()  # masking belongs to no model


@dataclass(frozen=True, slots=True)
class MaskingLimits:
    """The policy: of `quantile` of the texts none may take longer than `latency_ms` (spec G6), and none be withheld."""

    latency_ms: float = 150.0
    quantile: float = 0.99
    withheld_share: float = 0.0

    @property
    def digest(self) -> str:
        """The digest of the policy, as verdicts name it."""
        body = orjson.dumps([self.latency_ms, self.quantile, self.withheld_share])
        return "sha256:" + hashlib.sha256(body).hexdigest()


def masking_verdicts(
    ledgers: Iterable[str], window_start_ms: int, window_end_ms: int, limits: MaskingLimits | None = None
) -> list[Verdict]:
    """Return the two verdicts of one window, [start, end) of processing time, over lines of `Ledger.to_json`.

    Raises ValueError on a line that is none. O(lines).

    >>> ledger = Ledger()
    >>> for latency_ms in (1.0, 2.0, 200.0):
    ...     ledger.note({}, latency_ms, is_cut=False)
    >>> late, withheld = masking_verdicts([ledger.to_json()], 0, 60_000)
    >>> late.drifted, round(late.statistic), withheld.drifted
    (False, 2, False)
    """
    limits = limits or MaskingLimits()
    total = Ledger.merged(ledgers)
    if total.texts == 0:
        return []
    sketch = total.latency()
    latency = float(sketch.quantile(limits.quantile) or 0.0)
    evidence = {
        "texts": total.texts,
        "cut": total.cut,
        "withheld": total.withheld,
        "found": dict(sorted(total.found.items())),
        "latency_ms": {f"p{q:g}": float(sketch.quantile(q / 100) or 0.0) for q in (50, 95, 99, 100)},
    }
    length_ms = window_end_ms - window_start_ms
    frame = Frame(MONITOR, "", (), length_ms, length_ms, limits.digest, None, NO_MODEL_CARD, VerdictKind.FINDING)

    def judged(feature: str, test: str, statistic: float, threshold: float) -> Verdict:
        measured = Measured(statistic, threshold, "above", Status.OK, total.texts, evidence=evidence)
        return measured_verdict(frame.about(feature), (), window_end_ms, measured, test=test, method=METHOD)

    return [
        judged(LATENCY, f"p{limits.quantile * 100:g}", latency, limits.latency_ms),
        judged(WITHHELD, "share", total.withheld / total.texts, limits.withheld_share),
    ]
