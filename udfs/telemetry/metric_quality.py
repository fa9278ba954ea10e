"""Findings on the figures of one metric point: what no server can have measured.

Sources: vLLM issue 8115 (8,060 first-token times with a mean of 73 microseconds); all-zero first-token times as sent by
gateways that don't measure them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from schemas.measurements import DataQuality


@dataclass(frozen=True, slots=True)
class PlausibleMean:
    """From where to where a metric's mean can be believed, in its canonical unit."""

    low: float
    high: float


# A first token takes a forward pass and a way over the network; a day is beyond any client's patience. Judged by the
# mean alone, so single odd observations raise nothing.
PLAUSIBLE_MEANS: Mapping[str, PlausibleMean] = MappingProxyType(
    {
        "time_to_first_token_seconds": PlausibleMean(0.001, 86_400.0),
        "time_per_output_token_seconds": PlausibleMean(0.00005, 3_600.0),
        "inter_token_seconds": PlausibleMean(0.00005, 3_600.0),
        "end_to_end_seconds": PlausibleMean(0.001, 86_400.0),
        "client_end_to_end_seconds": PlausibleMean(0.001, 86_400.0),
    }
)


def mean_findings(
    name: str, count: int, total: float | None, plausible: Mapping[str, PlausibleMean] = PLAUSIBLE_MEANS
) -> tuple[DataQuality, ...]:
    """Return what to say of `count` observations of metric `name` with the sum `total`; nothing where all is well.

    >>> [str(flag) for flag in mean_findings("time_to_first_token_seconds", 8060, 0.5871782302856445)]
    ['suspect_implausible']
    >>> [str(flag) for flag in mean_findings("time_to_first_token_seconds", 5, 0.0)]
    ['suspect_all_zero']
    >>> mean_findings("queue_seconds", 5, 0.0), mean_findings("time_to_first_token_seconds", 0, 0.0)
    ((), ())
    """
    limits = plausible.get(name)
    if limits is None or not count or total is None:
        return ()
    if total == 0:
        return (DataQuality.SUSPECT_ALL_ZERO,)
    return () if limits.low <= total / count <= limits.high else (DataQuality.SUSPECT_IMPLAUSIBLE,)
