"""A figure as a notebook shows it, without pyplot and its global state."""

import io
from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG that Jupyter shows when it is the last value of a cell."""

    png: bytes

    def _repr_png_(self) -> bytes:
        return self.png


def picture(figure: Figure) -> Picture:
    """Return `figure` as a picture.

    >>> picture(Figure(figsize=(1, 1))).png[1:4]
    b'PNG'
    """
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return Picture(file.getvalue())
