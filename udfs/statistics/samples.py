"""A sample as every statistic takes it: float64 values, with nulls and NaN counted and left out."""

import math
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


class Sample(NamedTuple):
    """Usable values in ascending order, and how many others there were.

    `values` is float64, sorted, infinities at its ends; `n_null` counts None, NaN, NA and masked entries; `n_infinite`
    counts the infinities among `values`.
    """

    values: NDArray[np.float64]
    n_null: int
    n_infinite: int

    @property
    def n(self) -> int:
        """How many usable values there are."""
        return int(self.values.size)


def sample(values: ArrayLike | pd.Series) -> Sample:
    """Return the usable values of a list, array, masked array or pandas series.

    Integers beyond 2**53 are rounded to float64. Raises ValueError for text, dates, complex numbers, integers beyond
    float64 and more than one dimension. O(n log n) time; the input is left alone.

    >>> s = sample([3, None, float("-inf"), float("nan"), 1])
    >>> s.values.tolist(), s.n_null, s.n_infinite
    ([-inf, 1.0, 3.0], 2, 1)
    """
    floats = _float64(values)
    if floats.ndim != 1:
        raise ValueError(f"a sample must have one dimension, not {floats.ndim}")
    ordered = floats.copy()
    ordered.sort()  # NaN last
    n_null = _n_nan_at_the_end(ordered)
    usable = ordered[: ordered.size - n_null] if n_null else ordered
    return Sample(usable, n_null, _n_infinite(usable))


def _n_nan_at_the_end(ordered: NDArray[np.float64]) -> int:
    if not ordered.size or (last := ordered.item(-1)) == last:  # as Python's float: numpy's takes thrice the time
        return 0
    return int(np.count_nonzero(np.isnan(ordered)))


def _n_infinite(ordered: NDArray[np.float64]) -> int:
    if not ordered.size or (ordered.item(0) != -math.inf and ordered.item(-1) != math.inf):
        return 0
    return int(np.count_nonzero(np.isinf(ordered)))


def _float64(values: Any) -> NDArray[np.float64]:
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values  # the way of every slice: no further checks
    if isinstance(values, np.ma.MaskedArray):
        return np.where(values.mask, np.nan, _float64(values.data))
    if isinstance(values, pd.Series | pd.Index) and values.dtype != object:
        _refuse_kind(values.dtype.kind)
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    array = values if isinstance(values, np.ndarray) else _array(values)
    if array.dtype == object:
        return _from_objects(array)
    _refuse_kind(array.dtype.kind)
    return array.astype(np.float64, copy=False)


def _array(values: Any) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different length
        raise ValueError("a sample must have one dimension") from error


def _refuse_kind(kind: str) -> None:
    if kind not in "biuf":
        raise ValueError(f"a sample must be numbers, not numpy kind {kind!r}")


def _from_objects(array: NDArray[Any]) -> NDArray[np.float64]:
    null = pd.isna(array)
    present = array[~null]
    wrong = [kind.__name__ for kind in set(map(type, present)) if not issubclass(kind, Real | Decimal)]
    if wrong:
        raise ValueError(f"a sample must be numbers, not {', '.join(sorted(wrong))}")
    floats = np.full(array.shape, np.nan)
    try:
        floats[~null] = present.astype(np.float64)
    except OverflowError as error:
        raise ValueError("a sample must be numbers that float64 can hold") from error
    return floats
