"""Whole numbers in the fewest bytes: little-endian unsigned integers of 1, 2, 4 or 8 bytes."""

from typing import Any

import numpy as np

UNSIGNED: dict[int, np.dtype[np.unsignedinteger[Any]]] = {width: np.dtype(f"<u{width}") for width in (1, 2, 4, 8)}
_WIDTH_OF_BYTES = (1, 1, 2, 4, 4, 8, 8, 8, 8)


def width_of(largest: int) -> int:
    """Return how many bytes hold `largest`: 1, 2, 4 or 8.

    >>> width_of(255), width_of(256), width_of(2**32)
    (1, 2, 8)
    """
    return _WIDTH_OF_BYTES[(largest.bit_length() + 7) // 8]
