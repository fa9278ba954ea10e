"""Snapshots of a model version's graph: nodes with features, undirected weighted edges, checked against a JSON Schema.

A snapshot is content-addressed: its digest is over the graph in canonical order (nodes by id, edges by nodes), so
the order in which a file lists them doesn't matter, and any change of meaning gives another digest.

Source: spec D7; `version_graph.schema.json` (draft 2020-12) is the contract.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from schemas.ids import content_digest
from schemas.json_contract import first_fault
from schemas.strict_json import loads_strictly

SCHEMA = "version_graph.schema.json"
SCHEMA_VERSION = "1.0.0"


class VersionGraphError(ValueError):
    """A snapshot that breaks the contract: names the file, the field and the remedy."""

    def __init__(self, file: str, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{file}: {field}: {problem}. {remedy}")
        self.file, self.field, self.problem, self.remedy = file, field, problem, remedy


@dataclass(frozen=True, slots=True)
class VersionGraph:
    """A valid snapshot in canonical order.

    `node_ids` are sorted; `features[i]` are those of node i, as many for each node. An edge is (i, j, weight) with
    i <= j, each pair of nodes at most once, sorted, weight above 0 and finite.
    """

    model: str
    version: str
    node_ids: tuple[str, ...]
    features: tuple[tuple[float, ...], ...]
    edges: tuple[tuple[int, int, float], ...]
    digest: str

    @property
    def n_features(self) -> int | None:
        """How many features each node has; None where there is no node."""
        return len(self.features[0]) if self.features else None


def load_version_graph(path: str | Path) -> VersionGraph:
    """Read and check the snapshot at `path`. Raises VersionGraphError naming file, field and remedy."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise VersionGraphError(str(path), "(file)", problem, "Give a path to a snapshot in JSON") from None
    return parse_version_graph(text, str(path))


def parse_version_graph(text: bytes, file: str) -> VersionGraph:
    """Check the snapshot in `text`; `file` is what messages call it. Raises VersionGraphError. O(text).

    >>> nodes = b'[{"id": "b", "features": [1]}, {"id": "a", "features": [2]}]'
    >>> edges = b'[{"source": "b", "target": "a", "weight": 0.5}]'
    >>> head = b'{"schema_version": "1.0.0", "model": "chat", "version": "7", "nodes": '
    >>> graph = parse_version_graph(head + nodes + b', "edges": ' + edges + b'}', "v7.json")
    >>> graph.node_ids, graph.features, graph.edges
    (('a', 'b'), ((2.0,), (1.0,)), ((0, 1, 0.5),))
    """
    try:
        document = loads_strictly(text)
    except ValueError as error:
        raise VersionGraphError(file, "(file)", f"is not JSON: {error}", "Write one JSON object") from None
    if fault := first_fault(document, SCHEMA):
        raise VersionGraphError(file, *fault)
    _check_nodes(document["nodes"], file)
    return _canonical(document, _joined(document, file))


def _check_nodes(nodes: list[dict[str, Any]], file: str) -> None:
    seen: dict[str, int] = {}
    for number, node in enumerate(nodes):
        if (first := seen.setdefault(node["id"], number)) != number:
            problem = f"{node['id']!r} is the id of nodes.{first} too"
            raise VersionGraphError(file, f"nodes.{number}.id", problem, "Give every node a name of its own")
        found, expected = len(node["features"]), len(nodes[0]["features"])
        if found != expected:
            problem = f"has {found} numbers where nodes.0.features has {expected}"
            remedy = "Give every node the same features, in the same order"
            raise VersionGraphError(file, f"nodes.{number}.features", problem, remedy)


def _joined(document: dict[str, Any], file: str) -> dict[tuple[str, str], float]:
    """Return the weight of each pair of node ids, in order within the pair; repeated edges added up."""
    known = {node["id"] for node in document["nodes"]}
    weights: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for number, edge in enumerate(document["edges"]):
        for end in ("source", "target"):
            if edge[end] not in known:
                remedy = "List the node in nodes, or leave the edge out"
                problem = f"{edge[end]!r} is no node"
                raise VersionGraphError(file, f"edges.{number}.{end}", problem, remedy)
        if edge["weight"] > 0:
            low, high = sorted((edge["source"], edge["target"]))
            weights[low, high].append(float(edge["weight"]))
    return {pair: math.fsum(parts) for pair, parts in weights.items()}


def _canonical(document: dict[str, Any], joined: dict[tuple[str, str], float]) -> VersionGraph:
    nodes = sorted((node["id"], tuple(map(float, node["features"]))) for node in document["nodes"])
    position = {node_id: number for number, (node_id, _) in enumerate(nodes)}
    edges = sorted((position[low], position[high], weight) for (low, high), weight in joined.items())
    content = [SCHEMA_VERSION, document["model"], document["version"], nodes, edges]
    return VersionGraph(
        model=document["model"],
        version=document["version"],
        node_ids=tuple(node_id for node_id, _ in nodes),
        features=tuple(features for _, features in nodes),
        edges=tuple(edges),
        digest=content_digest(orjson.dumps(content)),
    )
