"""Labels headers seen so far, each read once: many requests have the same.

Lives in the worker beside the slicer and only spares time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from schemas.request_headers import LABELS
from udfs.slicing.fields import text
from udfs.slicing.series_names import series_name

MOST_KEPT = 10_000  # some 16 MB; beyond it the table starts anew
NO_CODE = 0  # of what can't be read
_PLACES = {name: place for place, name in enumerate(LABELS)}


class LabelTable:
    """A code for each distinct header; codes are valid until the next call of `codes`."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._codes: dict[bytes | None, int] = {None: NO_CODE}
        self._labels: list[list[Any] | None] = [None]
        self._series: dict[tuple[str, ...], list[int]] = {}
        self._names: dict[tuple[str, ...], dict[str, int]] = {}

    def codes(self, headers: Sequence[bytes | None]) -> NDArray[np.int64]:
        """Return each header's code, `NO_CODE` where it is None or can't be read. O(headers)."""
        if len(self._codes) > MOST_KEPT:
            self._clear()
        known = self._codes
        for header in set(headers).difference(known):
            labels = _read(header or b"")
            known[header] = NO_CODE if labels is None else len(self._labels)
            if labels is not None:
                self._labels.append(labels)
        return np.fromiter(map(known.__getitem__, headers), dtype=np.int64, count=len(headers))

    def texts(self, name: str, codes: NDArray[np.int64]) -> list[str | None]:
        """Return the value of one label for each code."""
        place = _PLACES[name]
        distinct, where = np.unique(codes, return_inverse=True)
        values = [text((self._labels[code] or [])[place]) for code in distinct.tolist()]
        return [values[at] for at in where.tolist()]

    def series(self, group_by: tuple[str, ...], codes: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
        """Return the series that `codes` belong to, each once, and for each code which is its own."""
        of_header = self._series.setdefault(group_by, [])
        names = self._names.setdefault(group_by, {})
        places = [_PLACES[name] for name in group_by]
        for labels in self._labels[len(of_header) :]:
            name = series_name("" if labels is None else text(labels[place]) or "" for place in places)
            of_header.append(names.setdefault(name, len(names)))
        distinct, where = np.unique(np.array(of_header, dtype=np.int64)[codes], return_inverse=True)
        all_names = list(names)
        return [all_names[place] for place in distinct.tolist()], where


def _read(header: bytes) -> list[Any] | None:
    try:
        labels = orjson.loads(header)
    except orjson.JSONDecodeError:
        return None
    return labels if isinstance(labels, list) and len(labels) == len(LABELS) else None
