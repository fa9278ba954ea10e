"""Category counts: how often each category occurs, unseen ones kept, with an `other` bucket where they must be bounded.

Guarantee: counts are exact, whatever was merged in whatever order; 1, "1" and True are three categories
(`udfs.statistics.categories`). Memory: O(categories), about 250 bytes each.

Bounding. A sketch that drops rare categories as it goes (space-saving) depends on the order of its merges, and a replay
would judge differently. Here the set of categories to keep is *fixed beforehand*, usually the reference's most frequent
(`top`), and `folded` moves all the rest into one bucket. Folding and merging may then change places freely: folding
every slice, or only the merged window, gives the same counts. What is lost is which categories, and how many distinct
ones, are in the bucket; its count is exact, and it is a category like any other to the tests, so that it is itself
watched.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from udfs.statistics.categories import OTHER, Category, category_of
from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"CAT", 1
_KINDS = ("text", "number", "truth")


@dataclass(frozen=True)
class CategoryCounts:
    """A sample as counts of its categories.

    `counts` maps each category seen to how often it was, at least 1; `n_other` counts what was folded away, `n_null`
    None, NaN, NaT and NA, which are no category. Unchangeable: `merge` and `folded` return new sketches.
    """

    counts: Mapping[Category, int] = field(default_factory=dict)
    n_null: int = 0
    n_other: int = 0

    @classmethod
    def empty(cls) -> "CategoryCounts":
        """Return the sketch of no values, neutral under `merge`."""
        return cls()

    @classmethod
    def from_values(cls, values: Sequence[Any] | np.ndarray[Any, Any] | pd.Series) -> "CategoryCounts":
        """Count the categories of a list, array, masked array or pandas series of text, numbers and truth values.

        Raises ValueError for any other type, and for a text alone. O(n).

        >>> sketch = CategoryCounts.from_values(["stop", "length", "stop", 1, True, None])
        >>> sketch.count("stop"), sketch.count(1), sketch.n, sketch.n_null
        (2, 1, 5, 1)
        """
        if isinstance(values, str | bytes | Mapping):
            raise ValueError(f"values must be a sequence of categories, not {type(values).__name__}")
        items = values.tolist() if isinstance(values, np.ndarray | pd.Series | pd.Index) else list(values)
        counts: Counter[Category | None] = Counter()
        kinds = set(map(type, items))
        for kind in kinds:
            try:
                tally = Counter(items if len(kinds) == 1 else [item for item in items if type(item) is kind])
            except TypeError as error:
                raise ValueError(f"a category must be text, a number or a truth value, not {kind.__name__}") from error
            for value, count in tally.items():
                counts[_checked(category_of(value))] += count
        n_null = counts.pop(None, 0)
        return cls({category: count for category, count in counts.items() if category is not None}, n_null)

    @property
    def n(self) -> int:
        """How many values there are, folded ones among them; nulls are not."""
        return sum(self.counts.values()) + self.n_other

    def count(self, value: Any) -> int:
        """Return how often a value's category occurs; that of a null is `n_null`."""
        category = category_of(value)
        return self.n_null if category is None else self.counts.get(category, 0)

    def as_histogram(self) -> dict[Any, int]:
        """Return category -> count with the `other` bucket and, under None, the nulls: what the statistics take.

        >>> from udfs.statistics.categorical import chi_square_homogeneity
        >>> reference, window = (CategoryCounts.from_values(v) for v in (["a", "a", "b"], ["a", "b", "b", None]))
        >>> result = chi_square_homogeneity(reference.as_histogram(), window.as_histogram())
        >>> round(result.statistic, 6), result.n_window, result.n_window_null
        (0.666667, 3, 1)
        """
        histogram: dict[Any, int] = dict(self.counts)
        if self.n_other:
            histogram[OTHER] = self.n_other
        if self.n_null:
            histogram[None] = self.n_null
        return histogram

    def top(self, limit: int) -> tuple[Category, ...]:
        """Return the `limit` most frequent categories, most frequent first, ties by kind and value. O(n log n)."""
        ordered = sorted(self.counts, key=lambda category: (-self.counts[category], category))
        return tuple(ordered[:limit])

    def folded(self, keep: Iterable[Any]) -> "CategoryCounts":
        """Return the sketch with every category that is not in `keep` moved to `n_other`. O(categories).

        >>> sketch = CategoryCounts.from_values(["a", "b", "c", "a"]).folded(["a"])
        >>> sketch.count("a"), sketch.n_other, sketch.n
        (2, 2, 4)
        """
        kept = {category_of(value) for value in keep}
        counts = {category: count for category, count in self.counts.items() if category in kept}
        return CategoryCounts(counts, self.n_null, self.n - sum(counts.values()))

    def merge(self, other: "CategoryCounts") -> "CategoryCounts":
        """Return the sketch of both samples pooled. O(categories)."""
        return _merged([self, other])

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes]) -> "CategoryCounts":
        """Return the sketch of all samples pooled, straight from their bytes; of none, the empty sketch.

        >>> slices = [CategoryCounts.from_values(v).to_bytes() for v in (["a"], ["a", "b"])]
        >>> CategoryCounts.merge_all(slices).count("a")
        2
        """
        return _merged([cls.from_bytes(data) for data in sketches])

    def to_bytes(self) -> bytes:
        """Return the sketch as bytes (docs/sketches.md), the same for equal sketches. O(n log n)."""
        body: dict[str, Any] = {"null": self.n_null, "other": self.n_other}
        for kind in _KINDS:
            of_kind = [category for category in self.counts if category.kind == kind]
            body[kind] = [[category.value, self.counts[category]] for category in sorted(of_kind)]
        return seal(_TAG, _VERSION, json.dumps(body, separators=(",", ":")).encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> "CategoryCounts":
        """Read a sketch back. Raises ValueError on bytes that are no category counts. O(categories).

        >>> sketch = CategoryCounts.from_values(["a", 2.5, False])
        >>> CategoryCounts.from_bytes(sketch.to_bytes()) == sketch
        True
        """
        body = unseal(data, _TAG)
        try:
            read = json.loads(body)
            counts = {Category(kind, value): int(count) for kind in _KINDS for value, count in read[kind]}
            return cls(counts, int(read["null"]), int(read["other"]))
        except (ValueError, KeyError, TypeError) as error:
            refuse(_TAG, f"the body can't be read, {error!r}")

    __hash__ = None  # type: ignore[assignment]  # a mapping inside


def _checked(category: Category | None) -> Category | None:
    if category is not None and category.kind not in _KINDS:
        raise ValueError(f"a category must be text, a number or a truth value, not {category.kind}")
    return category


def _merged(sketches: Sequence[CategoryCounts]) -> CategoryCounts:
    counts: Counter[Category] = Counter()
    for sketch in sketches:
        counts.update(sketch.counts)
    return CategoryCounts(
        dict(counts), sum(sketch.n_null for sketch in sketches), sum(sketch.n_other for sketch in sketches)
    )
