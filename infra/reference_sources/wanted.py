"""Which features and which requests a reference is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jobs.kafka_client import ConfigurationError
from schemas.field_types import FieldType
from schemas.requests import REQUEST_FIELDS, numeric_field_names

ATTRIBUTES = "attributes."
TIMES = ("event_time_ms", "start_time_ms")
FEATURES = tuple(name for name in numeric_field_names() if name not in TIMES)
# Every value of these differs, or stands for a person: no category is seen twice, or none may be kept.
IDENTIFIERS = ("trace_id", "span_id", "parent_span_id", "user_hash")
CATEGORIES = tuple(
    field.name
    for field in REQUEST_FIELDS
    if field.type in {FieldType.STRING, FieldType.BOOL} and field.name not in IDENTIFIERS
)
_FIELDS = {field.name for field in REQUEST_FIELDS}

Columns = dict[str, NDArray[np.float64] | NDArray[np.object_]]
"""Numbers as float64, nulls as NaN; of `CATEGORIES` texts as objects, nulls as None, true and false spelled out."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """`features`: request fields and `attributes.NAME`; None asks for every numeric field the source fills.

    Fields of text and truth values (`CATEGORIES`) are category features, and must be asked for by name.

    `where` maps fields to the text of the value that a request must have in them.
    """

    features: tuple[str, ...] | None
    where: Mapping[str, str]

    @property
    def candidates(self) -> tuple[str, ...]:
        """The features to look for."""
        return FEATURES if self.features is None else self.features

    def kept(self, source: str, columns: Columns) -> Columns:
        """Return the columns to build from: all asked for, or those with a value (NaN is none).

        Raises ConfigurationError naming the source and the feature when there is nothing to build from.
        """
        if self.features is None:
            columns = {name: values for name, values in columns.items() if not pd.isna(values).all()}
        if not any(len(values) for values in columns.values()):
            what = f"no request where {self.condition}" if self.where else "no request"
            raise ConfigurationError(source, "(rows)", f"{what} has a feature", "Widen the range or the filter")
        return columns

    @property
    def condition(self) -> str:
        """`where` in words, empty where there is none."""
        return " and ".join(f"{field}={value}" for field, value in self.where.items())


def wanted(features: str | None, where: Iterable[str]) -> Wanted:
    """Read `a,b` and `field=value` texts. Raises ConfigurationError naming the option and what is allowed.

    >>> wanted("input_tokens,attributes.x", ["tenant=acme"]).where
    {'tenant': 'acme'}
    """
    names = None if features is None else tuple(name.strip() for name in features.split(",") if name.strip())
    for name in names or ():
        if name not in (*FEATURES, *CATEGORIES) and not name.startswith(ATTRIBUTES):
            remedy = f"Use attributes.NAME or one of {', '.join((*FEATURES, *CATEGORIES))}"
            raise ConfigurationError("command line", "--features", f"{name!r} is no feature of a request", remedy)
    filters = {}
    for text in where:
        field, equals, value = text.partition("=")
        if not equals or (field not in _FIELDS and not field.startswith(ATTRIBUTES)):
            problem, remedy = f"{text!r} is no field=value of a request", "Write for example --where tenant=acme"
            raise ConfigurationError("command line", "--where", problem, remedy)
        filters[field] = value
    return Wanted(names, filters)


def as_text(value: Any) -> str:
    """Return a value as `--where` spells it: `true`, `7`, `acme`.

    >>> as_text(True), as_text(7.0), as_text("acme")
    ('true', '7', 'acme')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_categories(values: Iterable[Any]) -> NDArray[np.object_]:
    """Return values as a category feature keeps them, nulls as None.

    >>> as_categories([True, "acme", None]).tolist()
    ['true', 'acme', None]
    """
    texts = [None if value is None else as_text(value) for value in values]
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    return column
