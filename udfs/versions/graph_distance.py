"""How far the graphs of versions are apart: cosine distances of their diffusion embeddings (spec D7)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.version_graph import VersionGraph
from udfs.versions.diffusion_embedding import EmbeddingPolicy, SignatureScale, diffusion_embedding

Distances = list[list[float | None]]


def version_distances(graphs: Sequence[VersionGraph], policy: EmbeddingPolicy | None = None) -> Distances:
    """Return the matrix of distances between graphs; the first one is the baseline that sets the scale of features.

    From 0 (the same) to 2, and symmetric to the last bit; None where either graph has no nodes. Raises ValueError where
    the graphs have different numbers of features.
    """
    if not graphs:
        return []
    baseline = next((graph for graph in graphs if graph.node_ids), graphs[0])
    scale = SignatureScale.of(baseline)
    return cosine_distances(np.array([diffusion_embedding(graph, scale, policy) for graph in graphs]))


def cosine_distances(embeddings: NDArray[np.float64]) -> Distances:
    """Return 1 less the cosine of each pair of rows of length 1 or 0; None for a row of zeros. O(rows^2 columns).

    Taken from the difference, whose square is twice the distance: exactly 0 for equal rows, and precise for near ones.

    >>> cosine_distances(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    [[0.0, 1.0, None], [1.0, 0.0, None], [None, None, None]]
    """
    known = embeddings.any(axis=1)
    halves = np.square(embeddings[:, np.newaxis, :] - embeddings[np.newaxis, :, :]).sum(axis=2) / 2.0
    return [
        [float(min(half, 2.0)) if known[i] and known[j] else None for j, half in enumerate(row)]
        for i, row in enumerate(halves)
    ]
