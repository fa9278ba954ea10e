"""The verdict of a signal: whose it is comes from the verdicts it is made of, what it says from its own figures."""

from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

from schemas.ids import content_digest
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.measured import Measured

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def signal_verdict(
    source: Verdict,
    measured: Measured,
    *,
    feature: str,
    test: str,
    method: str,
    config_digest: str,
    drifted: bool | None = None,
    published_score: float | None = None,
    window_start_ms: int | None = None,
) -> Verdict:
    """Return the verdict of a signal at the window end of `source`, for its series and model card.

    `drifted` is given where more decides than the threshold; None where the threshold alone does.
    """
    figures = measured.figures | {"published_score": published_score}
    if drifted is not None:
        figures["drifted"] = drifted
    return replace(
        source,
        kind=VerdictKind.SIGNAL,
        feature=feature,
        window_start_ms=source.window_start_ms if window_start_ms is None else window_start_ms,
        test=test,
        method=method,
        config_digest=config_digest,
        **figures,
    )


@lru_cache(maxsize=1024)
def policy_digest(policy: "DataclassInstance", *sources: str) -> str:
    """Return the digest of a policy and of the configurations below it: it names the verdicts of a signal.

    `policy` must be frozen, with fields that have a hash.
    """
    body = {"policy": type(policy).__name__, "sources": sources, **asdict(policy)}
    return content_digest(orjson.dumps(body, option=orjson.OPT_SORT_KEYS))
