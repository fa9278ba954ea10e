"""A judge with its findings: one transport of a slice's values, and one merge of its sketches, for several verdicts.

What costs at a high rate is bringing a slice's values to Python, so everything that looks at one field shares that.
Two kinds of findings: those that the judge's own merged sketch can tell (nulls: no further byte), and judges that keep
a small sketch of their own beside it (a range: 64 bytes a slice).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from schemas.verdicts import Verdict
from udfs.judging.window_batch import Window, merged_windows
from udfs.judging.window_judge import Input, Values, WindowJudge
from udfs.parts import join_parts, split_parts

S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class MergingJudge(WindowJudge, Protocol[S]):
    """A judge whose merged sketch others may look at; `judge` is `of_merged` of `merged`."""

    def merged(self, sketches: Iterable[bytes]) -> S:
        """Return the sketch of the whole window."""
        ...

    def of_merged(self, labels: Sequence[str], window_end_ms: int, merged: S) -> list[Verdict]:
        """Return the verdicts of the window."""
        ...


class Finding(Protocol[S_contra]):
    """What can be told from another judge's merged sketch."""

    def look(self, labels: Sequence[str], window_end_ms: int, merged: S_contra) -> list[Verdict]:
        """Return the verdicts of the window that ends at `window_end_ms`."""
        ...


@dataclass(frozen=True)
class WithFindings:
    """The verdicts of `main`, then those of `findings`, then those of the judges `beside` it.

    All of `beside` must have the inputs of `main` (ValueError). Without any, the bytes are those of `main`.
    """

    main: MergingJudge[Any]
    findings: tuple[Finding[Any], ...] = ()
    beside: tuple[WindowJudge, ...] = ()

    def __post_init__(self) -> None:
        for other in self.beside:
            if other.inputs != self.main.inputs:
                raise ValueError(f"a judge beside {self.main.inputs} can't take {other.inputs}")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What `main` collects."""
        return self.main.inputs

    def sketch(self, *columns: Values) -> bytes:
        """Return the sketches of one slice, joined."""
        main = self.main.sketch(*columns)
        return join_parts([main, *(other.sketch(*columns) for other in self.beside)]) if self.beside else main

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return all verdicts of the window. Raises ValueError on bytes of other judges."""
        (verdicts,) = self.judge_windows([Window(labels, window_end_ms, tuple(sketches))])
        return verdicts

    def judge_windows(self, windows: Sequence[Window]) -> list[list[Verdict]]:
        """Return `judge` of each window; sketches are merged together where `main` can."""
        size = 1 + len(self.beside)
        slices = [[split_parts(d, size) if self.beside else [d] for d in window.sketches] for window in windows]
        merged = merged_windows(self.main, [[parts[0] for parts in of_window] for of_window in slices])
        return [self._of(*each) for each in zip(windows, slices, merged, strict=True)]

    def _of(self, window: Window, slices: list[list[bytes]], merged: Any) -> list[Verdict]:
        labels, window_end_ms, _ = window
        verdicts = self.main.of_merged(labels, window_end_ms, merged)
        for finding in self.findings:
            verdicts += finding.look(labels, window_end_ms, merged)
        for place, other in enumerate(self.beside, start=1):
            verdicts += other.judge(labels, window_end_ms, [parts[place] for parts in slices])
        return verdicts
