"""Heat map of the distances between versions (spec D7)."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from udfs.versions.graph_distance import Distances

MOST_FIGURES_IN_CELLS = 20  # above, they would overlap
UNKNOWN = "unknown"


def draw_distances(labels: Sequence[str], distances: Distances) -> Figure:
    """Return the heat map of a square matrix, with a label a row and column, and the figure in each cell.

    A distance that is not known (a graph without nodes) is grey and says so. The scale begins at 0 and ends at the
    largest distance there is.
    """
    n = len(labels)
    shown = np.array([[math.nan if distance is None else distance for distance in row] for row in distances])
    highest = max((distance for row in distances for distance in row if distance is not None), default=0.0)
    side = 3.0 + 0.55 * n
    figure = Figure(figsize=(side + 1.5, side), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor("lightgrey")
    image = axes.imshow(shown.reshape(n, n), cmap="viridis", vmin=0.0, vmax=highest or 1.0)
    figure.colorbar(image, ax=axes, label="cosine distance of diffusion embeddings")
    axes.set_xticks(range(n), labels, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(n), labels, parse_math=False)
    axes.set_title("distance between versions")
    if n <= MOST_FIGURES_IN_CELLS:
        for i, row in enumerate(distances):
            for j, distance in enumerate(row):
                is_dark = distance is not None and distance < 0.6 * highest
                axes.text(j, i, cell(distance), ha="center", va="center", color="white" if is_dark else "black")
    return figure


def cell(distance: float | None) -> str:
    """Return a distance as the map and the table show it.

    >>> cell(0.01234), cell(0.0), cell(0.00001), cell(None)
    ('0.0123', '0', '1e-05', 'unknown')
    """
    if distance is None:
        return UNKNOWN
    return f"{distance:.4f}" if distance >= 0.001 else f"{distance:.2g}"
