"""What makes two category values the same category: kind and value, so that 1, "1" and True are three.

Python's own equality would merge True with 1, and ordering mixed types raises; a category is compared by neither.
"""

import math
from collections.abc import Hashable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Category(NamedTuple):
    """One category. `kind` is `text`, `number`, `truth`, `rest`, or the type's name for any other hashable value."""

    kind: str
    value: Hashable


OTHER = Category("rest", "other")
"""Everything that a bounded set of categories does not name; no value of a record can be it."""


def category_of(value: Any) -> Category | None:
    """Return the category of a value, or None for a null: None, NaN, NaT and NA.

    A number is one category whether it came as 1, 1.0 or Decimal(1): a column of integers turns to floats by its first
    null, and that is no drift. numpy's scalars are what they hold. Raises ValueError for a value that has no hash.

    >>> category_of(1) == category_of(np.float32(1.0)), category_of(True) == category_of(1), category_of("1")
    (True, False, Category(kind='text', value='1'))
    >>> category_of(float("nan")) is None
    True
    """
    if value is None or isinstance(value, Category):
        return value
    if isinstance(value, str):
        return Category("text", str(value))
    if isinstance(value, bool | np.bool_):
        return Category("truth", bool(value))
    if isinstance(value, int | np.integer):
        return Category("number", int(value))
    if isinstance(value, float | np.floating | Decimal):
        return _of_float(value)
    return _of_rest(value)


def _of_float(value: Any) -> Category | None:
    if math.isnan(value):
        return None
    is_whole = math.isfinite(value) and value == int(value)
    return Category("number", int(value) if is_whole else float(value))


def _of_rest(value: Any) -> Category | None:
    if value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return None
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(f"a category must be hashable, not {type(value).__name__}") from error
    return Category(type(value).__name__, value)
