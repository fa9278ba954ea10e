"""What the drift job asks of whatever judges windows: collect these inputs, sketch a slice, judge a window.

The job knows nothing else of a judge. For each slice of a series it gathers the values of `inputs` (in the JVM), calls
`sketch` once, and keeps only the bytes; for each sliding window it calls `judge` once with the sketches of its slices.
A judge travels inside the job graph: it must pickle, and reads nothing from a disk later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from schemas.verdicts import Verdict

Values = NDArray[np.float64] | NDArray[np.object_] | Sequence[Any]


class InputKind(Enum):
    """How a field's values reach `sketch`."""

    NUMBER = "DOUBLE"  # float64 array, null as NaN, or an object array with None
    TEXT = "STRING"  # object array of str, with None
    VECTOR = "ARRAY<DOUBLE>"  # object array of float64 arrays, with None


@dataclass(frozen=True)
class Input:
    """One field of a request that a judge collects: its name, or `attributes.NAME`."""

    field: str
    kind: InputKind


class WindowJudge(Protocol):
    """One test of the windows of one monitor.

    `inputs` are collected together: position i of each array is the same request. `sketch` must not depend on the
    order of requests within the slice, `judge` not on the order of `sketches`: a replay delivers either differently.
    The same values must give the same bytes.
    """

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What to collect, at least one field."""
        ...

    def sketch(self, *columns: Values) -> bytes:
        """Return the sketch of one slice: an array for each input, all of the same length."""
        ...

    def judge(self, labels: Sequence[str], window_end_ms: int, sketches: Iterable[bytes]) -> list[Verdict]:
        """Return the verdicts of the window that ends at `window_end_ms` (epoch milliseconds, exclusive).

        `labels` are the values of the monitor's group-by labels in their order; `sketches` those of the window's
        slices, at least one. Usually one verdict; none where there is nothing to say, more where one sketch serves
        several findings.
        """
        ...
