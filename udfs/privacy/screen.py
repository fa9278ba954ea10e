"""Which detectors propose anything in a text: known after one pass, so that the others need not look.

Two automata of all patterns together. The smaller only says whether any of them matches: most texts have nothing. The
larger says which; it has far more states, and texts made to visit many of them would slow it down, so only short texts
go through it, where a pass of every single pattern would cost more in calls than in bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import re2

from udfs.privacy.detector import Family, Span, alternation, options
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind

SHORT_BYTES = 2_048
SET_BYTES = 32 << 20  # of memory; beyond it RE2 begins its states anew


class Screen:
    """The detectors of `families` behind one automaton."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families
        self._detectors = tuple(detector for family in families for detector in family.detectors)
        self._any = alternation(self._detectors)
        self._which: Any = re2.Set.SearchSet(options(SET_BYTES))
        for detector in self._detectors:
            self._which.Add(detector.pattern.pattern)
        self._which.Compile()

    def findings(self, text: Folded) -> Iterator[tuple[Span, Kind]]:
        """Yield what each detector finds: byte spans of `text` and what they are, in no order. Linear time."""
        if len(text.data) <= SHORT_BYTES and (proposing := self._which.Match(text.data)):
            for number in proposing:
                detector = self._detectors[number]
                for span in detector.spans(text):
                    yield span, detector.kind
        # Nothing at all, or RE2's answer where its memory did not do.
        elif self._any.search(text.data) is not None:
            for family in self._families:
                yield from family.findings(text)
