"""The usable requests of a batch as columns, wherever each was read from: its JSON, or its headers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from udfs.judging.window_judge import Input, InputKind, Values
from udfs.slicing.fields import Bodies, column, raw_values, text
from udfs.slicing.from_headers import FromHeaders
from udfs.slicing.series_names import series_name

Series = tuple[list[str], NDArray[np.int64]]


class FromBodies:
    """Requests read from their JSON; `rows` are their places in the batch, int64."""

    def __init__(self, bodies: Bodies, rows: NDArray[np.int64]) -> None:
        self.rows = rows
        self._bodies = bodies

    def column(self, given: Input) -> Values:
        """Return one value a request."""
        return column(self._bodies, given)

    def series(self, group_by: tuple[str, ...]) -> Series:
        """Return the names of the series by one or more labels, and for each request which is its own."""
        found: dict[tuple[str, ...], int] = {}
        rows = zip(*(_labels(self._bodies, label) for label in group_by), strict=True)
        codes = [found.setdefault(row, len(found)) for row in rows]
        return list(map(series_name, found)), np.array(codes, dtype=np.int64)


class FromBoth:
    """Requests of which some were read from headers and some from their JSON, in the order of the batch."""

    def __init__(self, parts: Sequence[FromHeaders | FromBodies]) -> None:
        self._parts = parts
        rows = np.concatenate([part.rows for part in parts])
        self._order = np.argsort(rows)
        self.rows = rows[self._order]

    def column(self, given: Input) -> Values:
        """Return one value a request."""
        columns = [part.column(given) for part in self._parts]
        if given.kind is InputKind.NUMBER:
            return np.concatenate(columns, dtype=np.float64)[self._order]
        values = [value for values in columns for value in values]
        return [values[position] for position in self._order.tolist()]

    def series(self, group_by: tuple[str, ...]) -> Series:
        """Return the names of the series by one or more labels, and for each request which is its own."""
        found: dict[str, int] = {}
        codes = []
        for part in self._parts:
            names, of_part = part.series(group_by)
            known = np.array([found.setdefault(name, len(found)) for name in names], dtype=np.int64)
            codes.append(known[of_part])
        return list(found), np.concatenate(codes)[self._order]


RequestsTaken = FromHeaders | FromBodies | FromBoth


def _labels(bodies: Bodies, label: str) -> list[str]:
    values = raw_values(bodies, label)
    if set(map(type, values)) == {str}:
        return values
    return [text(value) or "" for value in values]
