"""Graph edit distances: networkx's, those of trying every mapping, and bounds where a search would be too long."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.version_graph import VersionGraph
from tests.version_graphs import graph, plain, random_graph
from udfs.versions.graph_edit_distance import graph_edit_distance
from udfs.versions.graph_edits import EditPolicy

# (nodes, edges, nodes, edges, features, seed) and what networkx 3.6.1's graph_edit_distance says of them, with
# node_subst_cost the root mean square of the features' differences and edge_subst_cost that of weights, at most 2.
NETWORKX = [
    (4, 4, 5, 5, 1, 0, 4.5413569002),
    (5, 6, 5, 7, 2, 1, 8.4165358339),
    (5, 5, 3, 3, 0, 2, 4.6856930793),
    (6, 8, 5, 6, 1, 3, 8.7915018294),
    (5, 10, 5, 4, 0, 4, 6.3652920404),
    (1, 0, 4, 6, 1, 6, 9.0885780846),
    (6, 7, 6, 7, 0, 7, 3.0025206677),
]


def every_mapping(one: VersionGraph, other: VersionGraph, policy: EditPolicy) -> float:
    """The least cost over all ways of keeping nodes, counted plainly."""
    n, m = len(one.node_ids), len(other.node_ids)
    first, second = ({(i, j): w for i, j, w in g.edges} for g in (one, other))
    best = float("inf")
    for kept in range(min(n, m) + 1):
        for froms in combinations(range(n), kept):
            for tos in permutations(range(m), kept):
                to = dict(zip(froms, tos, strict=True))
                cost = policy.node * (n + m - 2 * kept)
                for i, j in to.items():
                    apart = np.subtract(one.features[i], other.features[j]) / policy.feature_scale
                    root = float(np.sqrt(np.mean(np.square(apart)))) if apart.size else 0.0
                    cost += min(2 * policy.node, policy.node * root)
                rest = dict(second)
                for (i, j), weight in first.items():
                    pair = tuple(sorted((to[i], to[j]))) if i in to and j in to else None
                    there = rest.pop(pair, None) if pair else None
                    changed = 0.0 if there is None else policy.edge * abs(weight - there) / policy.weight_scale
                    cost += policy.edge if there is None else min(2 * policy.edge, changed)
                best = min(best, cost + policy.edge * len(rest))
    return best


@pytest.mark.parametrize("case", NETWORKX)
def test_distances_are_networkxs(case: tuple[int, int, int, int, int, int, float]) -> None:
    nodes, edges, other_nodes, other_edges, features, seed, expected = case
    one = random_graph(nodes, edges, features, seed)
    found = graph_edit_distance(one, random_graph(other_nodes, other_edges, features, seed + 100))
    assert found.is_exact
    assert found.upper == pytest.approx(expected, abs=1e-8)


def test_a_path_that_networkx_does_not_find() -> None:
    """Its search ends at 12.1299912044 here; trying every mapping shows that there is a cheaper one."""
    one, other = random_graph(6, 5, 2, 5), random_graph(6, 9, 2, 105)
    found = graph_edit_distance(one, other)
    assert found.upper == pytest.approx(every_mapping(one, other, EditPolicy()), abs=1e-8)
    assert found.upper == pytest.approx(11.733144444, abs=1e-8)


weight = st.sampled_from([0.0, 0.25, 1.0, 3.5])
policies = st.builds(
    EditPolicy,
    node=st.sampled_from([0.5, 1.0]),
    edge=st.sampled_from([0.7, 1.0]),
    feature_scale=st.sampled_from([0.5, 2.0]),
    weight_scale=st.sampled_from([0.5, 2.0]),
)


@st.composite
def graphs(draw: st.DrawFn) -> VersionGraph:
    n = draw(st.integers(0, 4))
    features = [[draw(st.sampled_from([-1.0, 0.0, 0.5]))] for _ in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i, n)]  # loops too
    return graph(features, [(i, j, draw(weight)) for i, j in pairs])


@settings(max_examples=120)
@given(graphs(), graphs(), policies)
def test_distances_are_the_least_over_all_mappings(one: VersionGraph, other: VersionGraph, policy: EditPolicy) -> None:
    exact = every_mapping(one, other, policy)
    found = graph_edit_distance(one, other, policy)
    assert found.is_exact
    assert found.upper == pytest.approx(exact, abs=1e-8)
    unsearched = graph_edit_distance(one, other, EditPolicy(**_fields(policy) | {"exact_nodes": 0}))
    assert unsearched.lower - 1e-8 <= exact <= unsearched.upper + 1e-8


def _fields(policy: EditPolicy) -> dict[str, float]:
    return {name: getattr(policy, name) for name in EditPolicy.__slots__}


@settings(max_examples=30)
@given(graphs(), graphs())
def test_there_and_back_cost_the_same(one: VersionGraph, other: VersionGraph) -> None:
    assert graph_edit_distance(one, other).upper == pytest.approx(graph_edit_distance(other, one).upper, abs=1e-9)


def test_renamed_nodes_are_found_again() -> None:
    chain = graph([[1.0], [2.0], [3.0]], [(0, 1), (1, 2)])
    turned = graph([[3.0], [1.0], [2.0]], [(1, 2), (2, 0)])
    found = graph_edit_distance(chain, turned)
    assert (found.lower, found.upper) == (0.0, 0.0)
    assert found.matched == {"n0000": "n0001", "n0001": "n0002", "n0002": "n0000"}


def test_an_edge_added_costs_one() -> None:
    ring = [(i, (i + 1) % 8) for i in range(8)]
    found = graph_edit_distance(plain(8, ring), plain(8, [*ring, (0, 4)]))
    assert (found.lower, found.upper, found.is_exact) == (1.0, 1.0, True)


def test_larger_graphs_get_bounds() -> None:
    one, other = random_graph(30, 60, 2, seed=1), random_graph(30, 60, 2, seed=2)
    found = graph_edit_distance(one, other)
    assert 0.0 < found.lower < found.upper
    assert not found.is_exact
    assert graph_edit_distance(one, one).is_exact


def test_a_search_that_is_cut_short_still_encloses_the_distance() -> None:
    one, other = random_graph(6, 7, 0, 11), random_graph(6, 9, 0, 12)
    exact = graph_edit_distance(one, other).upper
    short = graph_edit_distance(one, other, EditPolicy(most_steps=3))
    assert not short.is_exact
    assert short.lower - 1e-9 <= exact <= short.upper + 1e-9


def test_empty_graphs() -> None:
    empty, pair = graph([], []), graph([[1.0], [2.0]], [(0, 1)])
    assert graph_edit_distance(empty, empty).upper == 0.0
    assert graph_edit_distance(empty, pair).upper == graph_edit_distance(pair, empty).upper == 3.0


def test_what_can_not_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="version 1 has 61 nodes, and the edit distance takes at most 60"):
        graph_edit_distance(plain(61, []), plain(2, []))
    with pytest.raises(ValueError, match="have 1 and 2 features"):
        graph_edit_distance(graph([[1.0]], []), graph([[1.0, 2.0]], []))
