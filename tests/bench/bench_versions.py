"""Two versions of a model: a million softmax outputs scored, and a graph of 1,000 nodes embedded, beside scipy.

Run with `python -m tests.bench.bench_versions`. Exits with 1 where a figure differs from scipy's or a target is missed.
For figures of one core set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 (the sparse and softmax code uses one anyway).
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import expm_multiply
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from scipy.stats import entropy

from tests.bench.report import Row, at_least, at_most, print_table
from tests.version_graphs import random_graph
from udfs.versions.diffusion_embedding import EmbeddingPolicy, SignatureScale, diffusion_embedding
from udfs.versions.graph_distance import version_distances
from udfs.versions.graph_matrices import graph_matrices
from udfs.versions.heat_diffusion import diffuse
from udfs.versions.softmax_pairs import PairScores, scores_of_logits
from udfs.versions.version_sketch import VersionSketch

ROWS, LABELS, SAMPLE = 1_000_000, 32, 2_000
NODES, EDGES, FEATURES = 1_000, 5_000, 64
ROUNDS = 3  # the least of these is shown: other processes only ever add time
MOST_SECONDS = 2.0  # spec D7's graph on one core


def row_by_row(previous: np.ndarray, current: np.ndarray) -> list[tuple[float, float]]:
    """JS and KL by scipy, an inference at a time, as a monitor without vectorised code would."""
    found = []
    for before, after in zip(previous, current, strict=True):
        p, q = softmax(before), softmax(after)
        found.append((float(jensenshannon(p, q, base=2)) ** 2, float(entropy(p, q))))
    return found


def all_at_once(previous: np.ndarray, current: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same by scipy's own vectorised code."""
    p, q = softmax(previous, axis=1), softmax(current, axis=1)
    return jensenshannon(p, q, base=2, axis=1) ** 2, entropy(p, q, axis=1)


def seconds(call: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """Return the least seconds of `rounds` calls, and what the last returned."""
    least, result = float("inf"), None
    for _ in range(rounds):
        start = time.perf_counter()
        result = call()
        least = min(least, time.perf_counter() - start)
    return least, result


def largest_difference(scores: PairScores, peer: list[tuple[float, float]]) -> float:
    """Return the largest difference of any figure from scipy's."""
    js_bits, kl_nats = np.array(peer).T
    return float(max(np.abs(scores.js_bits - js_bits).max(), np.abs(scores.kl_nats - kl_nats).max()))


def score_rows() -> tuple[list[Row], float]:
    """Nanoseconds an inference: ours over all rows, scipy's over a sample."""
    random = np.random.default_rng(20260131)
    previous = random.normal(0.0, 1.5, (ROWS, LABELS)).astype(np.float32)
    current = previous + random.normal(0.0, 0.3, (ROWS, LABELS)).astype(np.float32)
    ours, _ = seconds(lambda: VersionSketch.from_logits(previous, current), 2)
    sample = previous[:SAMPLE].astype(np.float64), current[:SAMPLE].astype(np.float64)
    singly, peer = seconds(lambda: row_by_row(*sample), 2)
    at_once, _ = seconds(lambda: all_at_once(previous[:100_000], current[:100_000]))
    ns, ns_singly, ns_at_once = ours / ROWS * 1e9, singly / SAMPLE * 1e9, at_once / 100_000 * 1e9
    ratio = ns_singly / ns
    rows = [
        Row("JS, label, KL of 1,000,000 x 32 logits, and their sketch; peer row by row", "ns/inference", ns, ns_singly,
            None, ratio, *at_least(ratio, 20)),
        Row("the same; peer scipy with axis=1, no label, no sketch", "ns/inference", ns, ns_at_once, None,
            ns_at_once / ns),
    ]  # fmt: skip
    return rows, largest_difference(scores_of_logits(*sample), peer)


def graph_rows() -> tuple[list[Row], float]:
    """Seconds of one embedding, and of its heat diffusion beside scipy's."""
    one, other = (random_graph(NODES, EDGES, FEATURES, seed) for seed in (1, 2))
    scale = SignatureScale.of(one)
    ours, _ = seconds(lambda: diffusion_embedding(one, scale))
    pair, _ = seconds(lambda: version_distances([one, other]))
    matrices = graph_matrices(one)
    signal = np.random.default_rng(3).normal(size=(NODES, EmbeddingPolicy().projections))
    times = EmbeddingPolicy().times
    laplacian = csr_array(eye_array(NODES) - matrices.walk)
    diffused, heat = seconds(lambda: [diffuse(matrices.walk, signal, t) for t in times])
    krylov, _ = seconds(lambda: [expm_multiply(-t * laplacian, signal) for t in times], 1)
    exact = expm(-times[-1] * laplacian.toarray()) @ signal
    rows = [
        Row("embedding of 1,000 nodes, 5,000 edges, 64 features", "s", ours, None, MOST_SECONDS, ours,
            *at_most(ours, MOST_SECONDS)),
        Row("two such versions to their distance", "s", pair),
        Row("heat at 4 times, 32 signals; peer scipy expm_multiply", "s", diffused, krylov, None, krylov / diffused),
    ]  # fmt: skip
    return rows, float(np.abs(heat[-1] - exact).max())


def main() -> int:
    """Print the table; return 0 where all was reached."""
    scored, score_error = score_rows()
    embedded, heat_error = graph_rows()
    reached = print_table(
        "Versions (ratio = peer / us)",
        [*scored, *embedded],
        notes=[
            f"largest difference of JS and KL from scipy's on {SAMPLE:,} inferences: {score_error:.1e} (at most 1e-12)",
            f"largest difference of heat at time 50 from scipy's dense expm: {heat_error:.1e} (at most 1e-11)",
        ],
    )
    return 0 if reached and score_error <= 1e-12 and heat_error <= 1e-11 else 1


if __name__ == "__main__":
    sys.exit(main())
