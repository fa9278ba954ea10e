"""Cosines of many vectors to one direction, each the same to the last bit whatever vectors stand beside it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def cosines_to(vectors: Sequence[Any] | NDArray[Any], direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of every vector to `direction`: float64 of shape (n,), NaN where there is none.

    `direction` is float64 of length 1. A vector has no cosine where it is None, zero, of another dimension, or has
    NaN or an infinity in it. Within -1 and 1. Raises ValueError where a vector holds what is no number.
    O(n dimension) time and memory.

    >>> cosines_to([[3.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0], None], np.array([1.0, 0.0])).round(3).tolist()
    [1.0, 0.707, nan, nan, nan]
    """
    shape = direction.shape
    rows = [place for place, vector in enumerate(vectors) if vector is not None and np.shape(vector) == shape]
    cosines = np.full(len(vectors), np.nan)
    if not rows:
        return cosines
    try:
        matrix = np.array([vectors[place] for place in rows], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("an embedding must be numbers") from error
    largest = np.abs(matrix).max(axis=1)
    usable = np.isfinite(matrix).all(axis=1) & (largest > 0)
    scaled = matrix[usable] / largest[usable, np.newaxis]  # entries up to 1: no square can overflow or all underflow
    # Sums along rows, not a matrix product: a library may add up a product in another order for other row counts.
    lengths = np.sqrt(np.sum(np.square(scaled), axis=1))
    found = np.sum(scaled * direction, axis=1) / lengths
    cosines[np.array(rows)[usable]] = np.clip(found, -1.0, 1.0)
    return cosines
