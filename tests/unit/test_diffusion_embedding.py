"""Diffusion embeddings: heat as scipy computes it, structure counted by hand, and what must not move an embedding."""

import math
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.sparse import csr_array
from scipy.sparse.linalg import expm_multiply

from schemas.version_graph import VersionGraph, parse_version_graph
from tests.version_graphs import document, graph, plain, random_edges, random_graph
from udfs.versions.diffusion_embedding import EmbeddingPolicy, SignatureScale, diffusion_embedding
from udfs.versions.graph_distance import cosine_distances, version_distances
from udfs.versions.graph_matrices import graph_matrices
from udfs.versions.heat_diffusion import diffuse

GOLDEN = Path(__file__).parent.parent / "golden/versions/diffusion_embedding.json"
TRIANGLE, CHAIN = [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2)]


def distance(one: VersionGraph, other: VersionGraph) -> float:
    found = version_distances([one, other])[0][1]
    assert found is not None
    return found


@pytest.mark.parametrize("time", [0.0, 0.01, 1.0, 5.0, 15.0, 50.0, 300.0])
def test_heat_is_the_matrix_exponential(time: float) -> None:
    matrices = graph_matrices(random_graph(60, 150, 3, seed=1))
    laplacian = np.eye(60) - matrices.walk.toarray()
    exact = expm(-time * laplacian) @ matrices.features
    assert diffuse(matrices.walk, matrices.features, time) == pytest.approx(exact, abs=1e-12)
    by_krylov = expm_multiply(-time * csr_array(laplacian), matrices.features)
    assert diffuse(matrices.walk, matrices.features, time) == pytest.approx(by_krylov, abs=1e-10)


@pytest.mark.parametrize("time", [-1.0, math.nan, math.inf])
def test_impossible_times_are_refused(time: float) -> None:
    with pytest.raises(ValueError, match="time must be"):
        diffuse(csr_array(np.eye(2)), np.zeros((2, 1)), time)


def test_heat_stays_at_a_node_without_an_edge_and_a_constant_stays() -> None:
    matrices = graph_matrices(graph([[1.0], [5.0], [-2.0], [7.5]], [*CHAIN]))
    heat = diffuse(matrices.walk, np.column_stack([matrices.features, np.full(4, 3.0)]), 50.0)
    assert heat[3].tolist() == pytest.approx([7.5, 3.0], abs=1e-12)
    assert heat[:, 1] == pytest.approx(3.0, abs=1e-12)
    assert ((heat[:3, 0] >= -2.0) & (heat[:3, 0] <= 5.0)).all()


def test_heat_stays_longer_at_a_loop() -> None:
    without, loop = (graph_matrices(plain(2, edges)).walk for edges in ([(0, 1)], [(0, 1), (0, 0, 3)]))
    start = np.array([[1.0], [0.0]])
    assert diffuse(loop, start, 1.0)[0, 0] > diffuse(without, start, 1.0)[0, 0] + 0.1


