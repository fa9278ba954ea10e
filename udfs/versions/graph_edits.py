"""What it costs to turn one graph into another: single edits, edit paths, and a node with half of its edges."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from schemas.version_graph import VersionGraph

Floats = NDArray[np.float64]
NO_NODE = -1
"""What a node of the first graph becomes when it is taken out."""


@dataclass(frozen=True, slots=True)
class EditPolicy:
    """What an edit costs, and how far it is worth searching; all ours.

    A node or an edge costs `node` or `edge` to put in or to take out. Changing one costs in proportion: `node` where
    features differ by `feature_scale` (root mean square), `edge` where weights differ by `weight_scale`; never more
    than taking it out and putting the other in. Graphs of up to `exact_nodes` nodes are searched, for at most
    `most_steps` steps (some 10 s); graphs of more than `most_nodes` are refused, as bounds cost O(n^2) assignments.
    """

    node: float = 1.0
    edge: float = 1.0
    feature_scale: float = 1.0
    weight_scale: float = 1.0
    exact_nodes: int = 10
    most_steps: int = 200_000
    most_nodes: int = 60


@dataclass(frozen=True, eq=False)
class Edits:
    """Costs between two graphs of n and m nodes.

    `change` is (n, m): changing the features and the loop of one node into another's. `first` and `second` are the
    weights, (n, n) and (m, m), without loops; 0 is no edge. `branch` is (n + m, n + m): the least cost of a node with
    half of its edges, of assigning i to j, of taking i out (columns from m on), or putting j in (rows from n on).
    """

    change: Floats
    take_out: Floats
    put_in: Floats
    first: Floats
    second: Floats
    branch: Floats
    policy: EditPolicy

    @classmethod
    def between(cls, one: VersionGraph, other: VersionGraph, policy: EditPolicy) -> "Edits":
        """Return the costs between two graphs with the same number of features. O(n m) assignments of their edges."""
        first, second = _weights(one), _weights(other)
        loops, other_loops = np.diagonal(first).copy(), np.diagonal(second).copy()
        np.fill_diagonal(first, 0.0)
        np.fill_diagonal(second, 0.0)
        change = _feature_changes(one, other, policy) + _edge_costs(loops[:, None], other_loops[None, :], policy)
        take_out = policy.node + _edge_costs(loops, np.zeros_like(loops), policy)
        put_in = policy.node + _edge_costs(other_loops, np.zeros_like(other_loops), policy)
        parts = cls(change, take_out, put_in, first, second, np.empty((0, 0)), policy)
        return replace(parts, branch=_branches(parts))

    @property
    def n(self) -> int:
        """Nodes of the first graph."""
        return len(self.first)

    @property
    def m(self) -> int:
        """Nodes of the second graph."""
        return len(self.second)

    def assigned(self) -> tuple[float, list[int]]:
        """Return the lower bound, and what each node of the first graph is assigned to."""
        rows, columns = linear_sum_assignment(self.branch)
        mapping = [int(j) if j < self.m else NO_NODE for j in columns[: self.n]]
        return float(self.branch[rows, columns].sum()), mapping

    def rest(self, done: int, free: list[int]) -> float:
        """Return a lower bound on the cost of the nodes from `done` on against the nodes `free` of the second graph."""
        rows = [*range(done, self.n), *(self.n + j for j in free)]
        columns = [*free, *(self.m + i for i in range(done, self.n))]
        part = self.branch[np.ix_(rows, columns)]
        return float(part[linear_sum_assignment(part)].sum())

    def step(self, mapping: list[int], i: int, j: int) -> float:
        """Return what it costs to assign node i to j, with its edges to the nodes before it."""
        own = self.take_out[i] if j == NO_NODE else self.change[i, j]
        there = np.array([0.0 if NO_NODE in (j, k) else self.second[j, k] for k in mapping])
        return float(own + _edge_costs(self.first[i, :i], there, self.policy).sum())

    def put_rest_in(self, free: list[int]) -> float:
        """Return what it costs to put in the nodes `free` of the second graph, with all their edges."""
        among = self.second[np.ix_(free, free)]
        touched = np.count_nonzero(self.second[free]) - np.count_nonzero(among) / 2
        return float(self.put_in[free].sum() + self.policy.edge * touched)

    def cost(self, mapping: list[int]) -> float:
        """Return the cost of the edit path that `mapping` makes."""
        total = sum(self.step(mapping[:i], i, j) for i, j in enumerate(mapping))
        return total + self.put_rest_in([j for j in range(self.m) if j not in mapping])


def _weights(graph: VersionGraph) -> Floats:
    n = len(graph.node_ids)
    weights = np.zeros((n, n))
    for i, j, weight in graph.edges:
        weights[i, j] = weights[j, i] = weight
    return weights


def _feature_changes(one: VersionGraph, other: VersionGraph, policy: EditPolicy) -> Floats:
    if not (one.n_features and other.n_features):
        return np.zeros((len(one.node_ids), len(other.node_ids)))
    apart = np.array(one.features)[:, None, :] - np.array(other.features)[None, :, :]
    costs = policy.node * np.sqrt(np.square(apart / policy.feature_scale).mean(axis=2))
    return np.asarray(np.minimum(costs, 2.0 * policy.node))


def _edge_costs(weight: Floats, other: Floats, policy: EditPolicy) -> Floats:
    """Return what it costs to change edges of one weight into those of another; 0 is no edge."""
    changed = np.minimum(policy.edge * np.abs(weight - other) / policy.weight_scale, 2.0 * policy.edge)
    both, either = (weight > 0) & (other > 0), (weight > 0) | (other > 0)
    return np.asarray(np.where(both, changed, np.where(either, policy.edge, 0.0)))


def _branches(edits: Edits) -> Floats:
    n, m, edge = edits.n, edits.m, edits.policy.edge
    edges, other_edges = [row[row > 0] for row in edits.first], [row[row > 0] for row in edits.second]
    above_all = float(edits.change.sum() + edits.take_out.sum() + edits.put_in.sum() + edge * (n + m + 1) ** 2) + 1.0
    branch = np.full((n + m, n + m), above_all)  # node i can't be taken out as another node
    branch[n:, m:] = 0.0
    for i in range(n):
        branch[i, m + i] = edits.take_out[i] + 0.5 * edge * edges[i].size
        for j in range(m):
            branch[i, j] = edits.change[i, j] + 0.5 * _edges_assigned(edges[i], other_edges[j], edits.policy)
    for j in range(m):
        branch[n + j, j] = edits.put_in[j] + 0.5 * edge * other_edges[j].size
    return branch


def _edges_assigned(weights: Floats, others: Floats, policy: EditPolicy) -> float:
    """Return the least cost of turning one set of edges into another, whatever is at their other ends."""
    a, b = weights.size, others.size
    if not a or not b:
        return policy.edge * float(a + b)
    costs = np.full((a + b, a + b), policy.edge)
    costs[:a, :b] = _edge_costs(weights[:, None], others[None, :], policy)
    costs[a:, b:] = 0.0
    return float(costs[linear_sum_assignment(costs)].sum())
