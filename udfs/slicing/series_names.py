"""The name of a series: its labels' values as a JSON array. A label that a request lacks is the empty text."""

from collections.abc import Iterable

import orjson

UNGROUPED = "[]"


def series_name(labels: Iterable[str]) -> str:
    """Return the name.

    >>> series_name(["chat", ""])
    '["chat",""]'
    """
    return orjson.dumps(list(labels)).decode()
