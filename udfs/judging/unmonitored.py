"""Unmonitored features: fields seen in traffic that no monitor watches (spec D1).

A feature that nobody watches drifts unseen. The names of a request's attributes are taken from a sample of requests
(one in N by offset, in the SQL) and counted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.status import Status
from schemas.verdicts import Verdict, VerdictKind
from udfs.judging.frame import Frame
from udfs.judging.measured import Measured, measured_verdict
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.name_sample import NameSample

TEST, METHOD = "share_of_requests", "sampled"
REST = "*"


@dataclass(frozen=True)
class Unmonitored:
    """Judges which names occur in more than `max_share` of the sampled requests and are neither watched nor known.

    `field` is a text column that holds a request's names, joined by `separator`. The verdicts speak of
    `unmonitored_feature(NAME)`, one for each of the `max_names` most frequent, ties by name; and always one of
    `unmonitored_feature(*)`: whether there are still more, its statistic the share of the most frequent of the rest. So
    a window without unmonitored features has a verdict that says so.

    Bounded against made-up names: at most `names_kept` are counted, by hash (`NameSample`), with exact counts. Where
    there are more, evidence says `names_dropped`, and the verdict on the rest is `inconclusive` rather than clear.
    """

    frame: Frame
    field: str
    watched: frozenset[str]
    max_share: float
    min_samples: int
    known: frozenset[str] = frozenset()
    max_names: int = 10
    names_kept: int = 2048
    separator: str = "\x1f"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The column of names, as text."""
        return (Input(self.field, InputKind.TEXT),)

    def sketch(self, *columns: Values) -> bytes:
        """Return the `NameSample` of the slice's unmonitored names; a name counts once a request. O(names)."""
        (rows,) = columns
        texts = Counter(row for row in rows if isinstance(row, str))
        counts: Counter[str] = Counter()
        for text, times in texts.items():
            for name in set(text.split(self.separator)) - self.watched - self.known - {""}:
                counts[name] += times
        n = texts.total()
        return NameSample.from_counts(counts, self.names_kept, n=n, n_null=len(rows) - n).to_bytes()

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the verdicts of the window. O(slices names_kept).

        >>> frame = Frame("chat", "names", (), 60_000, 60_000, "sha256:c", None, "sha256:m")
        >>> judge = Unmonitored(frame, "names", frozenset({"temperature"}), 0.5, 2, separator=",")
        >>> verdicts = judge.judge([], 60_000, [judge.sketch(["temperature,top_k", "top_k", "seed", None])])
        >>> [(verdict.feature, verdict.drifted) for verdict in verdicts]
        [('unmonitored_feature(top_k)', True), ('unmonitored_feature(*)', False)]
        """
        names = NameSample.merge_all(sketches, self.names_kept)
        ordered = names.top(self.max_names + 1) if names.n >= max(1, self.min_samples) else []
        found = [name for name in ordered[: self.max_names] if names.counts[name] > self.max_share * names.n]
        verdicts = [self._verdict(labels, window_end_ms, name, names, names.counts[name] / names.n) for name in found]
        return [*verdicts, self._verdict_on_rest(labels, window_end_ms, names, len(found), ordered)]

    def _verdict_on_rest(
        self, labels: Sequence[str], window_end_ms: int, names: NameSample, n_found: int, ordered: list[str]
    ) -> Verdict:
        if names.n < max(1, self.min_samples):
            return self._verdict(labels, window_end_ms, REST, names, None, status=Status.INSUFFICIENT_DATA)
        largest = names.counts[ordered[n_found]] / names.n if n_found < len(ordered) else 0.0
        evidence = {
            "n_names": sum(count > self.max_share * names.n for count in names.counts.values()) - n_found,
            "names_dropped": not names.is_whole,
        }
        if not names.is_whole and largest <= self.max_share:
            return self._verdict(
                labels, window_end_ms, REST, names, None, status=Status.INCONCLUSIVE, evidence=evidence
            )
        return self._verdict(labels, window_end_ms, REST, names, largest, evidence=evidence)

    def _verdict(
        self,
        labels: Sequence[str],
        window_end_ms: int,
        name: str,
        names: NameSample,
        share: float | None,
        *,
        status: Status = Status.OK,
        evidence: dict[str, Any] | None = None,
    ) -> Verdict:
        measured = Measured(
            share,
            threshold=self.max_share,
            wrong_side="above",
            status=status,
            n_window=names.n,
            n_window_null=names.n_null,
            evidence=evidence or {},
        )
        frame = self.frame.about(f"unmonitored_feature({name})", VerdictKind.FINDING)
        return measured_verdict(frame, labels, window_end_ms, measured, test=TEST, method=METHOD)
