"""When a score asks for a person: a value below a limit raises a `review` decision (spec M1)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """A score called `score` with a value below `below` asks for a review. Raises ValueError on a limit not finite.

    >>> ReviewRule("factuality", 0.5).asks("factuality", 0.2), ReviewRule("factuality", 0.5).asks("factuality", None)
    (True, False)
    """

    score: str
    below: float

    def __post_init__(self) -> None:
        """Refuse a limit that no value could be held against."""
        if not math.isfinite(self.below):
            raise ValueError(f"below must be finite, not {self.below!r}")

    def asks(self, score: str, value: float | None) -> bool:
        """Whether this value asks; one without a figure never does."""
        return score == self.score and value is not None and value < self.below
