"""Diffusion embedding of version graphs on a device: a version's graph as a vector of length 1, and its distance to a
baseline's.

It is the embedding of `udfs.versions.diffusion_embedding`, which says what it means, how it was chosen and what it
can't see; that one is float64 on scipy, this one float32 on torch, equal within 1e-4
(`tests/unit/test_device_scorers.py`). Structure is counted in float64 on the CPU; heat diffuses, which is
where the time goes, on the device.

Sources: spec D7, M4; Kondor & Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002;
Rozemberczki & Sarkar, "Characteristic functions on graphs", CIKM 2020.
"""

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_scorers.cosines import row_cosines
from gpu_scorers.devices import CPU, Device
from gpu_scorers.scorer import Request, Score, unscored
from schemas.judge_report import JudgeReport
from schemas.status import Status
from schemas.version_graph import VersionGraph

NAME = "version_graph_distance"
N_STRUCTURE = 2
_POISSON_TAIL = 1e-16  # weight of the steps that are left out


class Policy(Protocol):
    """What `udfs.versions.diffusion_embedding.EmbeddingPolicy` holds: only embeddings of one policy can be compared."""

    @property
    def times(self) -> tuple[float, ...]:
        """How long heat diffuses."""

    @property
    def projections(self) -> int:
        """How many numbers a time."""

    @property
    def seed(self) -> int:
        """Of the projections."""

    @property
    def length_scale(self) -> float:
        """Width of the kernel, in spreads of the baseline."""

    @property
    def largest(self) -> float:
        """Bound of a signature, in spreads of the baseline."""


@dataclass(frozen=True, slots=True, eq=False)
class _Graph:
    """Signatures before scaling, (n, d + 2) float64, and the walk as edges: from, to, share, of all e entries."""

    raw: torch.Tensor
    rows: torch.Tensor
    columns: torch.Tensor
    shares: torch.Tensor


class DiffusionEmbedder:
    """Embeds graphs on the scale that a baseline graph sets."""

    def __init__(self, baseline: VersionGraph, policy: Policy, device: Device = CPU) -> None:
        """Take the baseline's centre and spread of each part of a signature."""
        self.policy, self.device = policy, device
        raw = _graph(baseline).raw
        self._centre = raw.mean(dim=0) if len(raw) else raw.new_zeros(raw.shape[1])
        spread = raw.std(dim=0, correction=0) if len(raw) else raw.new_ones(raw.shape[1])
        is_constant = spread <= 1e-12 * raw.abs().amax(dim=0) if len(raw) else spread < 0
        self._spread = torch.where(is_constant, 1.0, spread)
        self.n_features = baseline.n_features

    @torch.inference_mode()
    def embed(self, graph: VersionGraph) -> NDArray[np.float32]:
        """Return the embedding, float32 of shape (times * projections,), length 1; zeros for a graph of no nodes.

        Raises ValueError where the graph has another number of features a node than the baseline. O(n d + (sum of
        times) e) of e edges.
        """
        width = len(self.policy.times) * self.policy.projections
        if not graph.node_ids:
            return np.zeros(width, np.float32)
        parts = _graph(graph)
        signatures = self._signatures(parts.raw)
        n = len(graph.node_ids)
        walk = _sparse(parts, n).to(self.device.name)
        means = []
        for time, (directions, phases) in zip(self.policy.times, self._projections(signatures.shape[1]), strict=True):
            projected = (signatures @ torch.from_numpy(directions)).float().to(self.device.name)
            heat = _diffuse(walk, projected, time)
            angles = heat + torch.from_numpy(phases).float().to(self.device.name)
            means.append(angles.cos().mean(dim=0))
        embedding = torch.cat(means)
        length = torch.linalg.vector_norm(embedding)
        return np.asarray((embedding / length if length > 0 else embedding).cpu().numpy())

    def _signatures(self, raw: torch.Tensor) -> torch.Tensor:
        """On the baseline's scale; features together weigh as much as structure does, however many there are."""
        if raw.shape[1] != len(self._centre):
            expected, found = len(self._centre) - N_STRUCTURE, raw.shape[1] - N_STRUCTURE
            raise ValueError(f"the graph has {found} features a node where the baseline has {expected}")
        n_features = raw.shape[1] - N_STRUCTURE
        weights = torch.full((raw.shape[1],), 1.0 / math.sqrt(N_STRUCTURE), dtype=torch.float64)
        weights[:n_features] = 1.0 / math.sqrt(max(n_features, 1))
        scaled = ((raw - self._centre) / self._spread).clamp(-self.policy.largest, self.policy.largest)
        return scaled * (weights / self.policy.length_scale)

    def _projections(self, width: int) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """For each time the directions, (width, projections), and the phases, in the order in which they are drawn."""
        random = np.random.RandomState(self.policy.seed)
        return [
            (
                random.standard_normal((width, self.policy.projections)),
                random.uniform(0.0, 2.0 * math.pi, self.policy.projections),
            )
            for _ in self.policy.times
        ]


