"""A quantile of a sliding window against a limit of its own: what baselines are learnt from (spec D9).

From a log sketch, so within 1 % of the exact quantile (`udfs.sketches.log`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.status import Status
from schemas.verdicts import Verdict
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, Side, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.log import LogSketch

TEST, METHOD = "quantile", "log_sketch"


@dataclass(frozen=True, slots=True)
class QuantilePolicy:
    """The quantile `q` on the `wrong_side` of `threshold` is wrong; the limit is the user's, no figure is published."""

    threshold: float
    wrong_side: Side = "below"
    q: float = 0.5
    min_samples: int = 30


@dataclass(frozen=True)
class WindowQuantile:
    """Judges the windows of one numeric field; `frame` is made for the feature `p50(FIELD)` or the like."""

    frame: Frame
    field: str
    policy: QuantilePolicy

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `LogSketch`. O(n log n)."""
        (values,) = columns
        return LogSketch.from_values(values).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window that ends at `window_end_ms` (epoch milliseconds).

        >>> frame = Frame("chat", "p50(factuality)", ("prompt_template",), 60_000, 60_000, "sha256:c", None, "sha256:m")
        >>> judge = WindowQuantile(frame, "factuality", QuantilePolicy(threshold=0.5, min_samples=3))
        >>> (verdict,) = judge.judge(["t1"], 60_000, [judge.sketch([0.7, 0.8, 0.9, None])])
        >>> abs(verdict.statistic - 0.8) < 0.01, verdict.drifted, verdict.n_window, verdict.n_window_null
        (True, False, 3, 1)
        """
        merged = LogSketch.merge_all(sketches)
        found = merged.quantile(self.policy.q) if merged.n >= self.policy.min_samples else None
        # A quantile that is infinite is no figure: the window is full of infinities.
        is_finite = found is not None and abs(found) < float("inf")
        unknown = Status.INSUFFICIENT_DATA if found is None else Status.INVALID
        measured = Measured(
            statistic=found if is_finite else None,
            threshold=self.policy.threshold,
            wrong_side=self.policy.wrong_side,
            status=Status.OK if is_finite else unknown,
            n_window=merged.n,
            n_window_null=merged.n_null,
            n_infinite=merged.n_infinite,
            evidence={"q": self.policy.q, "relative_accuracy": merged.relative_accuracy},
        )
        return [measured_verdict(self.frame, labels, window_end_ms, measured, test=TEST, method=METHOD)]
