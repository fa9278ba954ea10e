"""What is kept of one category feature's raw values: the counts of its most frequent categories, and of the rest.

Up to `max_categories` categories all are kept, and every test is exact against the raw values. Of more, the rest is
one count, `counts.n_other`: a bucket that is tested like a category, so that what is lost is only which they were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from udfs.sketches.category import CategoryCounts
from udfs.statistics.categories import Category


@dataclass(frozen=True, eq=False)
class CategoryReference:
    """One category feature of a reference profile.

    `counts` holds at most `max_categories` categories, the rest under `n_other`, nulls under `n_null`; `n_categories`
    says how many different ones the raw values had.
    """

    counts: CategoryCounts
    n_categories: int

    @classmethod
    def from_values(
        cls, values: Sequence[Any] | np.ndarray[Any, Any] | pd.Series, *, max_categories: int
    ) -> "CategoryReference":
        """Count raw values: text, truth values and numbers (`udfs.statistics.categories`). O(n).

        Raises ValueError where there is no usable value, or one that is no category.

        >>> reference = CategoryReference.from_values(["stop", "length", "stop", "tool", None], max_categories=2)
        >>> reference.counts.count("stop"), reference.counts.n_other, reference.n_raw, reference.n_categories
        (2, 1, 4, 3)
        """
        counts = CategoryCounts.from_values(values)
        if not counts.n:
            raise ValueError(f"it has no usable value ({counts.n_null} nulls)")
        return cls(counts.folded(counts.top(max_categories)), len(counts.counts))

    @property
    def n_raw(self) -> int:
        """How many usable raw values there were."""
        return self.counts.n

    @property
    def n_null(self) -> int:
        """How many raw values were null."""
        return self.counts.n_null

    @property
    def null_rate(self) -> float:
        """Nulls among all raw records."""
        return self.n_null / (self.n_null + self.n_raw)

    @cached_property
    def known(self) -> frozenset[Category]:
        """The categories that are kept by name."""
        return frozenset(self.counts.counts)
