"""Diffusion embedding: a version's graph as a vector of 128 numbers, whose angle to another's says how alike they are.

Each node has a signature: its features and its structure (`graph_matrices`), on the baseline's scale. Heat diffuses the
signatures for a short and for longer times, so that a node's signature comes to hold that of its surroundings. At each
of the times 1, 5, 15, 50 every node's signature is projected at random 32 times, and the mean over nodes of the cosine
of each projection is one number of the embedding: a random Fourier feature of the *distribution* of signatures. The
cosine of two embeddings therefore estimates the normalised kernel similarity (Gaussian, width `length_scale`) of both
graphs' distributions of signatures, and is 1 where these are the same.

Guarantees: the same graph gives the same bits whatever the order of nodes and edges in its file, and renaming nodes
moves only rounding. Node names and the number of nodes don't enter: two copies of a graph side by side embed like one.
Two graphs are the same to it where all nodes have the same features, degrees and triangles (a ring of 6 and one of 8).

Sources: spec D7 (times, 32 projections, 128 dimensions, unit length); Rozemberczki & Sarkar, "Characteristic functions
on graphs", CIKM 2020; Rahimi & Recht, "Random features for large-scale kernel machines", NIPS 2007; Smola et al., "A
Hilbert space embedding for distributions", ALT 2007.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.version_graph import VersionGraph
from udfs.versions.graph_matrices import N_STRUCTURE, GraphMatrices, graph_matrices
from udfs.versions.heat_diffusion import diffuse

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EmbeddingPolicy:
    """How graphs are embedded; only embeddings of one policy and one scale can be compared.

    `times` and `projections`: spec D7. `seed` fixes the projections, drawn by numpy's legacy generator, whose streams
    never change. `length_scale` is the width of the kernel in spreads of the baseline: two signatures that far apart
    count as 0.61 alike; ours. `largest` bounds a signature, in spreads of the baseline: beyond it all is equally far.
    """

    times: tuple[float, ...] = (1.0, 5.0, 15.0, 50.0)
    projections: int = 32
    seed: int = 20260131
    length_scale: float = 1.0
    largest: float = 1000.0


@dataclass(frozen=True, eq=False)
class SignatureScale:
    """Centre and spread of each part of a signature over the baseline's nodes, both float64 of shape (d + 2,).

    The spread is the standard deviation; 1 where the baseline has one value only.
    """

    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, baseline: VersionGraph) -> "SignatureScale":
        """Return the scale that `baseline` sets; that of an empty graph leaves values as they are."""
        raw = _raw(graph_matrices(baseline))
        if not raw.shape[0]:
            return cls(np.zeros(raw.shape[1]), np.ones(raw.shape[1]))
        centre = raw.mean(axis=0)
        spread = raw.std(axis=0)
        is_constant = spread <= 1e-12 * np.abs(raw).max(axis=0)
        return cls(centre, np.where(is_constant, 1.0, spread))


def diffusion_embedding(graph: VersionGraph, scale: SignatureScale, policy: EmbeddingPolicy | None = None) -> Floats:
    """Return the embedding, float64 of shape (len(times) * projections,) and length 1; zeros for a graph of no nodes.

    Raises ValueError where the graph has another number of features than the scale. O(n d + (sum of times) e) of e
    edges, memory O(n (d + projections) + e).

    >>> from schemas.version_graph import VersionGraph
    >>> graph = VersionGraph("chat", "7", ("a", "b"), ((0.0,), (1.0,)), ((0, 1, 1.0),), "")
    >>> embedding = diffusion_embedding(graph, SignatureScale.of(graph))
    >>> embedding.shape, round(float(np.linalg.norm(embedding)), 12)
    ((128,), 1.0)
    """
    policy = policy or EmbeddingPolicy()
    matrices = graph_matrices(graph)
    signatures = _signatures(matrices, scale, policy)
    parts = []
    for time, directions, phases in _projections(signatures.shape[1], policy):
        heat = diffuse(matrices.walk, signatures @ directions, time)  # linear, so projecting first is the same
        parts.append(np.cos(heat + phases).mean(axis=0) if heat.shape[0] else np.zeros(policy.projections))
    embedding = np.concatenate(parts)
    length = math.sqrt(math.fsum(np.square(embedding)))
    return np.asarray(embedding / length) if length else embedding


def _raw(matrices: GraphMatrices) -> Floats:
    return np.hstack([matrices.features, matrices.structure])


def _signatures(matrices: GraphMatrices, scale: SignatureScale, policy: EmbeddingPolicy) -> Floats:
    """Features together weigh as much as structure does, however many there are."""
    raw = _raw(matrices)
    if not raw.shape[0]:
        return np.zeros((0, scale.centre.size))
    if raw.shape[1] != scale.centre.size:
        expected, found = scale.centre.size - N_STRUCTURE, raw.shape[1] - N_STRUCTURE
        raise ValueError(f"the graph has {found} features a node where the baseline has {expected}")
    n_features = raw.shape[1] - N_STRUCTURE
    weights = np.repeat([1.0 / math.sqrt(max(n_features, 1)), 1.0 / math.sqrt(N_STRUCTURE)], [n_features, N_STRUCTURE])
    with np.errstate(over="ignore"):
        scaled = np.clip((raw - scale.centre) / scale.spread, -policy.largest, policy.largest)
    return np.asarray(scaled * (weights / policy.length_scale))


def _projections(width: int, policy: EmbeddingPolicy) -> list[tuple[float, Floats, Floats]]:
    """Return for each time the directions, (width, projections), and the phases, (projections,)."""
    random = np.random.RandomState(policy.seed)
    drawn = []
    for time in policy.times:
        directions = random.standard_normal((width, policy.projections))
        drawn.append((time, directions, random.uniform(0.0, 2.0 * math.pi, policy.projections)))
    return drawn
