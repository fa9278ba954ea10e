"""Graph edit distance: the least cost of turning one version's graph into the other's, by changing nodes and edges.

For small graphs, offline: the exact distance is NP-hard. Two figures enclose it:

    lower   half-edge assignment: each node with half of its edges is assigned at least cost
    upper   the cost of an edit path that exists, that of the same assignment, or of a search

Where they meet, which they do for equal graphs of any size, or where the search of the smallest graphs ended, the
distance is exact. Node names play no part: only features, edges and weights do.

Sources: spec D7; Riesen & Bunke, "Approximate graph edit distance computation by means of bipartite graph matching",
Image Vision Comput. 27, 2009 (upper); Blumenthal & Gamper, "Improved lower bounds for graph edit distance", IEEE
TKDE 30(3), 2018 (lower, there BRANCH).
"""

from dataclasses import dataclass

from schemas.version_graph import VersionGraph
from udfs.versions.graph_edits import NO_NODE, EditPolicy, Edits

_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class EditDistance:
    """The distance is from `lower` to `upper`, both finite; exact where they are equal.

    `matched` says which node of the first graph becomes which of the second along the path of cost `upper`; nodes that
    are not in it are taken out or put in.
    """

    lower: float
    upper: float
    matched: dict[str, str]

    @property
    def is_exact(self) -> bool:
        """Whether the distance is known."""
        return self.lower == self.upper


def graph_edit_distance(one: VersionGraph, other: VersionGraph, policy: EditPolicy | None = None) -> EditDistance:
    """Return bounds on the cost of turning `one` into `other`. Raises ValueError where a graph is too large, or where
    they have different numbers of features.

    Some 20 microseconds a pair of nodes for the bounds, and `most_steps` steps where the search comes to no end.

    >>> chain = VersionGraph("m", "1", ("a", "b"), ((), ()), ((0, 1, 1.0),), "")
    >>> longer = VersionGraph("m", "2", ("x", "y", "z"), ((), (), ()), ((0, 1, 1.0), (1, 2, 1.0)), "")
    >>> distance = graph_edit_distance(chain, longer)
    >>> distance.lower, distance.upper, distance.is_exact
    (2.0, 2.0, True)
    """
    policy = policy or EditPolicy()
    _check(one, other, policy)
    edits = Edits.between(one, other, policy)
    lower, mapping = edits.assigned()
    upper = edits.cost(mapping)
    searched = max(edits.n, edits.m) <= policy.exact_nodes
    if searched and upper - lower > _EQUAL:
        search = _Search(edits, policy.most_steps, mapping, upper)
        search.extend([], 0.0)
        mapping, upper = search.mapping, search.upper
        lower = upper if search.is_complete else lower
    lower = upper if upper - lower <= _EQUAL else lower
    matched = {one.node_ids[i]: other.node_ids[j] for i, j in enumerate(mapping) if j != NO_NODE}
    return EditDistance(lower, upper, matched)


def _check(one: VersionGraph, other: VersionGraph, policy: EditPolicy) -> None:
    for graph in (one, other):
        if len(graph.node_ids) > policy.most_nodes:
            problem = f"version {graph.version} has {len(graph.node_ids)} nodes, and the edit distance takes at most"
            raise ValueError(f"{problem} {policy.most_nodes}; compare embeddings instead")
    if one.node_ids and other.node_ids and one.n_features != other.n_features:
        raise ValueError(f"the graphs have {one.n_features} and {other.n_features} features a node")


class _Search:
    """Depth first over what each node becomes, cutting off what can't be below the best path so far."""

    def __init__(self, edits: Edits, most_steps: int, mapping: list[int], upper: float) -> None:
        self.edits, self.steps_left = edits, most_steps
        self.mapping, self.upper = mapping, upper

    @property
    def is_complete(self) -> bool:
        return self.steps_left > 0

    def extend(self, mapping: list[int], cost: float) -> None:
        edits, i = self.edits, len(mapping)
        free = [j for j in range(edits.m) if j not in mapping]
        if i == edits.n:
            cost += edits.put_rest_in(free)
            if cost < self.upper:
                self.mapping, self.upper = mapping, cost
            return
        for j in sorted([*free, NO_NODE], key=lambda j: edits.branch[i, j if j != NO_NODE else edits.m + i]):
            if self.steps_left <= 0:
                return
            self.steps_left -= 1
            reached = cost + edits.step(mapping, i, j)
            if reached + edits.rest(i + 1, [k for k in free if k != j]) < self.upper - _EQUAL:
                self.extend([*mapping, j], reached)
