"""A field over bins that a reference fixes: its quantiles for numbers, its categories and all others for text."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from udfs.judging.window_judge import InputKind, Values
from udfs.sketches.category import CategoryCounts
from udfs.sketches.quantile_bins import MOST_BINS, QuantileBins
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference
from udfs.statistics.categories import OTHER, Category

S = TypeVar("S")
_LONGEST_CATEGORY = 64


class Binned(Protocol[S]):
    """How a field's values become counts over bins that reference and window share. Picklable."""

    @property
    def kind(self) -> InputKind:
        """How the values are collected."""
        ...

    @property
    def n_reference_null(self) -> int:
        """Nulls of the reference."""
        ...

    def sketch(self, values: Values) -> bytes:
        """Return the sketch of a slice."""
        ...

    def merged(self, sketches: Iterable[bytes]) -> S:
        """Return the sketch of a window."""
        ...

    def counts(self, merged: S) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the reference's counts and the window's over the same bins: int64 of shape (bins,)."""
        ...

    def bin_name(self, number: int) -> dict[str, Any]:
        """Say which bin it is, for a verdict's evidence."""
        ...


@dataclass(frozen=True)
class BinnedNumbers:
    """Numbers over at most `most_bins` bins at the reference's quantiles."""

    reference: RankReference
    most_bins: int = MOST_BINS
    kind: InputKind = field(default=InputKind.NUMBER, init=False)

    @cached_property
    def bins(self) -> QuantileBins:
        """The bins, made once."""
        return QuantileBins.of(self.reference, self.most_bins)

    @property
    def n_reference_null(self) -> int:
        """Nulls of the reference."""
        return self.reference.n_null

    def sketch(self, values: Values) -> bytes:
        """Return the bytes of a `RankSketch`. O(n log n)."""
        return RankSketch.from_values(values, self.reference).to_bytes()

    def merged(self, sketches: Iterable[bytes]) -> RankSketch:
        """Return the window's `RankSketch`. Raises ValueError on bytes of another reference."""
        return RankSketch.merge_all(sketches, self.reference)

    def counts(self, merged: RankSketch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return both sides' counts. O(k)."""
        return self.bins.reference_counts, self.bins.counts(merged)

    def bin_name(self, number: int) -> dict[str, Any]:
        """Say what the bin reaches from (None: from below all) and up to (None: above all)."""
        above, up_to = self.bins.interval(number)
        return {"above": _finite(above), "up_to": _finite(up_to)}


@dataclass(frozen=True)
class BinnedCategories:
    """Categories over those of `reference`; every other one is in one bin of its own, which takes part too."""

    reference: CategoryCounts
    kind: InputKind = field(default=InputKind.TEXT, init=False)

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """The bins: most frequent first, and last the bin of all others."""
        return (*self.reference.top(len(self.reference.counts)), OTHER)

    @property
    def n_reference_null(self) -> int:
        """Nulls of the reference."""
        return self.reference.n_null

    def sketch(self, values: Values) -> bytes:
        """Return the bytes of the slice's `CategoryCounts`, folded: O(categories of the reference) of them."""
        return CategoryCounts.from_values(values).folded(self.reference.counts).to_bytes()

    def merged(self, sketches: Iterable[bytes]) -> CategoryCounts:
        """Return the window's `CategoryCounts`."""
        return CategoryCounts.merge_all(sketches).folded(self.reference.counts)

    def counts(self, merged: CategoryCounts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return both sides' counts. O(categories)."""
        return self._counts(self.reference), self._counts(merged)

    def bin_name(self, number: int) -> dict[str, Any]:
        """Say which category it is (its text cut at 64 characters), or that it is all others."""
        category = self.categories[number]
        return {"category": None if category == OTHER else str(category.value)[:_LONGEST_CATEGORY]}

    def _counts(self, side: CategoryCounts) -> NDArray[np.int64]:
        named = [side.counts.get(category, 0) for category in self.categories[:-1]]
        return np.array([*named, side.n_other], dtype=np.int64)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