def test_structure_by_hand() -> None:
    """In a triangle a walk of 3 steps goes around with chance 2 (1/2)^3; a node with a tail goes less often."""
    triangle = graph_matrices(plain(4, [*TRIANGLE, (2, 3)])).structure
    assert triangle[:, 0] == pytest.approx(np.log1p([2, 2, 3, 1]))
    assert triangle[:, 1] == pytest.approx([2 / 12, 2 / 12, 2 / 12, 0])
    assert graph_matrices(plain(3, CHAIN)).structure[:, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_triangle_returns_are_the_diagonal_of_the_walk_cubed(seed: int) -> None:
    matrices = graph_matrices(random_graph(40, 200, 0, seed))
    cubed = np.linalg.matrix_power(matrices.walk.toarray(), 3)
    assert matrices.structure[:, 1] == pytest.approx(np.diagonal(cubed), abs=1e-14)


def test_a_hub_costs_no_square_of_its_degree() -> None:
    n = 30_000  # its square of float64 would be 7 GB
    star = plain(n, [(0, leaf) for leaf in range(1, n)])
    assert graph_matrices(star).structure[:, 1].max() == 0.0


def test_the_embedding_has_128_numbers_and_length_1() -> None:
    one = random_graph(50, 100, 4, seed=2)
    embedding = diffusion_embedding(one, SignatureScale.of(one))
    assert embedding.shape == (128,)
    assert np.linalg.norm(embedding) == pytest.approx(1.0, abs=1e-14)


def test_the_embedding_is_the_committed_one() -> None:
    """Stored embeddings must stay comparable: projections and scale don't move between versions of numpy or ours."""
    golden = orjson.loads(GOLDEN.read_bytes())
    one = random_graph(30, 60, 3, seed=3)
    assert diffusion_embedding(one, SignatureScale.of(one)).tolist() == pytest.approx(golden, abs=1e-12)


@settings(max_examples=20)
@given(st.permutations(range(12)), st.integers(0, 5))
def test_the_order_of_nodes_moves_no_bit_and_their_names_only_rounding(order: list[int], seed: int) -> None:
    features = np.random.default_rng(seed).normal(size=(12, 3)).tolist()
    edges = random_edges(12, 20, seed)
    one = graph(features, edges)
    scale = SignatureScale.of(one)
    embedding = diffusion_embedding(one, scale)
    listed = document(features, edges)
    listed["nodes"] = [listed["nodes"][i] for i in order]
    listed["edges"] = listed["edges"][::-1]
    reordered = parse_version_graph(orjson.dumps(listed), "v1.json")
    assert diffusion_embedding(reordered, SignatureScale.of(reordered)).tolist() == embedding.tolist()
    place = {old: new for new, old in enumerate(order)}
    renamed = graph([features[old] for old in order], [(place[i], place[j], w) for i, j, w in edges])
    assert diffusion_embedding(renamed, SignatureScale.of(renamed)) == pytest.approx(embedding, abs=1e-11)


def test_two_copies_side_by_side_embed_like_one() -> None:
    features = np.random.default_rng(4).normal(size=(10, 2)).tolist()
    edges = random_edges(10, 15, 4)
    twice = graph(features * 2, [*edges, *((i + 10, j + 10, w) for i, j, w in edges)])
    assert distance(graph(features, edges), twice) == pytest.approx(0.0, abs=1e-12)


def test_what_changes_is_seen_and_more_change_is_further() -> None:
    features = np.random.default_rng(5).normal(size=(300, 4))
    edges = random_edges(300, 1500, 5)
    base = graph(features.tolist(), edges)
    chance = distance(base, random_graph(300, 1500, 4, seed=6))  # another draw of the same kind
    shifted = [distance(base, graph((features + by).tolist(), edges)) for by in (0.0, 0.3, 0.6, 1.0)]
    assert shifted[0] == 0.0
    assert chance < shifted[1] < shifted[2] < shifted[3]
    thinned = [distance(base, graph(features.tolist(), edges[:kept])) for kept in (1500, 1200, 900)]
    assert thinned[0] == 0.0
    assert chance < thinned[1] < thinned[2]
    heavier = graph(features.tolist(), [(i, j, 2 * w) for i, j, w in edges])
    assert distance(base, heavier) > chance


def test_triangles_are_told_from_a_ring_of_the_same_degrees() -> None:
    ring = plain(6, [(i, (i + 1) % 6) for i in range(6)])
    triangles = plain(6, [*TRIANGLE, *((i + 3, j + 3) for i, j in TRIANGLE)])
    assert distance(ring, triangles) > 0.001


def test_features_scattered_and_clustered_are_told_apart() -> None:
    """The same features and the same edges; only who is next to whom differs, which is what diffusion is for."""
    blocks = [(i, j) for at in (0, 10) for i in range(at, at + 10) for j in range(i + 1, at + 10)]
    clustered = [[1.0 if node < 10 else -1.0] for node in range(20)]
    scattered = [[1.0 if node % 2 else -1.0] for node in range(20)]
    assert distance(graph(clustered, blocks), graph(scattered, blocks)) > 0.1


def test_graphs_of_no_node_one_node_and_no_edge() -> None:
    empty, single, unlinked = graph([], []), graph([[1.0]], []), graph([[1.0], [1.0]], [])
    found = version_distances([empty, single, unlinked])
    assert found[0] == [None, None, None]
    assert [row[0] for row in found] == [None, None, None]
    assert found[1][1:] == found[2][1:] == [0.0, 0.0]
    assert version_distances([]) == []
    assert not diffusion_embedding(empty, SignatureScale.of(single)).any()


def test_the_largest_weights_and_features_give_finite_distances() -> None:
    extreme = graph([[1e100], [-1e100], [0.0]], [(0, 1, 1e100), (1, 2, 5e-324), (0, 2, 1e-200)])
    usual = graph([[1.0], [2.0], [3.0]], CHAIN)
    for graphs in ([extreme, usual], [usual, extreme]):
        row = version_distances(graphs)[0]
        assert all(value is not None and 0.0 <= value <= 2.0 for value in row)


def test_another_number_of_features_is_refused() -> None:
    with pytest.raises(ValueError, match="has 1 features a node where the baseline has 2"):
        version_distances([graph([[1.0, 2.0]], []), graph([[1.0]], [])])


def test_distances_are_symmetric_to_the_bit_and_cosine() -> None:
    graphs = [random_graph(30, 60, 2, seed) for seed in range(4)]
    matrix = np.array(version_distances(graphs), dtype=float)
    assert matrix.tolist() == matrix.T.tolist()
    assert np.diagonal(matrix).tolist() == [0.0] * 4
    scale = SignatureScale.of(graphs[0])
    embeddings = np.array([diffusion_embedding(one, scale) for one in graphs])
    assert matrix == pytest.approx(1.0 - embeddings @ embeddings.T, abs=1e-14)
    assert cosine_distances(np.array([[1.0, 0.0], [-1.0, 0.0]]))[0][1] == 2.0


def test_the_policy_says_how_long_an_embedding_is() -> None:
    one = random_graph(20, 30, 1, seed=7)
    assert diffusion_embedding(one, SignatureScale.of(one), EmbeddingPolicy(times=(2.0,), projections=8)).shape == (8,)
