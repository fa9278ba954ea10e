"""Which features and which requests a reference is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jobs.kafka_client import ConfigurationError
from schemas.requests import REQUEST_FIELDS, numeric_field_names

ATTRIBUTES = "attributes."
TIMES = ("event_time_ms", "start_time_ms")
FEATURES = tuple(name for name in numeric_field_names() if name not in TIMES)
_FIELDS = {field.name for field in REQUEST_FIELDS}

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """`features`: numeric request fields and `attributes.NAME`; None asks for every numeric field the source fills.

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
            columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
        if not any(len(values) for values in columns.values()):
            what = f"no request where {self.condition}" if self.where else "no request"
            raise ConfigurationError(source, "(rows)", f"{what} has a numeric feature", "Widen the range or the filter")
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
        if name not in FEATURES and not name.startswith(ATTRIBUTES):
            remedy = f"Use attributes.NAME or one of {', '.join(FEATURES)}"
            raise ConfigurationError("command line", "--features", f"{name!r} is no numeric field of a request", remedy)
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
