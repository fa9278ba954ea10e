"""Replayed requests as columns, on their way from the service model to the encoder."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]


@dataclass(slots=True)
class Arrivals:
    """n requests as they came: `arrival_ns`, nanoseconds after the replay's begin, never falls; all columns int64."""

    arrival_ns: Ints
    input_tokens: Ints
    output_tokens: Ints

    def __len__(self) -> int:
        return len(self.arrival_ns)


@dataclass(slots=True)
class RequestBlock:
    """n requests as they were served.

    `start_ns` and `end_ns` are int64 nanoseconds after the replay's begin; the end is the request's event time.
    `fields` are columns of length n by the names of span_attributes.py: float64, int64, bool or text.
    """

    start_ns: Ints
    end_ns: Ints
    fields: Columns

    def __len__(self) -> int:
        return len(self.start_ns)
