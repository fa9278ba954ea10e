"""Split log: one log sketch for each value of a label, of a bounded number of labels.

Beyond `limit` labels the ones of smallest hash are kept and all others are one sketch, `other`. A label that is kept in
the whole was kept in every part it occurs in (`udfs.sketches.name_sample` says why), so its sketch is of all its
values, whatever was merged in whatever order. Memory: O(limit) log sketches.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from udfs.parts import join_parts, split_parts
from udfs.sketches.log import LogSketch
from udfs.sketches.name_sample import short_name, smallest_by_hash


@dataclass(frozen=True, slots=True)
class SplitBounds:
    """What must be the same in all splits that are merged: `always` is kept whatever its hash, and beyond `limit`."""

    limit: int
    always: str | None = None
    relative_accuracy: float = 0.01

    def kept(self, labels: Iterable[str]) -> set[str]:
        """Return which of the labels are kept by name."""
        present = set(labels)
        return smallest_by_hash(present - {self.always}, self.limit) | (present & {self.always})


@dataclass(frozen=True)
class SplitLog:
    """A sample by label. `other` pools the labels that are not kept, `n_unlabelled` counts rows without one."""

    sketches: Mapping[str, LogSketch] = field(default_factory=dict)
    other: LogSketch | None = None
    n_unlabelled: int = 0

    @classmethod
    def from_values(cls, values: Any, labels: Iterable[Any], bounds: SplitBounds) -> "SplitLog":
        """Sketch values by the label at the same position; a label that is no text counts as none. O(n log n).

        Raises ValueError as `LogSketch.from_values` does, and unless there are as many labels as values.

        >>> split = SplitLog.from_values([1.0, 2.0, 3.0], ["a", "b", None], SplitBounds(9))
        >>> {label: sketch.n for label, sketch in split.sketches.items()}, split.n_unlabelled
        ({'a': 1, 'b': 1}, 1)
        """
        places: defaultdict[str, list[int]] = defaultdict(list)
        n_unlabelled = 0
        column = values if isinstance(values, np.ndarray) else _objects(values)
        for place, (label, _) in enumerate(zip(labels, column, strict=True)):
            if isinstance(label, str):
                places[short_name(label)].append(place)
            else:
                n_unlabelled += 1
        kept = bounds.kept(places)
        rest = [place for label, of_label in places.items() if label not in kept for place in of_label]
        accuracy = bounds.relative_accuracy
        sketches = {label: LogSketch.from_values(column[places[label]], accuracy) for label in sorted(kept)}
        return cls(sketches, LogSketch.from_values(column[rest], accuracy) if rest else None, n_unlabelled)

    def by_size(self) -> list[str]:
        """Return the labels kept, most values first, ties by name."""
        return sorted(self.sketches, key=lambda label: (-self.sketches[label].n, label))

    @classmethod
    def merge_all(cls, data: Iterable[bytes], bounds: SplitBounds) -> "SplitLog":
        """Return the split of all samples pooled, straight from their bytes. O(bytes).

        >>> bounds = SplitBounds(9)
        >>> slices = [SplitLog.from_values([1.0, 5.0], labels, bounds) for labels in (["a", "b"], ["a", "a"])]
        >>> SplitLog.merge_all([one.to_bytes() for one in slices], bounds).by_size()
        ['a', 'b']
        """
        parts: defaultdict[str, list[bytes]] = defaultdict(list)
        others: list[bytes] = []
        n_unlabelled = 0
        for one in data:
            head, *of_labels = split_parts(one)
            unlabelled, *labels = split_parts(head)
            n_unlabelled += int.from_bytes(unlabelled, "little")
            others.append(of_labels.pop())
            for label, sketch in zip(labels, of_labels, strict=True):
                parts[label.decode()].append(sketch)
        kept = bounds.kept(parts)
        others = [one for one in others if one]
        others += [sketch for label, of_label in parts.items() if label not in kept for sketch in of_label]
        accuracy = bounds.relative_accuracy
        sketches = {label: LogSketch.merge_all(parts[label], accuracy) for label in sorted(kept)}
        return cls(sketches, LogSketch.merge_all(others, accuracy) if others else None, n_unlabelled)

    def to_bytes(self) -> bytes:
        """Return the split as bytes: `udfs.parts` of the labels and the sketches, the same for equal splits."""
        head = join_parts([self.n_unlabelled.to_bytes(8, "little"), *(label.encode() for label in self.sketches)])
        other = b"" if self.other is None else self.other.to_bytes()
        return join_parts([head, *(sketch.to_bytes() for sketch in self.sketches.values()), other])


def _objects(values: Any) -> np.ndarray[Any, Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = list(values)
    return column
