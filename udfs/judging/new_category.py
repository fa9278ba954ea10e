"""New categories: how many values are of a category that the reference has never had (spec D10)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.category_name import category_name
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.references.category_feature import CategoryReference
from udfs.sketches.category import CategoryCounts
from udfs.sketches.name_sample import NameSample

TEST, METHOD = "share_of_new_categories", "exact"
NAMES_IN_EVIDENCE = 5


@dataclass(frozen=True)
class NewCategory:
    """Judges whether more than `max_share` of the values are of a category that `reference` doesn't name.

    A reference with more categories than it keeps by name has a share of unnamed ones itself: then "new" can only mean
    "not among those named", and `max_share` is on top of that share. The statistic is the window's share; the verdict's
    feature is `new_category(FIELD)`. Bounded against any number of new categories: the names of at most `names_kept`
    are held, by hash and with exact counts (`NameSample`); the share itself is always exact.
    """

    frame: Frame
    field: str
    reference: CategoryReference
    max_share: float
    min_samples: int
    names_kept: int = 256

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as text."""
        return (Input(self.field, InputKind.TEXT),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the `NameSample` of the slice's new categories. O(n)."""
        (values,) = columns
        counts = CategoryCounts.from_values(values)
        known = self.reference.known
        new = {category_name(category): count for category, count in counts.counts.items() if category not in known}
        return NameSample.from_counts(new, self.names_kept, n=counts.n, n_null=counts.n_null).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window. O(slices names_kept).

        >>> reference = CategoryReference.from_values(["stop"] * 90 + ["length"] * 10, max_categories=1000)
        >>> frame = Frame("chat", "finish_reason", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = NewCategory(frame, "finish_reason", reference, max_share=0.01, min_samples=3)
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch(["stop", "tool", "stop", "tool"])])
        >>> verdict.feature, verdict.statistic, verdict.drifted, verdict.evidence["names"]
        ('new_category(finish_reason)', 0.5, True, [{'name': 'tool', 'count': 2}])
        """
        new = NameSample.merge_all(sketches, self.names_kept)
        share = new.total / new.n if new.n >= max(self.min_samples, 1) else None
        unnamed_share = self.reference.counts.n_other / self.reference.n_raw
        measured = Measured(
            share,
            threshold=self.max_share + unnamed_share,
            wrong_side="above",
            status=Status.INSUFFICIENT_DATA if share is None else Status.OK,
            n_window=new.n,
            n_window_null=new.n_null,
            n_reference=self.reference.n_raw,
            n_reference_null=self.reference.n_null,
            evidence={} if share is None else self._evidence(new, unnamed_share),
        )
        frame = self.frame.about(f"new_category({self.field})", VerdictKind.FINDING)
        return [measured_verdict(frame, labels, window_end_ms, measured, test=TEST, method=METHOD)]

    def _evidence(self, new: NameSample, unnamed_share: float) -> dict[str, object]:
        names = [{"name": name, "count": new.counts[name]} for name in new.top(NAMES_IN_EVIDENCE)]
        return {
            "names": names,
            "n_new_categories": new.n_names,
            "is_estimated": not new.is_whole,
            "reference_unnamed_share": unnamed_share,
        }
