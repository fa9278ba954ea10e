"""Softmax comparison and diffusion embedding on torch: the figures of udfs, and finite ones for any input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpu_scorers.devices import CPU, choose_device
from gpu_scorers.diffusion_embedding import DiffusionEmbedder, VersionGraphDistance
from gpu_scorers.model_files import ModelError
from gpu_scorers.scorer import Request
from gpu_scorers.softmax_comparison import SMALLEST_PROBABILITY, SoftmaxComparison, compare_logits
from schemas.status import Status
from schemas.version_graph import VersionGraph
from tests.version_graphs import graph, plain, random_graph
from udfs.versions import softmax_pairs
from udfs.versions.diffusion_embedding import EmbeddingPolicy, SignatureScale, diffusion_embedding
from udfs.versions.graph_distance import version_distances

POLICY = EmbeddingPolicy()
MOST_NATS = -math.log(SMALLEST_PROBABILITY) + 1e-4


def pair(n: int, k: int, spread: float, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    previous = rng.normal(0, 3, (n, k))
    return previous.astype(dtype), (previous + rng.normal(0, spread, (n, k))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(5000, 2), (700, 32), (3, 50_000)])
def test_figures_are_those_of_udfs(n: int, k: int, dtype: type) -> None:
    previous, current = pair(n, k, 1.0, dtype)
    ours, peer = compare_logits(previous, current), softmax_pairs.scores_of_logits(previous, current)
    assert ours.usable.all()
    assert ours.js_bits == pytest.approx(peer.js_bits, abs=1e-5)
    assert ours.kl_nats == pytest.approx(peer.kl_nats, abs=1e-4)
    assert ours.same_label.tolist() == peer.same_label.tolist()


def test_the_floor_is_that_of_udfs() -> None:
    assert SMALLEST_PROBABILITY == softmax_pairs.SMALLEST_PROBABILITY


@settings(max_examples=150)
@given(*[arrays(np.float64, (3, 4), elements=st.floats() | st.floats(-50, 50))] * 2)
def test_any_logits_give_the_figures_of_udfs_or_an_unusable_row(previous: np.ndarray, current: np.ndarray) -> None:
    kept = previous.copy(), current.copy()
    ours, peer = compare_logits(previous, current), softmax_pairs.scores_of_logits(previous, current)
    assert ours.usable.tolist() == peer.usable.tolist()
    assert ours.js_bits[ours.usable] == pytest.approx(peer.js_bits, abs=1e-4)
    assert ours.kl_nats[ours.usable] == pytest.approx(peer.kl_nats, abs=1e-4)
    assert np.isfinite(ours.js_bits).all()
    assert np.isfinite(ours.kl_nats).all()
    assert ((ours.js_bits >= 0) & (ours.js_bits <= 1) & (ours.kl_nats >= 0) & (ours.kl_nats <= MOST_NATS)).all()
    np.testing.assert_array_equal((previous, current), kept)


def test_float32_overflow() -> None:
    """A difference beyond float32 is a probability of 0; large logits whose differences are small come out right."""
    top = np.finfo(np.float32).max
    ours = compare_logits(np.array([[top, -top]], np.float32), np.array([[-top, top]], np.float32))
    assert (ours.js_bits[0], ours.same_label[0], ours.usable[0]) == (pytest.approx(1.0), False, True)
    assert ours.kl_nats[0] == pytest.approx(-math.log(SMALLEST_PROBABILITY), abs=1e-4)
    far = compare_logits(np.array([[1e15, 1e15 + 1]]), np.array([[0.0, 1.0]]))
    assert far.js_bits[0] == pytest.approx(0.0, abs=1e-6)


def test_the_scorer_gives_each_request_its_own() -> None:
    previous, current = pair(4, 3, 1.0)
    wide = pair(1, 7, 1.0)
    batch = [
        Request("a", logits=current[0], previous_logits=previous[0]),
        Request("b", logits=np.array([1.0, math.nan]), previous_logits=np.array([1.0, 2.0])),
        Request("c"),
        Request("d", logits=wide[1][0], previous_logits=wide[0][0]),
        Request("e", logits=np.zeros(2), previous_logits=np.zeros(3)),
        Request("f", logits=np.array(["x"]), previous_logits=np.array(["y"])),  # type: ignore[arg-type]
        Request("g", logits=current[1], previous_logits=previous[1]),
    ]
    found = SoftmaxComparison().score(batch)
    assert all([s.name for s in scores] == ["js_bits", "same_label", "kl_nats"] for scores in found)
    statuses = [scores[0].status for scores in found]
    ok, invalid = Status.OK, Status.INVALID
    assert statuses == [ok, invalid, Status.NO_DATA, ok, invalid, invalid, ok]
    for row, scores in ((0, found[0]), (1, found[6])):
        peer = softmax_pairs.scores_of_logits(previous[row : row + 1], current[row : row + 1])
        assert scores[0].value == pytest.approx(peer.js_bits[0], abs=1e-6)
        assert scores[1].value == float(peer.same_label[0])
        assert scores[1].label == ("same" if peer.same_label[0] else "different")
        assert scores[2].value == pytest.approx(peer.kl_nats[0], abs=1e-5)


GRAPHS = {
    "random": random_graph(300, 900, 8, seed=1),
    "no features": random_graph(50, 120, 0, seed=2),
    "alone and loops": graph([[1.0], [5.0], [-2.0], [7.5]], [(0, 1), (1, 2, 3.0), (0, 0, 2.0)]),
    "one node": graph([[1.0, 2.0]], []),
    "huge values": graph([[1e100], [-1e100], [0.0]], [(0, 1, 1e-100), (1, 2, 1e100)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_embeddings_are_those_of_udfs(name: str) -> None:
    baseline = GRAPHS[name]
    changed = graph([[3.0 + i] * (baseline.n_features or 0) for i in range(6)], [(0, 1), (1, 2), (0, 2), (3, 4)])
    embedder, scale = DiffusionEmbedder(baseline, POLICY), SignatureScale.of(baseline)
    for each in (baseline, changed):
        ours = embedder.embed(each)
        assert ours == pytest.approx(diffusion_embedding(each, scale), abs=1e-4)
        assert np.linalg.norm(ours) == pytest.approx(1.0, abs=1e-5)


def test_distance_to_the_baseline() -> None:
    one, other = random_graph(100, 300, 3, seed=1), random_graph(100, 300, 3, seed=2)
    scorer = VersionGraphDistance(one, POLICY)
    empty = plain(0, [])
    batch = [Request("a", graph=g) for g in (one, other, empty, None, plain(3, []))]
    found = [scores[0] for scores in scorer.score(batch)]
    assert found[0].value == pytest.approx(0.0, abs=1e-6)
    assert found[1].value == pytest.approx(version_distances([one, other])[0][1], abs=1e-4)
    assert [score.status for score in found[2:]] == [Status.NO_DATA, Status.NO_DATA, Status.INVALID]
    assert "has 0 features a node where the baseline has 3" in str(found[4].evidence["reason"])
    assert found[1].evidence["baseline_digest"] == one.digest
    with pytest.raises(ValueError, match="no nodes"):
        VersionGraphDistance(empty, POLICY)


def test_a_graph_without_nodes_embeds_as_zeros() -> None:
    empty: VersionGraph = plain(0, [])
    assert not DiffusionEmbedder(empty, POLICY).embed(empty).any()


def test_the_device_is_chosen_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    choose_device.cache_clear()
    with caplog.at_level("INFO", "gpu_scorers.devices"):
        first = choose_device("cpu")
        assert choose_device("cpu") is first
    assert [record.message for record in caplog.records] == [
        f"models run on cpu ({first.description}, float32): asked for"
    ]
    assert (first.name, CPU.is_cuda) == ("cpu", False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a CUDA device, and here is one")
def test_without_cuda_auto_is_the_cpu_and_cuda_is_refused() -> None:
    choose_device.cache_clear()
    assert choose_device("auto").name == "cpu"
    with pytest.raises(ModelError, match=r"torch finds none\. Write `device: auto`"):
        choose_device("cuda")
