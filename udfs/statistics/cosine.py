"""The cosine of the angle between two vectors, and the angle, for any vectors that float64 can hold."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def cosine_similarity(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the cosine of the angle between two vectors, from -1 to 1; None where one is all zeros.

    A zero vector has no direction, so it has no cosine: leave it out of a mean and count it, don't take it for 0.
    Computed in float64 whatever the input; never above 1 or below -1 by rounding, and right also where squares would
    overflow or underflow. Symmetric to the last bit. Raises ValueError, naming the argument, unless both are vectors of
    finite numbers, and where their lengths differ. O(dimension), some tens of microseconds for 384.

    >>> cosine_similarity([1.0, 0.0], [1.0, 1.0])
    0.7071067811865475
    >>> cosine_similarity([0, 0, 0], [1, 2, 3]) is None
    True
    """
    directions = _directions(a, b)
    if directions is None:
        return None
    return max(-1.0, min(1.0, math.fsum(directions[0] * directions[1])))


def angle(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the angle between two vectors in radians, from 0 to pi; None where one is all zeros.

    Right for small angles too, where the arc cosine has lost its digits: half of it is the arc tangent of the lengths
    of the difference and the sum of both directions. Raises as `cosine_similarity` does.

    Source: Kahan, "How futile are mindless assessments of roundoff in floating-point computation?", 2006, section 12.

    >>> angle([1.0, 0.0], [0.0, 2.0]) == math.pi / 2, angle([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    (True, 0.0)
    """
    directions = _directions(a, b)
    if directions is None:
        return None
    return 2.0 * math.atan2(_length(directions[0] - directions[1]), _length(directions[0] + directions[1]))


def _directions(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    first, second = _checked(a, "a"), _checked(b, "b")
    if first.size != second.size:
        raise ValueError(f"b must be as long as a: {second.size} is not {first.size}")
    if not first.any() or not second.any():
        return None
    return _direction(first), _direction(second)


def _direction(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = vector / np.abs(vector).max()
    return np.asarray(scaled / _length(scaled))


def _length(vector: NDArray[np.float64]) -> float:
    return math.hypot(*vector.tolist())


def _checked(vector: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(vector)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "biufO"):
            raise ValueError("not one row of numbers")
        numbers = numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a vector of numbers, with nothing missing") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be a vector of finite numbers")
    return numbers
