"""What the verdicts of one judge have in common: whose they are, of which windows, under which configuration."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.statistics.result import TestResult


@dataclass(frozen=True)
class Frame:
    """Makes the verdicts of one judge.

    `feature` is what a verdict says was judged (`schemas.verdicts.Verdict`), `group_by` names the labels of a series.
    Windows are [end - `window_ms`, end), `slide_ms` apart.
    """

    monitor: str
    feature: str
    group_by: tuple[str, ...]
    window_ms: int
    slide_ms: int
    config_digest: str
    reference_digest: str | None
    model_card_digest: str
    kind: VerdictKind = VerdictKind.DRIFT

    def about(self, feature: str, kind: VerdictKind | None = None) -> "Frame":
        """Return the frame of verdicts on another feature, of another kind where one is given."""
        return replace(self, feature=feature, kind=self.kind if kind is None else kind)

    def verdict(
        self,
        labels: Iterable[str],
        window_end_ms: int,
        result: TestResult,
        *,
        test: str,
        drifted: bool | None,
        published_score: float | None = None,
        policy: "Policy",
        evidence: dict[str, Any] | None = None,
    ) -> Verdict:
        """Return the verdict that says `result` of the window that ends at `window_end_ms` (epoch milliseconds).

        `labels` are the values of `group_by`, in its order. Where the result has no figures, `drifted` must be None.
        """
        if (result.status is Status.OK) != (drifted is not None):
            raise ValueError(f"drifted can't be {drifted} where status is {result.status}")
        return self.saying(
            labels,
            window_end_ms,
            test=test,
            method=result.method,
            status=result.status.value,
            statistic=result.statistic,
            p_value=result.p_value,
            log10_p_value=result.log10_p_value,
            effect=result.effect,
            published_score=published_score,
            alpha=policy.alpha,
            min_effect=policy.min_effect,
            threshold=policy.threshold,
            drifted=drifted,
            n_reference=result.n_reference,
            n_reference_null=result.n_reference_null,
            n_window=result.n_window,
            n_window_null=result.n_window_null,
            n_infinite=result.n_infinite,
            evidence=evidence or {},
        )

    def saying(self, labels: Iterable[str], window_end_ms: int, **figures: Any) -> Verdict:
        """Return the verdict of the window that ends at `window_end_ms` with all the fields that are not the frame's.

        Raises TypeError where one of them is missing or unknown.
        """
        return Verdict(
            monitor=self.monitor,
            kind=self.kind,
            series=dict(zip(self.group_by, labels, strict=True)),
            feature=self.feature,
            window_start_ms=window_end_ms - self.window_ms,
            window_end_ms=window_end_ms,
            slide_seconds=self.slide_ms / 1000,
            config_digest=self.config_digest,
            reference_digest=self.reference_digest,
            model_card_digest=self.model_card_digest,
            **figures,
        )


@dataclass(frozen=True)
class Policy:
    """What decides that a window drifted; what a test has no use for is None.

    Either p below `alpha` with an effect of at least `min_effect`, or the statistic beyond `threshold`.
    """

    alpha: float | None = None
    min_effect: float | None = None
    threshold: float | None = field(default=None)
