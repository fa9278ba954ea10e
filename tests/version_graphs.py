"""Graphs of model versions for the tests: small ones by hand, random ones by seed."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson

from schemas.version_graph import VersionGraph, parse_version_graph

Edge = tuple[int, int] | tuple[int, int, float]


def document(features: Sequence[Sequence[float]], edges: Iterable[Edge], version: str = "1") -> dict[str, Any]:
    """A snapshot as a JSON document; node i is called n000i, an edge without weight weighs 1."""
    names = [f"n{number:04d}" for number in range(len(features))]
    return {
        "schema_version": "1.0.0",
        "model": "chat",
        "version": version,
        "nodes": [{"id": name, "features": list(row)} for name, row in zip(names, features, strict=True)],
        "edges": [
            {"source": names[edge[0]], "target": names[edge[1]], "weight": edge[2] if len(edge) == 3 else 1.0}
            for edge in edges
        ],
    }


def graph(features: Sequence[Sequence[float]], edges: Iterable[Edge], version: str = "1") -> VersionGraph:
    """The same, loaded."""
    return parse_version_graph(orjson.dumps(document(features, edges, version)), f"v{version}.json")


def plain(n: int, edges: Iterable[Edge]) -> VersionGraph:
    """A graph of `n` nodes without features."""
    return graph([()] * n, edges)


def random_edges(n: int, count: int, seed: int) -> list[tuple[int, int, float]]:
    """`count` different edges between `n` nodes, without loops, weights from 0.5 to 1.5."""
    rng = np.random.default_rng(seed)
    upper = np.column_stack(np.triu_indices(n, 1))
    chosen = upper[rng.choice(len(upper), count, replace=False)]
    return [(int(i), int(j), float(weight)) for (i, j), weight in zip(chosen, rng.random(count) + 0.5, strict=True)]


def random_graph(n: int, edges: int, n_features: int, seed: int) -> VersionGraph:
    """A random graph with normal features."""
    features = np.random.default_rng(seed + 1_000_000).normal(size=(n, n_features))
    return graph(features.tolist(), random_edges(n, edges, seed), str(seed))
