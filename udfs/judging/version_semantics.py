"""Version semantics: how two adjacent versions answered the same inputs, from scores on the requests (spec D6).

A request that two versions answered carries up to three scores of their softmax outputs: Jensen-Shannon divergence,
whether the labels agree, relative entropy (`udfs/versions/softmax_pairs.py` makes them).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.versions.version_judgement import (
    PCR,
    VersionJudgement,
    judge_confidence_shift,
    judge_consistency,
    judge_divergence,
)
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit
from udfs.versions.version_sketch import VersionSketch

METHOD = "exact_mean"
_CONSISTENCY, _CONFIDENCE_SHIFT = ConsistencyLimit(), ConfidenceShiftLimit()


@dataclass(frozen=True)
class VersionSemantics:
    """Judges the windows of up to three scores, each a verdict of its own: `confidence_shift_entropy_nats(FIELD)`...

    `agreement`, `kl_nats` and `js_bits` name the fields that hold the scores; None where requests carry no such score.
    The limits' `every` and `min_samples` are what a window must have; below it is `insufficient_data`. Impossible
    scores count as nulls, and are told in the evidence. Raises ValueError where no field is named, or `js_bits` without
    a limit, for which there is no default.
    """

    frame: Frame
    agreement: str | None = None
    kl_nats: str | None = None
    js_bits: str | None = None
    consistency: ConsistencyLimit = _CONSISTENCY
    confidence_shift: ConfidenceShiftLimit = _CONFIDENCE_SHIFT
    divergence: DivergenceLimit | None = None

    def __post_init__(self) -> None:
        if not self._fields:
            raise ValueError("name at least one of agreement, kl_nats, js_bits")
        if self.js_bits and self.divergence is None:
            raise ValueError("js_bits needs a divergence limit: spec D6 names none")

    @property
    def _fields(self) -> dict[str, str]:
        named = {"agreement": self.agreement, "kl_nats": self.kl_nats, "js_bits": self.js_bits}
        return {score: field for score, field in named.items() if field}

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The fields of the scores, as numbers."""
        return tuple(Input(field, InputKind.NUMBER) for field in self._fields.values())

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `VersionSketch`: 152. O(n log n) of n requests."""
        return VersionSketch.from_scores(**dict(zip(self._fields, columns, strict=True))).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return a verdict a score of the window that ends at `window_end_ms` (epoch milliseconds, exclusive).

        Raises ValueError on bytes that are no version sketch. O(sketches).

        >>> frame = Frame("shadow", "", ("model",), 60_000, 15_000, "sha256:c", None, "sha256:m")
        >>> judge = VersionSemantics(frame, kl_nats="attributes.kl")
        >>> (verdict,) = judge.judge(["m1"], 60_000, [judge.sketch([0.5] * 100 + [None])])
        >>> verdict.feature, verdict.statistic, verdict.threshold, verdict.drifted, verdict.n_window_null
        ('confidence_shift_entropy_nats(attributes.kl)', 0.5, 0.32, True, 1)
        """
        merged = VersionSketch.merge_all(sketches)
        judged = {
            "agreement": lambda: judge_consistency(merged.agreement, self.consistency),
            "kl_nats": lambda: judge_confidence_shift(merged.kl_nats, self.confidence_shift),
            "js_bits": lambda: judge_divergence(merged.js_bits, self.divergence or DivergenceLimit(1.0)),
        }
        return [self._verdict(labels, window_end_ms, field, judged[score]()) for score, field in self._fields.items()]

    def _verdict(self, labels: Sequence[str], window_end_ms: int, field: str, judged: VersionJudgement) -> Verdict:
        measured = Measured(
            statistic=judged.statistic,
            threshold=judged.threshold,
            wrong_side="below" if judged.quantity == PCR else "above",
            status=judged.status,
            n_window=judged.n,
            n_window_null=judged.n_null + judged.n_invalid,
            evidence={"n_impossible": judged.n_invalid} if judged.n_invalid else {},
        )
        frame = self.frame.about(f"{judged.quantity}({field})", VerdictKind.DRIFT)
        return measured_verdict(frame, labels, window_end_ms, measured, test=judged.quantity, method=METHOD)