def _graph(graph: VersionGraph) -> _Graph:
    """Weights both ways, degrees, the random walk, and the chance to come back around a triangle in three steps."""
    n = len(graph.node_ids)
    table = torch.tensor(graph.edges, dtype=torch.float64).reshape(-1, 3)
    i, j, weight = table[:, 0].long(), table[:, 1].long(), table[:, 2]
    apart = i != j  # a loop is there once
    rows, columns = torch.cat([i, j[apart]]), torch.cat([j, i[apart]])
    weights = torch.cat([weight, weight[apart]])
    degrees = torch.zeros(n, dtype=torch.float64).index_add_(0, rows, weights)
    alone = (degrees == 0.0).nonzero()[:, 0]  # a walker there stays
    shares = weights / degrees[rows]
    structure = torch.stack([degrees.log1p(), _triangle_returns(n, rows, columns, weights, degrees)], dim=1)
    features = torch.tensor(graph.features, dtype=torch.float64).reshape(n, graph.n_features or 0)
    return _Graph(
        torch.cat([features, structure], dim=1),
        torch.cat([rows, alone]),
        torch.cat([columns, alone]),
        torch.cat([shares, torch.ones(len(alone), dtype=torch.float64)]),
    )


def _triangle_returns(
    n: int, rows: torch.Tensor, columns: torch.Tensor, weights: torch.Tensor, degrees: torch.Tensor
) -> torch.Tensor:
    """Sum over the triangles at each node: twice, for both directions, the product of weights over that of degrees."""
    apart = rows != columns
    rows, columns, weights = rows[apart], columns[apart], weights[apart]
    scaled = torch.sparse_coo_tensor(
        torch.stack([rows, columns]),
        weights / (degrees[rows] * degrees[columns]).sqrt(),
        (n, n),
        check_invariants=False,
    ).coalesce()
    if not scaled.values().numel():
        return torch.zeros(n, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR", UserWarning)  # torch calls the format beta; the test compares
        squared = torch.sparse.mm(scaled, scaled).coalesce()
    around = (squared * scaled).coalesce()
    return torch.zeros(n, dtype=torch.float64).index_add_(0, around.indices()[0], around.values())


def _sparse(graph: _Graph, n: int) -> torch.Tensor:
    indices = torch.stack([graph.rows, graph.columns])
    return torch.sparse_coo_tensor(indices, graph.shares.float(), (n, n), check_invariants=False).coalesce()


def _diffuse(walk: torch.Tensor, signal: torch.Tensor, time: float) -> torch.Tensor:
    """Return exp(-time (I - walk)) signal, as the Poisson mean over how many steps were taken."""
    shares = _poisson(time)
    moved, mean = signal, shares[0] * signal
    for share in shares[1:]:
        moved = torch.sparse.mm(walk, moved)
        mean = mean + share * moved
    return mean


@functools.cache
def _poisson(mean: float) -> tuple[float, ...]:
    """Return the chances of 0, 1, 2... events, but for a tail below `_POISSON_TAIL`, adding up to 1."""
    if mean == 0.0:
        return (1.0,)
    k = torch.arange(math.ceil(mean + 12.0 * math.sqrt(mean) + 30.0), dtype=torch.float64)
    shares = (k * math.log(mean) - mean - torch.lgamma(k + 1.0)).exp()
    kept = shares[shares.flip(0).cumsum(0).flip(0) > _POISSON_TAIL]
    return tuple((kept / kept.sum()).tolist())


class VersionGraphDistance:
    """The scorer: 1 less the cosine of a graph's embedding with the baseline's, from 0 to 2; reads `graph`."""

    def __init__(self, baseline: VersionGraph, policy: Policy, device: Device = CPU, *, name: str = NAME) -> None:
        """Embed the baseline. Raises ValueError where it has no nodes."""
        if not baseline.node_ids:
            raise ValueError("the baseline graph has no nodes, so nothing can be compared with it")
        self.embedder = DiffusionEmbedder(baseline, policy, device)
        self.baseline_digest = baseline.digest
        self._baseline = self.embedder.embed(baseline)
        self.name, self.version = name, "1"
        self.model_digest: str | None = None
        self.judge: JudgeReport | None = None

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request."""
        return [[self._score(request.graph)] for request in batch]

    def _score(self, graph: VersionGraph | None) -> Score:
        if graph is None or not graph.node_ids:
            return unscored(NAME, Status.NO_DATA, "no graph" if graph is None else "the graph has no nodes")
        try:
            cosine = row_cosines(self.embedder.embed(graph), self._baseline)[0]
        except ValueError as error:
            return unscored(NAME, Status.INVALID, str(error))
        if cosine is None:
            return unscored(NAME, Status.INVALID, "the embedding overflows")
        evidence = {"graph_digest": graph.digest, "baseline_digest": self.baseline_digest, "version": graph.version}
        return Score(NAME, 1.0 - cosine, evidence=evidence)
