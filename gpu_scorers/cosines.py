"""Cosines of many pairs of vectors at once: float64, never NaN, none where a vector has no direction."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def unit_rows(rows: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each row scaled to length 1, float64 of shape (n, d), and which rows have a direction.

    A row of zeros, or with NaN or an infinity, has none, and comes back as zeros. Scaled by the largest entry first, so
    no square overflows. O(n d).

    >>> units, usable = unit_rows([[3.0, 4.0], [0.0, 0.0], [1e300, 1e300]])
    >>> units.round(3).tolist(), usable.tolist()
    ([[0.6, 0.8], [0.0, 0.0], [0.707, 0.707]], [True, False, True])
    """
    given = np.array(rows, dtype=np.float64, ndmin=2)
    largest = np.abs(given).max(axis=1, initial=0.0, keepdims=True)
    usable = np.isfinite(largest[:, 0]) & (largest[:, 0] > 0.0)
    given[~usable], largest[~usable] = 0.0, 1.0
    scaled = given / largest
    length = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    length[~usable] = 1.0
    return scaled / length, usable


def row_cosines(a: ArrayLike, b: ArrayLike) -> list[float | None]:
    """Return the cosine of each row of `a` with the same row of `b` (or with the only one), from -1 to 1.

    None where a row has no direction. Raises ValueError where the shapes don't fit.

    >>> row_cosines([[1, 0], [0, 0], [0, 2]], [[1, 1]])
    [0.7071067811865475, None, 0.7071067811865475]
    """
    (first, first_usable), (second, second_usable) = unit_rows(a), unit_rows(b)
    figures = np.clip((first * second).sum(axis=1), -1.0, 1.0)
    usable = first_usable & second_usable
    return [float(figure) if ok else None for figure, ok in zip(figures, usable, strict=True)]
