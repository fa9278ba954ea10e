"""Range: how many values lie outside what the reference has ever seen (spec D10).

A distribution test weighs a few wild values by their count alone: one request in a hundred with a million tokens moves
D by 0.01. This finding looks at just these.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.outside import OutsideCounts

TEST, METHOD = "share_outside", "exact"


@dataclass(frozen=True)
class Range:
    """Judges whether more than `max_share` of the values lie outside [`minimum`, `maximum`], the reference's ends.

    A reference of `n_reference` values is itself left by about 2 / (n_reference + 1) of new values of the same
    distribution, so a `max_share` below that alarms by itself. The statistic is the share; the verdict's feature is
    `range(FIELD)`. The rank sketch can't tell this: of a large reference it keeps points within its ends, and it
    forgets how far outside a value was. So a sketch of 64 bytes a slice is kept.
    """

    frame: Frame
    field: str
    minimum: float
    maximum: float
    n_reference: int
    max_share: float
    min_samples: int

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The field, as a number."""
        return (Input(self.field, InputKind.NUMBER),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the bytes of the slice's `OutsideCounts`. O(n log n)."""
        (values,) = columns
        return OutsideCounts.from_values(values, self.minimum, self.maximum).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the one verdict of the window. O(slices).

        >>> frame = Frame("chat", "input_tokens", (), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
        >>> judge = Range(frame, "input_tokens", 1.0, 4096.0, n_reference=1000, max_share=0.01, min_samples=3)
        >>> (verdict,) = judge.judge([], 60_000, [judge.sketch([7.0, 9000.0, 12.0, None])])
        >>> verdict.feature, round(verdict.statistic, 3), verdict.drifted, verdict.evidence["largest"]
        ('range(input_tokens)', 0.333, True, 9000.0)
        """
        counts = OutsideCounts.merge_all(sketches)
        share = counts.share if counts.n >= self.min_samples else None
        measured = Measured(
            share,
            threshold=self.max_share,
            wrong_side="above",
            status=Status.INSUFFICIENT_DATA if share is None else Status.OK,
            n_window=counts.n,
            n_window_null=counts.n_null,
            n_infinite=counts.n_infinite,
            n_reference=self.n_reference,
            evidence={} if share is None else self._evidence(counts),
        )
        return [measured_verdict(self._finding, labels, window_end_ms, measured, test=TEST, method=METHOD)]

    @cached_property
    def _finding(self) -> Frame:
        return self.frame.about(f"range({self.field})", VerdictKind.FINDING)

    def _evidence(self, counts: OutsideCounts) -> dict[str, float | int | None]:
        """Say how many are out on which side and how far; an infinite end is None, `n_infinite` tells."""
        return {
            "reference_minimum": _finite(self.minimum),
            "reference_maximum": _finite(self.maximum),
            "smallest": _finite(counts.smallest),
            "largest": _finite(counts.largest),
            "n_below": counts.n_below,
            "n_above": counts.n_above,
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
