"""Which detectors propose anything in a text: known after one pass, so that the others need not look.

Two automata of all patterns together. The smaller only says whether any of them matches: most texts have nothing. The
larger says which; it has far more states, and texts made to visit many of them would slow it down, so only short texts
go through it, where a pass of every single pattern would cost more in calls than in bytes.
"""

from collections.abc import Sequence
from typing import Any

import re2

from udfs.privacy.detector import Family, alternation
from udfs.privacy.folded import Folded
from udfs.privacy.kinds import Kind
from udfs.privacy.linear_pattern import Span, options

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
            self._which.Add(detector.pattern.source)
        self._which.Compile()

    def findings(self, text: Folded) -> list[tuple[Span, Kind]]:
        """Return what each detector finds: byte spans of `text` and what they are, in no order. Linear time."""
        if len(text.data) <= SHORT_BYTES and (proposing := self._which.Match(text.data)):
            asked = map(self._detectors.__getitem__, proposing)
            return [(span, detector.kind) for detector in asked for span in detector.spans(text)]
        # Nothing at all, or RE2's answer where its memory did not do.
        if self._any.is_in(text.data):
            return [found for family in self._families for found in family.findings(text)]
        return []
