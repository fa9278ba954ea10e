"""A version's graph as matrices: weights, the random walk on it, and what each node's surroundings look like."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schemas.version_graph import VersionGraph

N_STRUCTURE = 2


@dataclass(frozen=True, eq=False)
class GraphMatrices:
    """The matrices of a graph of n nodes with d features.

    `features` is float64 of shape (n, d). `walk` is a sparse (n, n) matrix: row i says where a walker at node i goes
    next, in proportion to the weights of the edges; one at a node without an edge stays, so every row adds up to 1.
    `structure` is float64 of shape (n, 2): log(1 + weighted degree), and the chance that three steps around a triangle
    lead back.
    """

    features: NDArray[np.float64]
    walk: sparse.csr_array
    structure: NDArray[np.float64]


def graph_matrices(graph: VersionGraph) -> GraphMatrices:
    """Return the matrices of `graph`. A loop keeps a walker where it is, and is part of no triangle.

    O(n d + e sqrt(e)) of e edges.
    """
    n = len(graph.node_ids)
    features = np.array(graph.features, dtype=np.float64).reshape(n, graph.n_features or 0)
    weights = _symmetric(graph, n)
    degrees = np.asarray(weights.sum(axis=1), dtype=np.float64).reshape(n)
    alone = degrees == 0.0
    inverse = 1.0 / np.where(alone, 1.0, degrees)
    walk = sparse.csr_array(sparse.diags_array(inverse) @ weights + sparse.diags_array(alone.astype(np.float64)))
    structure = np.column_stack([np.log1p(degrees), _triangle_returns(weights, inverse)])
    return GraphMatrices(features, walk, structure)


def _symmetric(graph: VersionGraph, n: int) -> sparse.csr_array:
    table = np.array(graph.edges, dtype=np.float64).reshape(-1, 3)
    i, j, weight = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2]
    apart = i != j
    rows, columns = np.concatenate([i, j[apart]]), np.concatenate([j, i[apart]])
    return sparse.csr_array((np.concatenate([weight, weight[apart]]), (rows, columns)), shape=(n, n))


def _triangle_returns(weights: sparse.csr_array, inverse_degree: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each node the chance that a walk of three steps goes around a triangle.

    A triangle adds the same to each of its nodes: twice, for both directions, the product of its weights over that of
    its degrees. Each is found once, from its node of lowest degree, so that a hub costs no square of its degree.
    """
    root = sparse.diags_array(np.sqrt(inverse_degree))
    scaled = sparse.coo_array(root @ weights @ root)
    rank = np.argsort(np.argsort(np.diff(weights.indptr), kind="stable"), kind="stable")
    upward = rank[scaled.row] < rank[scaled.col]
    ends = (scaled.row[upward], scaled.col[upward])
    steps = sparse.csr_array((scaled.data[upward], ends), shape=scaled.shape)
    low_high = (steps @ steps).multiply(steps)
    middle = (steps.T @ steps).multiply(steps)
    total = low_high.sum(axis=1) + low_high.sum(axis=0) + middle.sum(axis=1)
    return 2.0 * np.asarray(total, dtype=np.float64).reshape(weights.shape[0])
