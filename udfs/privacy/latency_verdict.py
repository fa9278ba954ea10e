"""Whether masking keeps its time: verdicts over what a window's ledgers say.

Two findings a window: the 99th percentile of the time a text took against its limit (spec G6: 150 ms), and the share of
texts withheld because they could not be masked. Neither is ever a silent pass: a window without texts has no verdict.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.privacy.ledger import Ledger

MONITOR = "personal_data_masking"
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
    judge = partial(_verdict, total.texts, evidence, limits.digest, (window_start_ms, window_end_ms))
    return [
        judge(LATENCY, f"p{limits.quantile * 100:g}", (latency, limits.latency_ms)),
        judge(WITHHELD, "share", (total.withheld / total.texts, limits.withheld_share)),
    ]


def _verdict(
    texts: int, evidence: dict[str, object], config_digest: str, window_ms: tuple[int, int], *judged: Any
) -> Verdict:
    """`judged` is feature, test, and (statistic, threshold)."""
    feature, test, (statistic, threshold) = judged
    start_ms, end_ms = window_ms
    return Verdict(
        monitor=MONITOR,
        series={},
        feature=feature,
        window_start_ms=start_ms,
        window_end_ms=end_ms,
        slide_seconds=(end_ms - start_ms) / 1000,
        test=test,
        method="log_sketch",
        status=Status.OK,
        statistic=statistic,
        p_value=None,
        log10_p_value=None,
        effect=None,
        published_score=None,
        alpha=None,
        min_effect=None,
        drifted=statistic > threshold,
        n_reference=0,
        n_reference_null=0,
        n_window=texts,
        n_window_null=0,
        n_infinite=0,
        config_digest=config_digest,
        reference_digest=None,
        model_card_digest=NO_MODEL_CARD,
        evidence=evidence,
        threshold=threshold,
        kind=VerdictKind.FINDING,
    )
