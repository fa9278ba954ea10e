"""Two histograms brought over the same bins: the way into every comparison of categories or bins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from udfs.statistics.categories import Category, category_of

Histogram: TypeAlias = ArrayLike | Mapping[Any, float] | pd.Series
"""Counts or shares: an array over bins both sides share, or a mapping (or Series, by its index) from category."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Two histograms over the same bins, float64 of one shape, and what was counted under a null category."""

    reference: NDArray[np.float64]
    window: NDArray[np.float64]
    n_reference_null: float = 0.0
    n_window_null: float = 0.0


def aligned(
    reference: Histogram,
    window: Histogram,
    *,
    names: tuple[str, str] = ("reference", "window"),
) -> Aligned:
    """Bring two histograms over the same bins.

    Of mappings the bins are the union of their categories (`udfs.statistics.categories` says when two are the same); a
    null category is no bin, its count is kept apart. Raises ValueError, with the argument's name from `names`, unless
    both are mappings or both arrays of one length, and every entry is a finite number of at least 0. O(bins).

    >>> both = aligned({"a": 1, None: 2}, {"b": 3, "a": 4})
    >>> both.reference.tolist(), both.window.tolist(), both.n_reference_null
    ([1.0, 0.0], [4.0, 3.0], 2.0)
    """
    first, second = _by_category(reference), _by_category(window)
    if first is not None and second is not None:
        return _aligned_mappings(first, second, names)
    if first is not None or second is not None:
        raise ValueError(f"{names[0]} and {names[1]} must both be mappings, or both arrays over the same bins")
    ours, theirs = amounts(reference, names[0]), amounts(window, names[1])
    if ours.size != theirs.size:
        raise ValueError(f"{names[1]} must have as many bins as {names[0]}: {theirs.size} is not {ours.size}")
    return Aligned(ours, theirs)


def _by_category(histogram: Histogram) -> list[tuple[Category | None, Any]] | None:
    if isinstance(histogram, Mapping | pd.Series):
        return [(category_of(key), entry) for key, entry in histogram.items()]
    return None


def _aligned_mappings(
    first: list[tuple[Category | None, Any]], second: list[tuple[Category | None, Any]], names: tuple[str, str]
) -> Aligned:
    bins: dict[Category, int] = {}
    for category, _ in [*first, *second]:
        if category is not None:
            bins.setdefault(category, len(bins))
    sides = []
    for entries, name in ((first, names[0]), (second, names[1])):
        column = amounts([amount for _, amount in entries], name)
        places = np.array([len(bins) if category is None else bins[category] for category, _ in entries], np.int64)
        sides.append(np.bincount(places, weights=column, minlength=len(bins) + 1).astype(np.float64))
    return Aligned(sides[0][:-1], sides[1][:-1], float(sides[0][-1]), float(sides[1][-1]))


def amounts(entries: Any, name: str) -> NDArray[np.float64]:
    """Return the entries as float64. Raises ValueError, with `name`, on anything but finite numbers of at least 0.

    >>> amounts([1, 2.5], "weights").tolist()
    [1.0, 2.5]
    """
    try:
        column = np.asarray(entries)
        if column.ndim != 1 or (column.size and column.dtype.kind not in "biufO"):
            raise ValueError("not one row of numbers")
        column = column.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be one row of numbers, with nothing missing") from error
    if not np.isfinite(column).all() or (column < 0).any():
        raise ValueError(f"{name} must be finite numbers of at least 0")
    return column


def check_whole(column: NDArray[np.float64] | float, name: str) -> None:
    """Raise ValueError, with `name`, unless every amount is whole: shares have no sample size and can't be tested.

    >>> check_whole(np.array([0.5, 0.5]), "counts")
    Traceback (most recent call last):
    ValueError: counts must be whole numbers: counts, not shares
    """
    if np.any(column != np.floor(column)):
        raise ValueError(f"{name} must be whole numbers: counts, not shares")
