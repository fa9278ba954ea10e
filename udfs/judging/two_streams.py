"""Two live streams of one feature: arm against arm, version against version, over the same window (spec D1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.verdicts import Verdict
from udfs.budget.pairs import PairBudget
from udfs.judging.frame import Frame
from udfs.judging.stream_pair import DEFAULT_PAIR_POLICY, PairPolicy, PairPromise, compare_streams
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.log import LogSketch
from udfs.sketches.split_log import SplitBounds, SplitLog
from udfs.statistics.judgement import published_score

TEST = "ks_two_streams"
OTHER = "*"
POOLED = "it pools the labels beyond expected_labels, among which the budget was divided"


@dataclass(frozen=True)
class TwoStreams:
    """Compares the values of `field` under each value of the text field `split` with those under the baseline.

    `baseline` names the value to compare with; None takes the most frequent in the window, ties by name, which may be
    another in the next window: name it where the series must stay. Verdicts speak of
    `two_stream_ks(FIELD:LABEL|BASELINE)`, one a label, by name; labels beyond `max_labels` are one, `*`. Requests
    without a label take no part. No verdict where only one label, or no baseline, has any request.

    The reference side of a verdict is the baseline's window. `statistic` is the lower end of the interval that holds
    the exact D, `evidence.ks_interval`; where only its upper end says drift the status is `inconclusive`. Where there
    is a false-alarm `budget` (spec D2), alpha is the one that keeps it for windows of these sizes.
    """

    frame: Frame
    field: str
    split: str
    policy: PairPolicy = DEFAULT_PAIR_POLICY
    baseline: str | None = None
    max_labels: int = 16
    relative_accuracy: float = 0.01
    budget: PairBudget | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number, and the label, as text."""
        return Input(self.field, InputKind.NUMBER), Input(self.split, InputKind.TEXT)

    @property
    def _bounds(self) -> SplitBounds:
        return SplitBounds(self.max_labels, self.baseline, self.relative_accuracy)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `SplitLog`. O(n log n)."""
        values, labels = columns
        return SplitLog.from_values(values, labels, self._bounds).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return a verdict for each label but the baseline. O(total bytes), and two p-values a verdict.

        >>> frame = Frame("chat", "output_tokens", (), 60_000, 30_000, "sha256:c", None, "sha256:m")
        >>> judge = TwoStreams(frame, "output_tokens", "arm", PairPolicy(min_samples=50), baseline="control")
        >>> values, arms = list(range(1, 201)), ["control", "new"] * 100
        >>> slower = [3.0 * value if arm == "new" else value for value, arm in zip(values, arms)]
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch(slower, arms)])
        >>> verdict.feature, verdict.drifted
        ('two_stream_ks(output_tokens:new|control)', True)
        """
        split = SplitLog.merge_all(sketches, self._bounds)
        streams = dict(split.sketches)
        baseline = self.baseline if self.baseline is not None else next(iter(split.by_size()), None)
        if baseline is None or baseline not in streams:
            return []
        reference = streams.pop(baseline)
        if split.other is not None:
            streams[OTHER] = split.other.merge(streams[OTHER]) if OTHER in streams else split.other
        return [
            self._verdict(labels, window_end_ms, f"{label}|{baseline}", reference, streams[label])
            for label in sorted(streams)
        ]

    def _verdict(
        self, labels: Sequence[str], window_end_ms: int, pair: str, reference: LogSketch, window: LogSketch
    ) -> Verdict:
        reason = POOLED if pair.startswith(f"{OTHER}|") else ""
        promise = None if self.budget is None else PairPromise(self.budget, labels, reason)
        compared = compare_streams(reference, window, self.policy, promise)
        alpha = self.policy.alpha if promise is None else compared.policy.alpha or 0.0
        return self.frame.about(f"two_stream_ks({self.field}:{pair})").verdict(
            labels,
            window_end_ms,
            compared.result,
            test=TEST,
            drifted=compared.drifted,
            published_score=published_score(compared.result, alpha=alpha),
            policy=compared.policy,
            evidence=compared.evidence,
        )
